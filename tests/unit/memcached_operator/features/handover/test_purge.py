"""What servers answer that hand over, and such as cannot or misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest

from memcached_operator.features.handover.purge import Purged, empty, purge
from memcached_operator.features.handover.server_state import HandoverState, Unsupported, state_of
from memcached_operator.servers.server_connection import ErrorKind, Failure

HOST = "127.0.0.1"
TIMEOUT_S = 20.0
FORMER_LIST_ENDED_S = 1_000
STATS = b"STAT threads 4\r\nEND\r\n"
COUNTERS = b"STAT user_handover_generation 28\r\nSTAT user_handover_filled 5\r\nSTAT user_handover_failed 1\r\n"
NOW_S = FORMER_LIST_ENDED_S + 500
# Of the server's clock, which is ahead.
AHEAD_S = 7_000
OLD, USED = AHEAD_S + FORMER_LIST_ENDED_S + 3, AHEAD_S + FORMER_LIST_ENDED_S + 4


@dataclass
class Fake:
    """A server by what it answers to a command, by its first word; of several answers the last remains."""

    answers: dict[bytes, list[bytes]]
    port: int = 0
    received: list[bytes] = field(default_factory=list)

    connections: list[asyncio.Task[None]] = field(default_factory=list)

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while line := await reader.readline():
                self.received.append(line.rstrip())
                answers = self.answers.get(line.rstrip(), self.answers.get(line.split()[0], [b""]))
                writer.write(answers.pop(0) if len(answers) > 1 else answers[0])
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def serving(answers: dict[bytes, list[bytes]]) -> AsyncIterator[Fake]:
    fake = Fake(answers)
    server = await asyncio.start_server(fake.connected, HOST, 0)
    fake.port = server.sockets[0].getsockname()[1]
    async with server:
        yield fake
        await asyncio.gather(*fake.connections)


@pytest.mark.parametrize(
    ("proxy", "state"),
    [
        (COUNTERS + b"END\r\n", HandoverState(threads=4, generations=28)),
        (b"STAT cmd_mg 0\r\nEND\r\n", Unsupported()),
        (b"END\r\n", Unsupported()),
        (b"ERROR\r\n", Unsupported()),
        (COUNTERS.replace(b"28", b"x") + b"END\r\n", ErrorKind.MALFORMED),
        (b"220 mail.example.com\r\n", ErrorKind.MALFORMED),
    ],
)
async def test_a_server_says_how_far_it_is_or_that_it_cannot(proxy: bytes, state: object) -> None:
    async with serving({b"stats": [STATS], b"stats proxy": [proxy]}) as fake:
        found = await state_of(HOST, TIMEOUT_S, port=fake.port)

    assert (found.kind if isinstance(found, Failure) else found) == state


async def test_what_has_no_statistics_is_not_taken_for_a_memcached_that_cannot() -> None:
    async with serving({b"stats": [b"END\r\n"], b"stats proxy": [b"ERROR\r\n"]}) as fake:
        found = await state_of(HOST, TIMEOUT_S, port=fake.port)

    assert isinstance(found, Failure)
    assert found.kind is ErrorKind.MALFORMED


def test_a_generation_is_confirmed_when_each_thread_has_read_it() -> None:
    assert HandoverState(threads=4, generations=28).has_confirmed(7)
    assert not HandoverState(threads=4, generations=27).has_confirmed(7)


def _dump(*items: tuple[str, int, int]) -> bytes:
    """Of items, each a key, when it was last used, and its CAS."""
    lines = (f"key={key} exp=-1 la={used} cas={cas} fetch=no cls=1 size=67 flags=0 \n" for key, used, cas in items)
    return b"OK\r\n" + "".join(lines).encode() + b"END\r\n"


async def _purged(dumps: Sequence[bytes], *, changed: int = 0, timeout_s: float = TIMEOUT_S) -> tuple[object, Fake]:
    stats = b"STAT time %d\r\nEND\r\n" % (NOW_S + AHEAD_S)
    answers = {b"stats": [stats], b"lru_crawler": [*dumps], b"mn": [b"EX\r\n" * changed + b"MN\r\n"]}
    async with serving(answers) as fake:
        return await purge(HOST, FORMER_LIST_ENDED_S, timeout_s, port=fake.port, clock=lambda: NOW_S), fake


async def test_what_was_not_used_since_the_former_list_by_the_servers_clock_is_deleted_by_its_cas() -> None:
    found, fake = await _purged([_dump(("a", OLD, 1), ("b", USED, 2), ("%20c", OLD, 3), ("d", OLD, 4))], changed=1)

    assert found == Purged(items=4, deleted=2)
    assert fake.received[2:] == [b"md a q C1", b"md IGM= b q C3", b"md d q C4", b"mn"]


async def test_a_server_whose_crawler_is_busy_is_asked_again() -> None:
    busy = b"BUSY currently processing crawler request\r\n"
    found, _ = await _purged([busy, b"OK\r\nERROR locked try again later\r\n", _dump(("a", OLD, 1))])

    assert found == Purged(items=1, deleted=1)


@pytest.mark.parametrize("flushed", [b"OK\r\n", b"CLIENT_ERROR flush_all not allowed\r\n"])
async def test_an_emptied_server_loses_all_at_once_and_then_each_item_that_is_left(flushed: bytes) -> None:
    answers = {
        b"flush_all": [flushed],
        b"stats": [b"STAT time %d\r\nEND\r\n" % NOW_S],
        b"lru_crawler": [_dump(("a", OLD, 1), ("b", NOW_S + AHEAD_S, 2))],
        b"mn": [b"MN\r\n"],
    }
    async with serving(answers) as fake:
        assert await empty(HOST, TIMEOUT_S, port=fake.port) == Purged(items=2, deleted=2)

    assert fake.received[0] == b"flush_all"
    assert fake.received[3:] == [b"md a q C1", b"md b q C2", b"mn"]


async def test_a_server_that_answers_nothing_to_be_emptied_says_so_in_time() -> None:
    async with serving({}) as fake:
        silent = await empty(HOST, 0.2, port=fake.port)
    async with serving({b"flush_all": [b"x" * 5_000]}) as fake:
        malformed = await empty(HOST, TIMEOUT_S, port=fake.port)

    assert [each.kind for each in (silent, malformed) if isinstance(each, Failure)] == [
        ErrorKind.SILENT,
        ErrorKind.MALFORMED,
    ]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"ERROR metadump not allowed\r\n", ErrorKind.REFUSED),
        (b"CLIENT_ERROR lru crawler disabled\r\n", ErrorKind.REFUSED),
        (b"220 mail.example.com\r\n", ErrorKind.MALFORMED),
        (b"x" * 5_000, ErrorKind.MALFORMED),
    ],
)
async def test_a_server_that_is_not_purged_says_why(answer: bytes, kind: ErrorKind) -> None:
    found, _ = await _purged([answer])

    assert isinstance(found, Failure)
    assert found.kind is kind


async def test_a_purge_ends_in_time_and_where_nobody_listens() -> None:
    silent, fake = await _purged([b"OK\r\n"], timeout_s=0.2)
    nobody = await purge(HOST, FORMER_LIST_ENDED_S, TIMEOUT_S, port=fake.port)

    assert isinstance(silent, Failure)
    assert silent.kind is ErrorKind.SILENT
    assert nobody == Failure(ErrorKind.UNREACHABLE, "connection refused")
