"""The server of webhooks: what it takes, what becomes of handlers that do wrong, and how it ends."""

from __future__ import annotations

import asyncio
import functools
import gc
import io
import logging
import socket
import ssl
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from operator_runtime.serving.admission import AdmissionRequest, Allowed, Denied, Json, Patched
from operator_runtime.serving.http_server import ListenError, ServingError
from operator_runtime.serving.self_signed import self_signed
from operator_runtime.serving.serving_tls import CERTIFICATE_FILE, KEY_FILE
from operator_runtime.serving.webhooks import MAX_REVIEW_BYTES, WebhookConfig, Webhooks, timeout_of
from operator_runtime.telemetry.metrics import Histogram
from tests.unit.operator_runtime.serving.test_admission import review

DEADLINE_S = 30.0
HOST = "127.0.0.1"
Review = AdmissionRequest[Json]
Handler = Callable[[Review], Awaitable[Any]]


def write(directory: Path) -> None:
    key, begin, certificate = self_signed([HOST], datetime.now(UTC)).partition(b"-----BEGIN CERTIFICATE")
    (directory / KEY_FILE).write_bytes(key)
    (directory / CERTIFICATE_FILE).write_bytes(begin + certificate)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("certificate")
    write(made)
    return made


async def allow(request: Review) -> Allowed:
    return Allowed()


async def deny(request: Review) -> Denied:
    return Denied("no")


class Caller:
    """Asks as the API server does."""

    def __init__(self, session: aiohttp.ClientSession, webhooks: Webhooks) -> None:
        self._session, self._webhooks = session, webhooks

    async def post(self, path: str = "/validate", body: object = None, **how: Any) -> tuple[int, bytes]:
        data = review() if body is None else body
        async with self._session.request(how.pop("method", "POST"), self._webhooks.url + path, data=data, **how) as got:
            return got.status, await got.read()

    async def allowed(self, path: str) -> bool:
        status, body = await self.post(path)
        assert status == 200, body
        return bool(msgspec.json.decode(body)["response"]["allowed"])


@asynccontextmanager
async def calling(directory: Path, webhooks: Webhooks) -> AsyncIterator[Caller]:
    trusting = ssl.create_default_context(cafile=directory / CERTIFICATE_FILE)
    connector = aiohttp.TCPConnector(ssl=trusting)
    async with webhooks, aiohttp.ClientSession(connector=connector) as session:
        yield Caller(session, webhooks)


def webhooks_in(directory: Path, **handlers: Handler) -> Webhooks:
    made = Webhooks(WebhookConfig(f"{HOST}:0", directory))
    for name, handler in handlers.items():
        made.validate(f"/{name}", handler)
    return made


async def test_each_path_has_its_handler(directory: Path) -> None:
    async with calling(directory, webhooks_in(directory, yes=allow, no=deny)) as caller:
        assert [await caller.allowed(path) for path in ("/yes", "/no")] == [True, False]
        assert await caller.post("/elsewhere") == (404, b"there are /yes, /no here\n")
        assert (await caller.post("/yes", method="GET"))[0] == 405


@pytest.mark.parametrize(
    ("path", "complaint"),
    [("validate", "the path 'validate' is not absolute"), ("/taken", "the path /taken has a handler already")],
)
def test_a_path_that_cannot_be_is_refused(path: str, complaint: str) -> None:
    webhooks = Webhooks()
    webhooks.validate("/taken", allow)
    with pytest.raises(ValueError, match=complaint):
        webhooks.mutate(path, allow)


def plain(request: Review) -> Allowed:
    return Allowed()


def test_a_handler_that_is_no_coroutine_function_is_named() -> None:
    webhooks = Webhooks()
    complaint = r"^webhooks.validate\('/x'\): plain \(.*\) is no coroutine function: define it with `async def`$"
    with pytest.raises(TypeError, match=complaint):
        webhooks.validate("/x", plain)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^webhooks.convert\('/x'\): "):
        webhooks.convert("/x", lambda body, version: body)  # type: ignore[arg-type, return-value]
    assert webhooks.paths == ()


def test_methods_partials_and_callable_instances_are_coroutine_functions_too() -> None:
    class Reviewer:
        async def look(self, request: Review) -> Allowed:
            return Allowed()

        async def __call__(self, request: Review) -> Allowed:
            return Allowed()

    webhooks = Webhooks()
    webhooks.validate("/method", Reviewer().look)
    webhooks.validate("/instance", Reviewer())
    webhooks.validate("/partial", functools.partial(allow))
    assert webhooks.paths == ("/method", "/instance", "/partial")


async def raises(request: Review) -> Allowed:
    raise KeyError("size")


