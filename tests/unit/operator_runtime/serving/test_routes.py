"""Routes of an author's own: where they may be, and what becomes of handlers that do not answer."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

import pytest

from operator_runtime.serving.http_messages import HttpRequest, HttpResponse, json_response, text_response
from operator_runtime.serving.http_server import HttpServer, ListenAddress
from operator_runtime.serving.probes import Probes
from operator_runtime.serving.routes import TAKEN, Routes, ServerName
from operator_runtime.serving.scrape import PATH

GET = HttpRequest("GET", "/debug/queue", {"verbose": ("",)})


def plain(request: HttpRequest) -> HttpResponse:
    return text_response(200, f"{request.method} {sorted(request.query)}\n")


async def waiting(request: HttpRequest) -> HttpResponse:
    await asyncio.sleep(0)
    return plain(request)


@pytest.mark.parametrize("handler", [plain, waiting])
@pytest.mark.parametrize("server", ["metrics", "probes"])
async def test_a_handler_answers_its_path_and_no_other(handler: object, server: ServerName) -> None:
    routes = Routes()
    routes.add("/debug/queue", handler, server=server)  # type: ignore[arg-type]
    answer = await routes.answer(server, GET)
    assert answer is not None
    assert (answer.status, answer.body) == (200, b"GET ['verbose']\n")
    other: ServerName = "probes" if server == "metrics" else "metrics"
    assert await routes.answer(other, GET) is None
    for path in ("/debug", "/debug/queue/", "/debug/queue/x"):
        assert await routes.answer(server, HttpRequest("GET", path)) is None


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("debug/queue", "the path 'debug/queue' is not absolute: write '/debug/queue'"),
        ("", "the path '' is not absolute: write '/'"),
        ("/a?b=c", r"the path '/a\?b=c' has a query"),
        ("/a b", "the path '/a b' has a query, a fragment or a space"),
        ("/taken", "the path /taken has a handler already: choose another"),
        ("/metrics", "the path /metrics is taken: the metrics server answers /metrics itself; choose another"),
        ("/metrics/x", "the path /metrics/x is taken"),
    ],
)
def test_a_path_that_cannot_be_is_told_with_the_remedy(path: str, complaint: str) -> None:
    routes = Routes()
    routes.add("/taken", plain)
    with pytest.raises(ValueError, match=f"^{complaint}"):
        routes.add(path, plain)
    assert routes.paths("metrics") == ("/taken",)


def test_what_the_probe_server_answers_itself_is_taken_there_alone() -> None:
    routes = Routes()
    routes.add("/readyz/mine", plain)
    with pytest.raises(ValueError, match="the path /readyz/mine is taken: the probes server answers /readyz itself"):
        routes.add("/readyz/mine", plain, server="probes")
    with pytest.raises(ValueError, match="there is no server 'webhooks' for /x: it is one of metrics, probes"):
        routes.add("/x", plain, server="webhooks")  # type: ignore[arg-type]


async def test_the_taken_paths_are_those_that_the_servers_answer() -> None:
    assert TAKEN["metrics"] == (PATH,)
    from operator_runtime.serving.monitoring import probes_of

    answers: Probes = probes_of(())
    for path in TAKEN["probes"]:
        assert (await answers.answer(HttpRequest("GET", path))).status == 200


def test_a_handler_that_cannot_be_called_is_named() -> None:
    with pytest.raises(TypeError, match="the handler of /x is a str, which cannot be called"):
        Routes().add("/x", "hello")  # type: ignore[arg-type]


async def test_a_handler_that_never_answers_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    ended = asyncio.Event()

    async def never(request: HttpRequest) -> HttpResponse:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError("unreachable")

    routes = Routes(timeout_s=0.01)
    routes.add("/debug/queue", never)
    answer = await routes.answer("metrics", GET)
    assert answer is not None
    assert (answer.status, ended.is_set()) == (504, True)
    assert caplog.messages == ["the handler of /debug/queue has not answered for 0.01 s: given up"]


async def test_what_a_handler_does_wrong_is_answered_500_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    routes = Routes()
    routes.add("/wrong", lambda request: "3\n")  # type: ignore[arg-type, return-value]
    routes.add("/raises", lambda request: text_response(200, str(1 // 0)))

    async def answer(request: HttpRequest) -> HttpResponse:
        found = await routes.answer("metrics", request)
        assert found is not None
        return found

    async with HttpServer("metrics", "--flag", ListenAddress("127.0.0.1", 0), answer) as server:
        for path, said in (
            (
                "/wrong",
                "TypeError: the handler of /wrong gave back a str: text_response and json_response make answers",
            ),
            ("/raises", "ZeroDivisionError"),
        ):
            caplog.clear()
            assert (await raw(server.url, path)).startswith(b"HTTP/1.1 500 ")
            assert said in caplog.text


async def raw(url: str, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(f"GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n".encode())
    try:
        return await reader.read()
    finally:
        writer.close()


def test_json_answers_take_whatever_msgspec_can_write() -> None:
    answer = json_response(200, {"at": datetime(2026, 1, 2, tzinfo=UTC), "keys": ("a", "b")})
    assert answer.content_type == "application/json"
    assert answer.body == b'{"at":"2026-01-02T00:00:00Z","keys":["a","b"]}'
