"""What a client does with connections: closing, silence, compression, retries, rotation. On real sockets."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from memcached_operator.kube import client as client_module
from memcached_operator.kube.client import KEEPALIVE_IDLE_S, ApiClient
from memcached_operator.kube.errors import (
    Forbidden,
    MalformedAnswer,
    StreamStalled,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from memcached_operator.kube.tls import Pem, Tls
from tests.unit.kube.auth_support import make_authority, server_context
from tests.unit.kube.client_support import FakeCredentials, Loopback, Peer, Request, client_of, serving

PATH = "/apis/apps/v1/deployments"
SILENCE_LIMIT_S = 70.0
# Less than aiohttp keeps an idle connection (15 s): what ends by itself then was not closed by us.
DEADLINE_S = 10.0

pytestmark = pytest.mark.timeout(30)


@pytest.fixture
def skip(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves the loop's clock on: timers that are due then fire without anybody waiting for them."""

    def skip(seconds: float) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time
        monkeypatch.setattr(loop, "time", lambda: now() + seconds)

    return skip


async def every(peer: Peer, request: Request) -> None:
    await peer.answer()


async def three_lines_and_silence(peer: Peer, request: Request) -> None:
    await peer.begin_stream()
    await peer.chunk(b"1\n2\n3\n")
    await peer.closed()


async def connection_ended(loopback: Loopback) -> None:
    await asyncio.wait_for(loopback.gone.acquire(), DEADLINE_S)


# A watch's connection is closed on every way out.


async def test_a_watch_that_is_left_unread_is_closed() -> None:
    async with serving(three_lines_and_silence) as server, client_of(server.url) as client:
        async with client.stream(PATH, {"watch": "1"}, SILENCE_LIMIT_S) as stream:
            assert await stream.read() == b"1\n2\n3\n"
        await connection_ended(server)
        assert server.requests[0].target == f"{PATH}?watch=1"


async def test_a_watch_whose_reader_fails_is_closed() -> None:
    async with serving(three_lines_and_silence) as server, client_of(server.url) as client:
        with pytest.raises(ZeroDivisionError):
            async with client.stream(PATH, {}, SILENCE_LIMIT_S):
                raise ZeroDivisionError
        await connection_ended(server)