async def gives_nothing(request: Review) -> Any:
    return None


async def patches(request: Review) -> Any:
    return Patched([])


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (raises, "KeyError: 'size'"),
        (gives_nothing, "TypeError: the handler of /validate gave back a NoneType, not one of Allowed, Denied"),
        (patches, "TypeError: the handler of /validate gave back a Patched, not one of Allowed, Denied"),
    ],
)
async def test_a_handler_that_does_wrong_is_answered_500_and_logged_with_what_it_was_asked(
    directory: Path, handler: Handler, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with calling(directory, webhooks_in(directory, validate=handler)) as caller:
        assert (await caller.post())[0] == 500
    assert "webhook /validate: cannot answer" in caplog.text
    assert said in caplog.text
    assert "Asked about UPDATE of deployments.apps shop/a." in caplog.text


async def test_a_mutating_handler_may_patch(directory: Path) -> None:
    webhooks = Webhooks(WebhookConfig(f"{HOST}:0", directory))
    webhooks.mutate("/mutate", patches)
    async with calling(directory, webhooks) as caller:
        assert await caller.allowed("/mutate")


async def test_a_handler_that_never_answers_is_given_up_when_the_api_server_is_about_to(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ended = asyncio.Event()

    async def never(request: Review) -> Allowed:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError("unreachable")

    async with calling(directory, webhooks_in(directory, validate=never)) as caller:
        assert (await caller.post("/validate?timeout=1s"))[0] == 500
    assert ended.is_set()
    assert caplog.messages == ["webhook /validate: no answer within the 1 s that the API server waits"]


@pytest.mark.parametrize(
    ("said", "seconds"), [("5s", 5.0), ("", 10.0), ("0s", 10.0), ("x", 10.0), ("600s", 30.0), ("1m0s", 10.0)]
)
def test_the_api_server_says_how_long_it_waits(said: str, seconds: float) -> None:
    assert timeout_of(said) == seconds


async def test_a_body_that_is_too_long_is_refused_however_it_comes(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(MAX_REVIEW_BYTES // 1_000_000 + 1):
            yield b" " * 1_000_000

    async with calling(directory, webhooks_in(directory, validate=allow)) as caller:
        assert (await caller.post(body=io.BytesIO(b" " * (MAX_REVIEW_BYTES + 1))))[0] == 413
        assert (await caller.post(body=pieces()))[0] == 413
        fits = review(object={"data": "x" * 6_000_000})
        assert (await caller.post(body=io.BytesIO(fits)))[0] == 200
    assert set(caplog.messages) == {f"webhook /validate: refused a request of more than {MAX_REVIEW_BYTES} bytes"}


async def test_what_is_no_review_is_answered_400_and_logged(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with calling(directory, webhooks_in(directory, validate=allow)) as caller:
        status, said = await caller.post(body=b"{}")
    assert (status, said) == (400, b"kind '' of '', not an AdmissionReview of admission.k8s.io/v1\n")
    assert caplog.messages[0].startswith("webhook /validate: cannot read what it is asked: kind '' of '', not an")


async def test_an_object_that_its_kind_cannot_read_is_denied(directory: Path) -> None:
    class Strict:
        def decode(self, raw: msgspec.Raw, /) -> int:
            return msgspec.json.decode(raw, type=int)

    async def look(request: AdmissionRequest[int]) -> Allowed:
        raise AssertionError("asked")

    webhooks = Webhooks(WebhookConfig(f"{HOST}:0", directory))
    webhooks.validate("/strict", look, kind=Strict())
    async with calling(directory, webhooks) as caller:
        found = msgspec.json.decode((await caller.post("/strict"))[1])["response"]
    assert (found["uid"], found["allowed"], found["status"]["code"]) == ("u-1", False, 400)
    assert found["status"]["message"].startswith("the object cannot be read: Expected `int`")


async def test_what_is_being_answered_at_the_end_is_finished(directory: Path) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: Review) -> Allowed:
        asked.set()
        await go_on.wait()
        return Allowed()

    webhooks = webhooks_in(directory, validate=slow)
    async with calling(directory, webhooks) as caller:
        running = asyncio.create_task(webhooks.run())
        answer = asyncio.create_task(caller.post())
        await asyncio.wait_for(asked.wait(), DEADLINE_S)
        webhooks.stop()
        await asyncio.sleep(0)
        assert not running.done()
        go_on.set()
        assert (await asyncio.wait_for(answer, DEADLINE_S))[0] == 200
        await asyncio.wait_for(running, DEADLINE_S)
        with pytest.raises(aiohttp.ClientConnectionError):
            await caller.post()


def test_a_connection_that_the_api_server_keeps_is_closed_before_the_event_loop_is(directory: Path) -> None:
    kept: list[ssl.SSLSocket] = []

    def ask(port: int) -> None:
        context = ssl.create_default_context(cafile=directory / CERTIFICATE_FILE)
        raw = socket.create_connection((HOST, port), timeout=DEADLINE_S)
        kept.append(context.wrap_socket(raw, server_hostname=HOST))
        kept[0].sendall(b"GET /validate HTTP/1.1\r\nHost: here\r\n\r\n")
        assert kept[0].recv(1000).startswith(b"HTTP/1.1 405")

    async def serve() -> None:
        async with webhooks_in(directory, validate=allow) as webhooks:
            await asyncio.to_thread(ask, int(webhooks.url.rpartition(":")[2]))

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio.run(serve())
        gc.collect()
    kept[0].close()
    assert [str(each.message) for each in told if "unclosed" in str(each.message)] == []


async def test_as_a_service_alone_it_listens_too(directory: Path) -> None:
    webhooks = webhooks_in(directory, validate=allow)
    webhooks.stop()
    await asyncio.wait_for(webhooks.run(), DEADLINE_S)
    assert webhooks.url.startswith(f"https://{HOST}:")


async def test_without_a_webhook_nothing_listens_and_no_certificate_is_asked_for() -> None:
    async with Webhooks() as webhooks:
        assert webhooks.url == ""


async def test_webhooks_that_are_turned_off_are_told(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    webhooks = Webhooks(WebhookConfig("0", directory))
    webhooks.validate("/validate", allow)
    async with webhooks:
        assert webhooks.url == ""
    assert caplog.messages == ["not serving /validate: webhooks are turned off with --webhook-bind-address=0"]


@pytest.mark.parametrize(
    ("address", "certificate", "complaint"),
    [
        (":9443", False, "name a folder with tls.crt and tls.key with --webhook-cert-dir"),
        (":x", True, "^--webhook-bind-address=:x: it must be HOST:PORT"),
    ],
)
async def test_what_cannot_be_served_names_the_flag(
    directory: Path, address: str, certificate: bool, complaint: str
) -> None:
    webhooks = Webhooks(WebhookConfig(address, directory if certificate else None))
    webhooks.validate("/validate", allow)
    with pytest.raises(ServingError, match=complaint):
        await webhooks.__aenter__()


async def test_a_taken_port_and_missing_files_name_the_flag(directory: Path, tmp_path: Path) -> None:
    async with webhooks_in(directory, validate=allow) as first:
        second = Webhooks(WebhookConfig(first.url.removeprefix("https://"), directory))
        second.validate("/validate", allow)
        with pytest.raises(ListenError, match=r"cannot listen on .+ for webhooks: .+ with --webhook-bind-address"):
            await second.__aenter__()
    with pytest.raises(ServingError, match=f"^--webhook-cert-dir={tmp_path}: "):
        await webhooks_in(tmp_path, validate=allow).__aenter__()


async def test_a_renewed_certificate_is_served_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    write(tmp_path)
    webhooks = webhooks_in(tmp_path, validate=allow)
    async with webhooks:
        for _ in range(2):
            trusting = ssl.create_default_context(cafile=tmp_path / CERTIFICATE_FILE)
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting)) as session:
                assert await Caller(session, webhooks).allowed("/validate")
            write(tmp_path)
    assert f"serving webhooks with a new certificate from {tmp_path / CERTIFICATE_FILE}" in caplog.messages


async def test_requests_are_counted_under_controller_runtimes_names(directory: Path) -> None:
    webhooks = webhooks_in(directory, validate=allow, other=raises)
    async with calling(directory, webhooks) as caller:
        await caller.post()
        await caller.post("/other")
    families = {family.name: family for family in webhooks.families()}
    counts = {sample.labels: sample.value for sample in families["controller_runtime_webhook_requests_total"].samples}
    assert counts == {("/validate", "200"): 1, ("/validate", "500"): 0, ("/other", "200"): 0, ("/other", "500"): 1}
    in_flight = families["controller_runtime_webhook_requests_in_flight"].samples
    assert [sample.value for sample in in_flight] == [0, 0]
    latencies = [sample.value for sample in families["controller_runtime_webhook_latency_seconds"].samples]
    assert [sum(each.counts) for each in latencies if isinstance(each, Histogram)] == [1, 1]


def test_without_webhooks_aiohttps_server_is_not_loaded() -> None:
    code = (
        "import sys, operator_runtime.serving.webhooks\n"
        "sys.exit(bool({'aiohttp.web_server', 'cryptography'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
