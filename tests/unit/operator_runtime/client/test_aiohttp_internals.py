"""What is relied on of aiohttp without its word, each by name. A new minor release of it is allowed when these pass."""

from __future__ import annotations

import ast
import asyncio
import inspect
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from yarl import URL

from operator_runtime.client import aiohttp_internals
from operator_runtime.client.aiohttp_internals import (
    EMPTY_PAYLOAD,
    INCOMPLETE_BODY,
    Connection,
    Connector,
    HttpProcessingError,
    ResponseHandler,
    StreamReader,
    request_template,
    unparsed,
)

PROJECT = Path(__file__).parents[4]
PACKAGES = ("kube_simulator", "memcached_operator", "operator_runtime")

# Of each class what is called or read, with the parameters that are given to it; None for a property.
RELIED_ON: list[tuple[type, dict[str, tuple[str, ...] | None]]] = [
    (
        ResponseHandler,
        {
            "__init__": ("loop",),
            "abort": (),
            "data_received": ("data",),
            "read": (),
            "set_exception": ("exc", "exc_cause"),
            "set_response_params": ("read_until_eof",),
        },
    ),
    (Connection, {"close": (), "protocol": None, "release": (), "transport": None}),
    (StreamReader, {"at_eof": (), "exception": (), "is_eof": (), "readany": (), "set_exception": ("exc",)}),
    (aiohttp.BaseConnector, {"connect": ("req", "traces", "timeout")}),
    (aiohttp.ClientRequest, {"__init__": ("method", "url", "proxy", "server_hostname", "loop")}),
]


@pytest.mark.parametrize(
    ("owner", "name", "parameters"),
    [(owner, name, parameters) for owner, members in RELIED_ON for name, parameters in members.items()],
)
def test_what_is_called_is_there_and_takes_what_it_is_given(
    owner: type, name: str, parameters: tuple[str, ...] | None
) -> None:
    member = inspect.getattr_static(owner, name)
    if parameters is None:
        assert isinstance(member, property)
    else:
        assert set(parameters) <= set(inspect.signature(member).parameters)


def test_no_other_module_imports_from_within_aiohttp() -> None:
    within = {
        (str(path.relative_to(PROJECT)), module)
        for package in PACKAGES
        for path in (PROJECT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for module in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
        if module.startswith("aiohttp.")
    }
    assert {path for path, _ in within} == {str(Path(aiohttp_internals.__file__).relative_to(PROJECT))}
    assert {module for _, module in within} == {
        "aiohttp.client_proto",
        "aiohttp.connector",
        "aiohttp.http_exceptions",
        "aiohttp.streams",
    }


def test_only_the_minor_release_that_is_tested_here_is_allowed() -> None:
    declared = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]
    (aiohttps,) = (each for each in map(Requirement, declared) if each.name == "aiohttp")
    tested = Version(aiohttp.__version__)
    assert tested in aiohttps.specifier
    assert f"{tested.major}.{tested.minor}.99" in aiohttps.specifier
    assert f"{tested.major}.{tested.minor + 1}" not in aiohttps.specifier


class UnderTest(ResponseHandler):
    """As `wire.Wire` is one."""


@asynccontextmanager
async def connected(
    sent: bytes, *, unsolicited: bool = False
) -> AsyncIterator[tuple[aiohttp.BaseConnector, Connection, aiohttp.ClientRequest]]:
    """A connection to a server that sends these bytes, at a request or `unsolicited`, and closes when the test ends."""
    over = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not unsolicited:
            await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        await over.wait()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, Connector(UnderTest) as connector:
        url = URL(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        template = request_template(url, None, None)
        connection = await connector.connect(template, [], aiohttp.ClientTimeout())
        try:
            yield connector, connection, template
        finally:
            connection.close()
            over.set()


async def requested(connection: Connection) -> tuple[Any, StreamReader]:
    handler = connection.protocol
    assert isinstance(handler, ResponseHandler)
    transport = connection.transport
    assert transport is not None
    assert handler.transport is transport
    handler.set_response_params(read_until_eof=True)
    transport.write(b"GET / HTTP/1.1\r\n\r\n")
    return await handler.read()


async def test_a_connector_makes_ends_of_the_class_that_it_is_given_and_keeps_what_is_released() -> None:
    async with connected(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok") as (connector, connection, template):
        handler = connection.protocol
        assert isinstance(handler, UnderTest)
        message, content = await requested(connection)
        assert (message.code, message.headers["Content-Length"]) == (200, "2")
        assert (await content.readany(), content.is_eof(), content.at_eof()) == (b"ok", True, True)
        connection.release()
        assert connection.protocol is None
        again = await connector.connect(template, [], aiohttp.ClientTimeout())
        assert again.protocol is handler
        again.close()
        assert again.transport is None


async def test_the_template_of_a_request_has_the_header_host() -> None:
    assert request_template(URL("https://api.test:6443"), None, "other.test").headers["Host"] == "api.test:6443"


async def test_bytes_before_the_first_request_are_kept_unparsed() -> None:
    async with connected(b"SSH-2.0\r\n", unsolicited=True) as (_, connection, _template):
        assert isinstance(connection.protocol, UnderTest)
        async with asyncio.timeout(10):
            while not unparsed(connection.protocol):  # noqa: ASYNC110 -- nothing tells of it
                await asyncio.sleep(0)
        assert unparsed(connection.protocol) == b"SSH-2.0\r\n"


async def test_what_is_no_http_is_an_error_with_a_message() -> None:
    async with connected(b"SSH-2.0\r\n\r\n") as (_, connection, _template):
        with pytest.raises(HttpProcessingError) as raised:
            await requested(connection)
        assert raised.value.message


async def test_a_body_that_ends_too_early_is_told_by_the_beginning_of_a_message_and_its_cause() -> None:
    async with connected(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n") as (_, connection, _template):
        _, content = await requested(connection)
        assert isinstance(connection.protocol, UnderTest)
        connection.protocol.connection_lost(None)
        with pytest.raises(aiohttp.ClientPayloadError, match=f"^{INCOMPLETE_BODY}") as raised:
            await content.readany()
        assert raised.value.__cause__ is not None


async def test_an_exception_that_is_set_wakes_who_reads_the_body_or_waits_for_the_head() -> None:
    async with connected(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n") as (_, connection, _template):
        _, content = await requested(connection)
        reading = asyncio.ensure_future(content.readany())
        await asyncio.sleep(0)
        assert content.exception() is None
        content.set_exception(TimeoutError())
        with pytest.raises(TimeoutError):
            await reading
        assert isinstance(content.exception(), TimeoutError)
    async with connected(b"") as (_, connection, _template):
        waiting = asyncio.ensure_future(requested(connection))
        await asyncio.sleep(0)
        assert isinstance(connection.protocol, UnderTest)
        connection.protocol.set_exception(TimeoutError())
        with pytest.raises(TimeoutError):
            await waiting


async def test_an_aborted_connection_is_closed_at_once_and_none_of_its_readers_woken() -> None:
    async with connected(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n") as (_, connection, _template):
        _, content = await requested(connection)
        handler = connection.protocol
        assert handler is not None
        handler.abort()
        assert handler.transport is None
        assert (content.is_eof(), content.exception()) == (False, None)


def test_the_body_of_no_answer_is_at_its_end() -> None:
    assert (EMPTY_PAYLOAD.is_eof(), EMPTY_PAYLOAD.exception()) == (True, None)