async def test_a_watch_whose_reader_is_cancelled_is_closed() -> None:
    reading = asyncio.Event()

    async def read(client: ApiClient) -> None:
        async with client.stream(PATH, {}, SILENCE_LIMIT_S) as stream:
            await stream.read()
            reading.set()
            await stream.read()

    async with serving(three_lines_and_silence) as server, client_of(server.url) as client:
        task = asyncio.create_task(read(client))
        await asyncio.wait_for(reading.wait(), DEADLINE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await connection_ended(server)


async def test_a_watch_that_is_cancelled_before_its_headers_is_closed() -> None:
    asked = asyncio.Event()

    async def never(peer: Peer, request: Request) -> None:
        asked.set()
        await peer.closed()

    async with serving(never) as server, client_of(server.url) as client:
        stream = client.stream(PATH, {}, SILENCE_LIMIT_S)
        task = asyncio.ensure_future(stream.__aenter__())
        await asyncio.wait_for(asked.wait(), DEADLINE_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await connection_ended(server)


async def test_a_watch_that_is_refused_is_closed_and_says_why() -> None:
    async def refuse(peer: Peer, request: Request) -> None:
        await peer.answer(403, b'{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}')

    async with serving(refuse) as server, client_of(server.url) as client:
        with pytest.raises(Forbidden, match="403 Forbidden: no"):
            async with client.stream(PATH, {}, SILENCE_LIMIT_S):
                pytest.fail("a refused watch has no body")
        await connection_ended(server)


async def test_a_watch_that_ends_cleanly_gives_its_bytes_and_then_nothing() -> None:
    async def two_chunks(peer: Peer, request: Request) -> None:
        await peer.begin_stream()
        await peer.chunk(b"1\n2")
        await peer.chunk(b"3\n")
        await peer.chunk(b"")

    async with serving(two_chunks) as server, client_of(server.url) as client:
        async with client.stream(PATH, {}, SILENCE_LIMIT_S) as stream:
            read = b""
            while chunk := await stream.read():
                read += chunk
            assert read == b"1\n23\n"
            assert stream.received_bytes == 5
            assert await stream.read() == b""
        await connection_ended(server)


async def test_a_stream_that_breaks_in_a_chunk_is_unreachable_after_its_bytes() -> None:
    async def break_off(peer: Peer, request: Request) -> None:
        await peer.begin_stream()
        await peer.send(b"64\r\nhalf")
        peer.close()

    async with (
        serving(break_off) as server,
        client_of(server.url) as client,
        client.stream(PATH, {}, SILENCE_LIMIT_S) as stream,
    ):
        assert await stream.read() == b"half"
        with pytest.raises(Unreachable):
            await stream.read()


async def test_a_watch_that_is_sent_elsewhere_is_malformed() -> None:
    async def redirect(peer: Peer, request: Request) -> None:
        await peer.answer(302, b"<html>", Location="http://127.0.0.1:9/")

    async with serving(redirect) as server, client_of(server.url) as client:
        with pytest.raises(MalformedAnswer, match="HTTP 302"):
            async with client.stream(PATH, {}, SILENCE_LIMIT_S):
                pytest.fail("a redirect has no events")


async def test_a_401_to_a_watch_fetches_a_newer_credential_for_the_next_one() -> None:
    async def who(peer: Peer, request: Request) -> None:
        await peer.answer(200 if request.headers["authorization"] == "Bearer second" else 401)

    credentials = FakeCredentials(next_token="second")
    async with serving(who) as server, client_of(server.url, credentials) as client:
        with pytest.raises(Unauthorized):
            async with client.stream(PATH, {}, SILENCE_LIMIT_S):
                pytest.fail("a refused watch has no body")
        assert len(credentials.refreshes) == 1
        async with client.stream(PATH, {}, SILENCE_LIMIT_S) as stream:
            assert await stream.read() == b"{}"


# Silence.


async def test_each_byte_begins_the_silence_anew_and_silence_ends_the_stream(skip: Callable[[float], None]) -> None:
    more = asyncio.Event()

    async def drip(peer: Peer, request: Request) -> None:
        await peer.begin_stream()
        for _ in range(3):
            await more.wait()
            more.clear()
            await peer.chunk(b".")
        await peer.closed()

    async with serving(drip) as server, client_of(server.url) as client:
        async with client.stream(PATH, {}, SILENCE_LIMIT_S) as stream:
            for _ in range(3):
                skip(SILENCE_LIMIT_S - 10.0)
                more.set()
                assert await stream.read() == b"."
            silent = asyncio.create_task(stream.read())
            await asyncio.sleep(0)
            skip(SILENCE_LIMIT_S + 1.0)
            with pytest.raises(StreamStalled, match="no byte for 70 s"):
                await silent
        await connection_ended(server)


async def test_silence_before_the_first_byte_counts_too(skip: Callable[[float], None]) -> None:
    async def headers_only(peer: Peer, request: Request) -> None:
        await peer.begin_stream()
        await peer.closed()

    async with (
        serving(headers_only) as server,
        client_of(server.url) as client,
        client.stream(PATH, {}, SILENCE_LIMIT_S) as stream,
    ):
        skip(SILENCE_LIMIT_S + 1.0)
        with pytest.raises(StreamStalled):
            await stream.read()
        assert stream.received_bytes == 0


async def test_headers_that_a_proxy_withholds_are_silence_and_not_a_failed_connection(
    skip: Callable[[float], None],
) -> None:
    asked = asyncio.Event()

    async def never(peer: Peer, request: Request) -> None:
        asked.set()
        await peer.closed()

    async with serving(never) as server, client_of(server.url) as client:
        task = asyncio.ensure_future(client.stream(PATH, {}, SILENCE_LIMIT_S).__aenter__())
        await asyncio.wait_for(asked.wait(), DEADLINE_S)
        skip(SILENCE_LIMIT_S + 1.0)
        with pytest.raises(StreamStalled, match="no answer for 70 s"):
            await task
        await connection_ended(server)


async def test_an_api_call_without_an_answer_is_unreachable_in_time(skip: Callable[[float], None]) -> None:
    asked = asyncio.Event()

    async def never(peer: Peer, request: Request) -> None:
        asked.set()
        await peer.closed()

    async with serving(never) as server, client_of(server.url) as client:
        task = asyncio.create_task(client.request("GET", PATH, timeout_s=5.0))
        await asyncio.wait_for(asked.wait(), DEADLINE_S)
        skip(6.0)
        with pytest.raises(Unreachable, match="no answer in time"):
            await task


async def test_nobody_listening_is_unreachable_for_calls_and_watches() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        async with client_of(f"http://127.0.0.1:{unused.getsockname()[1]}") as client:
            with pytest.raises(Unreachable, match=f"POST {PATH}: Cannot connect"):
                await client.request("POST", PATH, body=b"{}")
            with pytest.raises(Unreachable, match="Cannot connect"):
                async with client.stream(PATH, {}, SILENCE_LIMIT_S):
                    pytest.fail("there is no server")


# Compression.

MEMBERS = [gzip.compress(b'{"first":'), gzip.compress(b'"second",'), gzip.compress(b'"third":1}')]


async def test_a_list_in_several_gzip_members_is_whole() -> None:
    async def compressed(peer: Peer, request: Request) -> None:
        assert request.headers["accept-encoding"] == "gzip"
        await peer.answer(200, b"".join(MEMBERS), Content_Encoding="gzip")

    async with serving(compressed) as server, client_of(server.url) as client:
        assert await client.request("GET", PATH, gzip=True) == b'{"first":"second","third":1}'


async def test_a_watch_asks_for_no_compression_and_bears_it_flush_by_flush() -> None:
    async def compressed(peer: Peer, request: Request) -> None:
        assert request.headers["accept-encoding"] == "identity"
        await peer.begin_stream(Content_Encoding="gzip")
        for member in MEMBERS:
            await peer.chunk(member)
        await peer.chunk(b"")

    read = b""
    async with (
        serving(compressed) as server,
        client_of(server.url) as client,
        client.stream(PATH, {}, SILENCE_LIMIT_S) as stream,
    ):
        while chunk := await stream.read():
            read += chunk
    assert read == b'{"first":"second","third":1}'


# Connections that the server closes while they are idle.


def first_answers_then_cuts(cut: Callable[[Peer], None]) -> Callable[[Peer, Request], object]:
    served: list[Peer] = []

    async def handler(peer: Peer, request: Request) -> None:
        if peer in served:
            cut(peer)
            return
        served.append(peer)
        await peer.answer()

    return handler


@pytest.mark.parametrize("cut", [Peer.close, Peer.reset], ids=["closed", "reset"])
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
async def test_a_call_that_meets_a_closing_connection_is_sent_again(method: str, cut: Callable[[Peer], None]) -> None:
    handler = first_answers_then_cuts(cut)
    async with serving(handler) as server, client_of(server.url) as client:  # type: ignore[arg-type]
        await client.request("GET", PATH)
        assert await client.request(method, PATH, body=b'{"x":1}') == b"{}"
        assert [request.method for request in server.requests] == ["GET", method, method]
        assert server.requests[1].body == server.requests[2].body == b'{"x":1}'
        assert server.connections == 2


@pytest.mark.parametrize("cut", [Peer.close, Peer.reset], ids=["closed", "reset"])
async def test_a_post_is_never_sent_twice(cut: Callable[[Peer], None]) -> None:
    handler = first_answers_then_cuts(cut)
    async with serving(handler) as server, client_of(server.url) as client:  # type: ignore[arg-type]
        await client.request("GET", PATH)
        with pytest.raises(Unreachable):
            await client.request("POST", PATH, body=b"{}")
        assert [request.method for request in server.requests] == ["GET", "POST"]


async def test_a_server_that_cuts_every_connection_is_unreachable() -> None:
    async def cut(peer: Peer, request: Request) -> None:
        peer.close()

    async with serving(cut) as server, client_of(server.url) as client:
        with pytest.raises(Unreachable, match=f"PATCH {PATH}: Server disconnected"):
            await client.request("PATCH", PATH, body=b"{}")
        assert len(server.requests) == 2


async def test_a_429_that_closes_the_connection_tells_how_long_to_wait() -> None:
    async def busy(peer: Peer, request: Request) -> None:
        await peer.answer(429, b"too many", Retry_After="2", Connection="close")

    async with serving(busy) as server, client_of(server.url) as client:
        for _ in range(2):
            with pytest.raises(TooManyRequests) as caught:
                await client.request("GET", PATH)
            assert caught.value.retry_after_s == 2.0
        assert server.connections == 2


# Pools.


async def test_calls_share_a_warm_connection_and_watches_take_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def handler(peer: Peer, request: Request) -> None:
        await (three_lines_and_silence if "watch" in request.target else every)(peer, request)

    monkeypatch.setattr(client_module, "MAX_CONNECTIONS", 1)
    async with serving(handler) as server, client_of(server.url) as client:
        async with (
            client.stream(PATH, {"watch": "1"}, SILENCE_LIMIT_S),
            client.stream(PATH, {"watch": "1"}, SILENCE_LIMIT_S),
            client.stream(PATH, {"watch": "1"}, SILENCE_LIMIT_S),
        ):
            await asyncio.gather(*(client.request("GET", PATH) for _ in range(5)))
        assert server.connections == 4


async def test_connections_are_kept_alive_by_the_kernel() -> None:
    async with (
        serving(three_lines_and_silence) as server,
        client_of(server.url) as client,
        client.stream(PATH, {}, SILENCE_LIMIT_S) as stream,
    ):
        connection = stream._response.connection
        assert connection is not None
        assert connection.transport is not None
        raw = connection.transport.get_extra_info("socket")
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
            credentials.ssl_generation += 1
            await client.request("GET", PATH)
            await client.request("GET", PATH)
            assert server.connections == 3
            go_on.set()
            assert await stream.read() == b"2\n"
            waiting = asyncio.create_task(stream.read())
            await asyncio.sleep(0)
            credentials.ssl_generation += 1
            await client.request("GET", PATH)
            with pytest.raises(Unreachable):
                await waiting
            assert server.connections == 4


async def test_a_rotated_authority_is_trusted_without_a_restart(tmp_path: Path) -> None:
    old, new = make_authority("old"), make_authority("new")
    context = server_context(new, new.issue("server.test"), str(tmp_path))

    def trusting(pem: bytes) -> Tls:
        return Tls(clock=lambda: 0.0, authority=Pem("the pod's certificate authority", data=pem))

    credentials = FakeCredentials(context=trusting(old.pem).context())
    async with serving(every, context) as server, client_of(server.url, credentials) as client:
        with pytest.raises(Unreachable, match="the server's certificate is not trusted"):
            await client.request("GET", PATH)
        assert len(credentials.distrusts) == 1
        credentials.context = trusting(new.pem).context()
        credentials.ssl_generation += 1
        assert await client.request("GET", PATH) == b"{}"


# Proxies.


async def test_a_proxy_that_refuses_is_named_without_its_password() -> None:
    async def refuse(peer: Peer, request: Request) -> None:
        assert request.method == "CONNECT"
        await peer.answer(407)

    async with serving(refuse) as proxy:
        url = proxy.url.replace("http://", "http://jane:hunter2@")
        async with client_of("https://api.test:6443", proxy=url) as client:
            with pytest.raises(Unreachable, match="the proxy answers 407") as caught:
                await client.request("GET", PATH)
        assert proxy.requests[0].headers["proxy-authorization"].startswith("Basic ")
    assert "hunter2" not in str(caught.value)
