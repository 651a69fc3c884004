"""TLS and logins with servers: real memcacheds, and worse."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memcached_operator.servers.server_connection import (
    Endpoint,
    ErrorKind,
    Failure,
    Login,
    client_context,
    without_certificate,
)
from memcached_operator.servers.stats_answer import StatsAnswer
from memcached_operator.servers.text_protocol import query
from tests.certificates import Authority, mounted, tls_arguments
from tests.unit.memcached_operator.servers.support import ONE_THREAD, SOON_S, TIMEOUT_S, Talk, running, saying, talking

AUTHORITY = Authority()
SERVER = AUTHORITY.issue("shop.default.svc")
FILES = {**SERVER.files, "password-file": b"ann:secret\nbob:x\n"}
ANN, WRONG = Login("ann", "secret"), Login("ann", "wrong")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with mounted(FILES) as files:
        yield files


def showing(authority: Authority, folder: Path) -> ssl.SSLContext:
    """A context with a client certificate of this authority."""
    pair, context = authority.issue("client"), client_context()
    (folder / "client.pem").write_bytes(pair.pem + pair.key_pem)
    context.load_cert_chain(folder / "client.pem")
    return context


def trouble(response: tuple[StatsAnswer | Failure, bytes]) -> tuple[ErrorKind, str]:
    assert isinstance(response[0], Failure), response[0]
    return response[0]


async def test_a_server_that_speaks_tls_answers_and_shows_its_certificate(folder: Path) -> None:
    async with running(*tls_arguments(folder), *ONE_THREAD) as where:
        assert trouble(await query(Endpoint(where), TIMEOUT_S))[0] is ErrorKind.CLOSED, "in plain text"
        response = await query(Endpoint(where, without_certificate()), TIMEOUT_S)
    assert isinstance(response[0], StatsAnswer)
    assert response[0].number("curr_connections") >= 1
    assert response[1] == SERVER.der


async def test_a_required_client_certificate_lets_in_and_without_it_the_servers_own_is_seen(folder: Path) -> None:
    async with running(*tls_arguments(folder, verify=2), *ONE_THREAD) as where:
        for _ in range(5):
            without = await query(Endpoint(where, without_certificate()), TIMEOUT_S)
            assert trouble(without) == (ErrorKind.DENIED, "it requires a client certificate")
            assert without[1] == SERVER.der
        foreign = await query(Endpoint(where, showing(Authority("other"), folder), has_certificate=True), TIMEOUT_S)
        kind, why = trouble(foreign)
        assert kind is ErrorKind.DENIED
        assert why.startswith("it refuses the client certificate with ")
        right = await query(Endpoint(where, showing(AUTHORITY, folder), has_certificate=True), TIMEOUT_S)
        assert isinstance(right[0], StatsAnswer)


@pytest.mark.parametrize("tls", [True, False])
async def test_a_login_lets_ask_and_without_it_or_with_another_one_nothing_is_said(folder: Path, tls: bool) -> None:
    context = without_certificate() if tls else None
    arguments = tls_arguments(folder) if tls else ()
    async with running_with_passwords(folder, *arguments) as where:
        assert trouble(await query(Endpoint(where, context), TIMEOUT_S)) == (ErrorKind.DENIED, "it requires a login")
        wrong = await query(Endpoint(where, context, login=WRONG), TIMEOUT_S)
        assert trouble(wrong) == (ErrorKind.DENIED, "it refuses the login of ann")
        right = await query(Endpoint(where, context, login=ANN), TIMEOUT_S)
        assert isinstance(right[0], StatsAnswer)


@asynccontextmanager
async def running_with_passwords(folder: Path, *arguments: str) -> AsyncIterator[str]:
    async with running("-Y", f"{folder}/password-file", *arguments, *ONE_THREAD) as where:
        yield where


WORSE: list[tuple[bytes, ErrorKind]] = [
    (b"", ErrorKind.SILENT),
    (b"\x16\x03\x03", ErrorKind.SILENT),
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", ErrorKind.MALFORMED),
    (b"\x15\x03\x03\x00\x02\x02\x28", ErrorKind.REFUSED),
    (b"ERROR Too many open connections\r\n", ErrorKind.SATURATED),
]


@pytest.mark.parametrize(("response", "kind"), WORSE)
async def test_what_answers_something_else_in_a_handshake_is_a_failure_with_a_name(
    response: bytes, kind: ErrorKind
) -> None:
    async with talking(at_once(response)) as where:
        endpoint = Endpoint(where, without_certificate())
        found = await query(endpoint, SOON_S if kind is ErrorKind.SILENT else TIMEOUT_S)
    assert trouble(found)[0] is kind
    assert found[1] == b""


def at_once(response: bytes) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response)
        await reader.read()

    return talk


LOGINS = [
    (b"CLIENT_ERROR authentication failure\r\n", ErrorKind.DENIED),
    (b"ERROR\r\n", ErrorKind.REFUSED),
    (b"ERROR Too many open connections\r\n", ErrorKind.SATURATED),
    (b"x" * 5_000, ErrorKind.MALFORMED),
    (b"STORED\r\nERROR\r\n", ErrorKind.REFUSED),
    (b"STORED\r\n", ErrorKind.SILENT),
]


@pytest.mark.parametrize(("response", "kind"), LOGINS)
async def test_what_a_login_can_come_to(response: bytes, kind: ErrorKind) -> None:
    async with talking(saying(response)) as where:
        found = await query(Endpoint(where, login=ANN), SOON_S if kind is ErrorKind.SILENT else TIMEOUT_S)
    assert trouble(found)[0] is kind


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(Endpoint("10.0.0.1", login=ANN))
