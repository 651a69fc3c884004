"""The connections of a client on real sockets: pools, rotation of the trust, and failures in words."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import ClientConnectionError, ClientConnectorError, ClientError, ClientPayloadError
from aiohttp.client_reqrep import ConnectionKey

from operator_runtime.client import connection_pools as connections
from operator_runtime.client.access.tls import ClientTls, Pem
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.connection_pools import KEEPALIVE_IDLE_S, describe
from operator_runtime.client.errors import Unreachable
from tests.unit.operator_runtime.client.access.auth_support import Authority, server_context
from tests.unit.operator_runtime.client.client_support import (
    PATH,
    SILENCE_LIMIT_S,
    FakeCredentials,
    Peer,
    Request,
    client_of,
    connection_ended,
    every,
    refused_watch,
    saying,
    serving,
    streamed,
    three_lines_and_silence,
)

# Pools.


async def test_calls_share_a_warm_connection_and_watches_take_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def handler(peer: Peer, request: Request) -> None:
        await (three_lines_and_silence if "watch" in request.target else every)(peer, request)

    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 1)
    async with serving(handler) as server, client_of(server.url) as client:
        async with (
            client.stream(PATH, {"watch": "1"}, SILENCE_LIMIT_S),
            client.stream(PATH, {"watch": "1"}, SILENCE_LIMIT_S),
            client.stream(PATH, {"watch": "1"}, SILENCE_LIMIT_S),
        ):
            await asyncio.gather(*(client.request("GET", PATH) for _ in range(5)))
        assert server.connections == 4


async def test_connections_are_kept_alive_by_the_kernel() -> None:
    async with streamed(three_lines_and_silence) as stream:
        transport = stream._answer._connection.transport
        assert transport is not None
        raw = transport.get_extra_info("socket")
        assert raw.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        if hasattr(socket, "TCP_KEEPIDLE"):
            assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == KEEPALIVE_IDLE_S
        assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


async def test_closing_the_client_ends_what_runs() -> None:
    async with serving(three_lines_and_silence) as server:
        client = client_of(server.url)
        async with client.stream(PATH, {}, SILENCE_LIMIT_S) as stream:
            assert await stream.read()
            waiting = asyncio.create_task(stream.read())
            await asyncio.sleep(0)
            await client.close()
            with pytest.raises(Unreachable):
                await waiting
        await connection_ended(server)


async def test_a_watch_that_is_left_by_tls_does_not_wait_for_the_servers_farewell(tmp_path: Path) -> None:
    authority = Authority()
    context = server_context(authority, authority.issue("api"), str(tmp_path))
    credentials = FakeCredentials(context=trusting(authority.pem))
    async with serving(three_lines_and_silence, context) as server, client_of(server.url, credentials) as client:
        async with client.stream(PATH, {}, SILENCE_LIMIT_S) as stream:
            assert await stream.read()
            transport = stream._answer._connection.transport
            assert transport is not None
            raw = transport.get_extra_info("socket")
        for _ in range(2):  # for what is done soon; nothing comes over the wire meanwhile
            await asyncio.sleep(0)
        assert raw.fileno() == -1


# Rotation.


async def test_a_new_trust_takes_new_connections_while_what_runs_goes_on_until_the_next() -> None:
    go_on = asyncio.Event()

    async def handler(peer: Peer, request: Request) -> None:
        if "watch" not in request.target:
            await peer.answer()
            return
        await peer.begin_stream()
        await peer.chunk(b"1\n")
        await go_on.wait()
        await peer.chunk(b"2\n")
        await peer.closed()

    credentials = FakeCredentials()
    async with serving(handler) as server, client_of(server.url, credentials) as client:
        await client.request("GET", PATH)
        async with client.stream(PATH, {"watch": "1"}, SILENCE_LIMIT_S) as stream:
            assert await stream.read() == b"1\n"
            credentials.context = ssl.create_default_context()
            await client.request("GET", PATH)
            await client.request("GET", PATH)
            assert server.connections == 3
            go_on.set()
            assert await stream.read() == b"2\n"
            waiting = asyncio.create_task(stream.read())
            await asyncio.sleep(0)
            credentials.context = ssl.create_default_context()
            await client.request("GET", PATH)
            with pytest.raises(Unreachable):
                await waiting
            assert server.connections == 4


async def test_a_rotated_authority_is_trusted_without_a_restart(tmp_path: Path) -> None:
    old, new = Authority("old"), Authority("new")
    context = server_context(new, new.issue("server.test"), str(tmp_path))
    credentials = FakeCredentials(context=trusting(old.pem))
    async with serving(every, context) as server, client_of(server.url, credentials) as client:
        with pytest.raises(Unreachable, match="the server's certificate is not trusted"):
            await client.request("GET", PATH)
        assert len(credentials.ca_reloads) == 1
        credentials.context = trusting(new.pem)
        assert await client.request("GET", PATH) == b"{}"


# Failures in words.


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{unused.getsockname()[1]}"


def trusting(pem: bytes) -> ssl.SSLContext:
    return ClientTls(clock=lambda: 0.0, authority=Pem("the test's certificate authority", data=pem)).context()


async def test_nobody_listening_is_unreachable_for_calls_and_watches_and_a_proxy_is_named_as_such(nobody: str) -> None:
    async with client_of(f"https://{nobody}") as client:
        with pytest.raises(Unreachable) as call:
            await client.request("POST", PATH, body=b"{}")
        with pytest.raises(Unreachable) as watch:
            await refused_watch(client)
    assert str(call.value) == f"POST {PATH}: {nobody}: connection refused"
    assert str(watch.value) == f"{nobody}: connection refused"
    async with client_of("https://api.test:6443", proxy=f"http://{nobody}") as client:
        with pytest.raises(Unreachable, match=f"the proxy {nobody}: connection refused"):
            await client.request("GET", PATH)


def of_tls(words: str) -> ssl.SSLError:
    return ssl.SSLError(1, f"[SSL: {words}]")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(111, "Connect call failed ('10.0.0.1', 6443)"), "connection refused"),
        (OSError(113, "Multiple exceptions: [Errno 113] …, [Errno 113] …"), "no route to host"),
        (OSError("Multiple exceptions: [Errno 111] …, [Errno 113] …"), "Multiple exceptions: [Errno 111] …, [Errno 1"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (of_tls("WRONG_VERSION_NUMBER"), "what answers there speaks no TLS ([SSL: WRONG_VERSION_NUMBER]"),
        (of_tls("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "the server requires a client certificate ([SSL: "),
        (of_tls("SOMETHING_ELSE"), "[SSL: SOMETHING_ELSE]"),
        (ConnectionResetError(), "the connection was closed within the handshake of TLS: a load balancer that has no"),
        (ConnectionResetError(104, "Connection reset by peer"), "connection reset by peer"),
    ],
    ids=[
        "refused",
        "no address answers",
        "by address",
        "no name",
        "no TLS",
        "no certificate",
        "TLS",
        "closed",
        "reset",
    ],
)
def test_a_connection_that_cannot_be_made_is_described_by_its_address_and_the_reason(
    error: OSError, words: str
) -> None:
    key = ConnectionKey("api.test", 6443, True, True, None, None, None)
    assert describe(ClientConnectorError(key, error)).startswith(f"api.test:6443: {words}")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ClientConnectionError("refused"), "refused"),
        (ClientPayloadError("cut"), "cut"),
        (OSError(113, "No route to host"), "no route to host"),
        (ConnectionResetError(), "the connection was closed within the handshake of TLS"),
        (TimeoutError(), "no answer in time"),
        (ClientError(), "ClientError"),
    ],
)
def test_each_failure_of_a_connection_has_words(error: Exception, words: str) -> None:
    assert describe(error).startswith(words)


async def test_a_proxy_that_refuses_is_named_without_its_password() -> None:
    async with serving(saying(407)) as proxy:
        url = proxy.url.replace("http://", "http://jane:hunter2@")
        async with client_of("https://api.test:6443", proxy=url) as client:
            with pytest.raises(Unreachable, match="the proxy answers 407") as caught:
                await client.request("GET", PATH)
        assert proxy.requests[0].method == "CONNECT"
        assert proxy.requests[0].headers["proxy-authorization"].startswith("Basic ")
    assert "hunter2" not in str(caught.value)


async def watched(client: ApiClient) -> None:
    async with client.stream(PATH, {}, SILENCE_LIMIT_S) as stream:
        while await stream.read():
            pass


MAY_BE = "a load balancer that has no server behind it, or a server that"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", f"the server closed the connection without an answer: {MAY_BE} speaks TLS?"),
        (b"HTTP/1.1 200 O", "the connection ended within the answer's headers"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", "the connection ended within the answer"),
        (b"+OK ready\r\n", "the answer is no HTTP: Bad status line: "),
    ],
    ids=["nothing", "half a head", "half a body", "no HTTP"],
)
async def test_a_server_that_closes_is_told_in_one_line_by_how_far_it_came(answer: bytes, words: str) -> None:
    async def close(peer: Peer, request: Request) -> None:
        await peer.send(answer)
        peer.close()

    async with serving(close) as server, client_of(server.url) as client:
        with pytest.raises(Unreachable) as call:
            await client.request("POST", PATH, body=b"{}")
        with pytest.raises(Unreachable) as watch:
            await watched(client)
    assert str(call.value).startswith(f"POST {PATH}: {words}")
    assert str(watch.value).startswith(words)
    assert (str(call.value) + str(watch.value)).isprintable()


async def test_a_balancer_without_servers_that_closes_within_the_handshake_is_told_as_such() -> None:
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)  # the beginning of the handshake
        writer.write_eof()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0)
    async with server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with client_of(f"https://{address}", FakeCredentials(context=ssl.create_default_context())) as client:
            with pytest.raises(Unreachable) as caught:
                await client.request("GET", PATH)
    assert str(caught.value) == (
        f"GET {PATH}: {address}: the connection was closed within the handshake of TLS:"
        f" {MAY_BE} requires a client certificate?"
    )


async def test_a_client_certificate_that_is_missing_is_what_the_words_speak_of(tmp_path: Path) -> None:
    authority = Authority()
    mutual_tls = server_context(authority, authority.issue("api"), str(tmp_path))
    mutual_tls.verify_mode = ssl.CERT_REQUIRED
    # Later ones tell it with the first answer, and whether that or the end of the connection is seen is up to chance.
    mutual_tls.maximum_version = ssl.TLSVersion.TLSv1_2
    credentials = FakeCredentials(context=trusting(authority.pem))
    async with serving(every, mutual_tls) as server, client_of(server.url, credentials) as client:
        with pytest.raises(Unreachable, match="requires a client certificate"):
            await client.request("GET", PATH)
