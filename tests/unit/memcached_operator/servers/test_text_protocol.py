"""memcached's text protocol: what of it is an answer, and what is none; real memcacheds and worse."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from math import isnan, nan
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from memcached_operator.core.objects.labels import PORT
from memcached_operator.servers.server_connection import MAX_BYTES, Endpoint, ErrorKind, Failure
from memcached_operator.servers.stats_answer import EXTSTORE, FIGURES, StatsAnswer
from memcached_operator.servers.text_protocol import MAX_LINE, answer_of as read_answer, memlimit, stats_of
from operator_runtime.testing.waiting import async_until
from tests.unit.memcached_operator.servers.support import (
    ONE_THREAD,
    SOON_S,
    TIMEOUT_S,
    address,
    answer_of,
    queried,
    running,
    saturated,
    saying,
    talking,
)

WHOLE = [
    (b"END\r\n", {}),
    (b"STAT pid 7\r\nEND\r\n", {b"pid": b"7"}),
    (b"STAT a 1\r\nSTAT b two words\r\nEND\r\n", {b"a": b"1", b"b": b"two words"}),
    (b"STAT domain_socket \r\nEND\r\n", {b"domain_socket": b""}),
]


@pytest.mark.parametrize(("received", "stats"), WHOLE)
def test_the_lines_of_an_answer_become_values_once_all_are_there(received: bytes, stats: dict[bytes, bytes]) -> None:
    assert stats_of(received) == stats
    for length in range(len(received)):
        assert stats_of(received[:length]) is None


ITEMS = answer_of({"items:1:evicted": 5, "items:1:outofmemory": 6, "items:63:evicted": 7, "items:64:evicted": 8})
ANSWERS = [
    (answer_of({"uptime": 7}) + ITEMS, [(1, 5, 6), (63, 7, nan)]),
    (answer_of({"uptime": 7, "domain": "xEND"}) + answer_of({}), []),
    (answer_of({"uptime": 7}) + b"ERROR\r\n", []),
    (b"END\r\nEND\r\n", []),
]


@pytest.mark.parametrize(("received", "classes"), ANSWERS)
def test_an_answer_is_whole_with_its_size_classes(received: bytes, classes: list[tuple[float, ...]]) -> None:
    found = read_answer(received)
    assert isinstance(found, StatsAnswer)
    assert str([(each.number, each.evicted, each.outofmemory) for each in found.size_classes()]) == str(
        [(slab, *map(float, figures)) for slab, *figures in classes]
    )
    assert all(read_answer(received[:length]) is None for length in range(len(received)))


@pytest.mark.parametrize(
    "received",
    [
        b"STAT a 1\r\n" * (MAX_BYTES // 10 + 1),
        answer_of({"a": 1}) + b"HTTP/1.1 400\r\n",
        answer_of({"a": 1}) + b"STAT b 1\r\n" * (MAX_BYTES // 10),
        answer_of({"a": 1}) + b"x" * (MAX_LINE + 1),
    ],
)
def test_what_is_no_pair_of_answers_is_strange(received: bytes) -> None:
    failed(read_answer(received), ErrorKind.MALFORMED)


OTHERS = [
    (b"ERROR\r\n", ErrorKind.REFUSED, "it answers ERROR"),
    (b"CLIENT_ERROR unauthenticated\r\n", ErrorKind.DENIED, "it requires a login"),
    (b"SERVER_ERROR out of memory\r\n", ErrorKind.REFUSED, "it answers SERVER_ERROR out of memory"),
    (b"SERVER_ERROR \x1b[31m\xff\r\n", ErrorKind.REFUSED, "it answers SERVER_ERROR ?[31m?"),
    (b"ERROR Too many open connections\r\n", ErrorKind.SATURATED, "turns others away"),
    (b"HTTP/1.1 400 Bad Request\r\n", ErrorKind.MALFORMED, "does not speak"),
    (b"STAT pid 7\r\nHello\r\nEND\r\n", ErrorKind.MALFORMED, "does not speak"),
    (b"STAT pid\r\nEND\r\n", ErrorKind.MALFORMED, "does not speak"),
    (b"x" * (MAX_LINE + 1), ErrorKind.MALFORMED, "does not speak"),
    (b"STAT a 1\r\n" + b"STAT b" + b"x" * MAX_LINE, ErrorKind.MALFORMED, "does not speak"),
    (b"STAT a 1\r\n" * (MAX_BYTES // 10 + 1), ErrorKind.MALFORMED, "does not speak"),
]


def failed(received: object, kind: ErrorKind, why: str = "") -> None:
    assert isinstance(received, Failure), received
    assert received.kind is kind
    assert why in received.why


@pytest.mark.parametrize(("received", "kind", "why"), OTHERS)
def test_what_is_no_answer_is_a_failure_with_a_name(received: bytes, kind: ErrorKind, why: str) -> None:
    failed(stats_of(received), kind, why)


@given(st.lists(st.sampled_from([b"STAT ", b"END\r\n", b"ERROR", b"\r\n", b"\n", b" ", b"\x00", b"pid 7"])))
def test_no_bytes_raise_an_exception(pieces: list[bytes]) -> None:
    found = stats_of(b"".join(pieces))
    assert found is None or isinstance(found, Failure | dict)


def test_an_answer_keeps_each_figure_and_knows_which_are_missing() -> None:
    stats = {name.encode(): str(place).encode() for place, name in enumerate(FIGURES) if name != "evictions"}
    answer = StatsAnswer.of(stats | {b"uptime": b"many", b"version": b"1.6.45"})
    for place, name in enumerate(FIGURES):
        assert isnan(answer.number(name)) if name in ("evictions", "uptime") else answer.number(name) == place
    assert all(isnan(answer.number(name)) for name in EXTSTORE)
    with_disk = StatsAnswer.of({name.encode(): str(place).encode() for place, name in enumerate(EXTSTORE)})
    assert [with_disk.number(name) for name in EXTSTORE] == [*range(len(EXTSTORE))]
    assert answer.version == "1.6.45"


NUMBERS = [
    ("0", 0.0),
    ("18446744073709551615", 2.0**64),
    ("0.012345", 0.012345),
    *(
        (received, None)
        for received in ("9" * 21, "9" * 5_000, "1." + "9" * 5_000, "inf", "nan", "1e400", "-1", "1_000", "", "1 2")
    ),
]


@pytest.mark.parametrize(("received", "number"), NUMBERS)
def test_a_figure_is_what_memcached_writes_and_nothing_else_that_python_takes_for_a_number(
    received: str, number: float | None
) -> None:
    found = StatsAnswer.of({b"curr_items": received.encode()}).number("curr_items")
    assert isnan(found) if number is None else found == number


@pytest.mark.parametrize(
    ("received", "shown"),
    [("1.6.18", "1.6.18"), ("1.7.0-rc1_3-gabc", "1.7.0-rc1_3-gabc"), ("", ""), ("1.6\x1b[31m", ""), ("9" * 65, "")],
)
def test_a_version_is_shown_if_it_looks_like_one(received: str, shown: str) -> None:
    assert StatsAnswer.of({b"version": received.encode()}).version == shown


async def test_a_real_memcached_gives_every_figure_but_those_of_its_disk() -> None:
    async with running("-m", "64", "-c", "100", "-I", "1m", "-o", "modern") as where:
        answer = await queried(where, TIMEOUT_S)
    assert isinstance(answer, StatsAnswer)
    assert answer.version.startswith("1.")
    assert [name for name in FIGURES if isnan(answer.number(name))] == []
    assert answer.number("limit_maxbytes") == 64 << 20
    assert answer.number("max_connections") == 100
    assert answer.number("curr_connections") >= 1


async def test_a_real_memcached_that_has_all_its_connections_is_saturated_until_one_is_given_back() -> None:
    async with saturated() as (where, held):
        failed(await queried(where, TIMEOUT_S), ErrorKind.SATURATED)
        for each in held:
            each.close()

        async def stats_cache() -> bool:
            return isinstance(await queried(where, TIMEOUT_S), StatsAnswer)

        await async_until("it still turns connections away", stats_cache)


async def test_a_server_on_which_nobody_listens_is_unreachable() -> None:
    failure = await queried(address(), TIMEOUT_S)
    assert failure == Failure(ErrorKind.UNREACHABLE, "connection refused")


@pytest.mark.parametrize("received", [b"", b"STAT pid 7\r\n"])
async def test_a_server_that_says_nothing_or_never_ends_its_answer_is_silent(received: bytes) -> None:
    async with talking(saying(received)) as where:
        failed(await queried(where, SOON_S), ErrorKind.SILENT, f"no answer within {SOON_S} s")


@pytest.mark.parametrize("received", [b"", b"STAT pid 7\r\n"])
async def test_a_server_that_closes_in_the_middle_is_closed(received: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(received)

    async with talking(talk) as where:
        failed(await queried(where, TIMEOUT_S), ErrorKind.CLOSED)


@pytest.mark.parametrize("garbage", [b"x", b"STAT a 1\r\n"])
async def test_a_server_that_sends_without_end_is_given_up(garbage: bytes) -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(garbage * 10_000)
            await writer.drain()

    async with talking(talk) as where:
        failed(await queried(where, TIMEOUT_S), ErrorKind.MALFORMED)


async def test_a_limit_is_set_and_read_back_or_refused_in_memcacheds_words() -> None:
    async with running("-m", "64", *ONE_THREAD) as where:
        assert await memlimit(Endpoint(where), 128, TIMEOUT_S) is None
        answer = await queried(where, TIMEOUT_S)
        assert isinstance(answer, StatsAnswer)
        assert answer.number("limit_maxbytes") == 128 << 20
        for mib, word in ((7, "MEMLIMIT_TOO_SMALL"), (10**10, "MEMLIMIT_ADJUST_FAILED")):
            failed(await memlimit(Endpoint(where), mib, TIMEOUT_S), ErrorKind.REFUSED, word)


@pytest.fixture
def disk() -> Iterator[str]:
    """A folder that is open to the user whose rights memcached takes."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield folder


async def test_which_items_go_to_the_disk_is_set_and_read_back(disk: str) -> None:
    async with running("-m", "64", "-o", f"ext_page_size=8,ext_path={disk}/items:64m", *ONE_THREAD) as where:
        assert await memlimit(Endpoint(where), 128, TIMEOUT_S, disk_from=4096) is None


DISKS = [
    (answer_of({"maxbytes": 128 << 20, "ext_item_size": 512}), ErrorKind.REFUSED, "512 after extstore item_size 4096"),
    (answer_of({"maxbytes": 64 << 20, "ext_item_size": 4096}), ErrorKind.REFUSED, "67108864 after cache_memlimit 128"),
    (answer_of({"maxbytes": 128 << 20}), ErrorKind.MALFORMED, "does not speak"),
]


@pytest.mark.parametrize(("settings", "kind", "why"), DISKS)
async def test_a_disk_that_cannot_be_read_back_is_a_failure(settings: bytes, kind: ErrorKind, why: str) -> None:
    async with talking(saying(b"OK\r\nOK\r\n" + settings)) as where:
        failed(await memlimit(Endpoint(where), 128, TIMEOUT_S, disk_from=4096), kind, why)


LIMITS = [
    (b"OK\r\n" + answer_of({"maxbytes": 64 << 20}), ErrorKind.REFUSED, "maxbytes is 67108864 after cache_memlimit 128"),
    (b"OK\r\n" + answer_of({"maxconns": 1024}), ErrorKind.MALFORMED, "does not speak"),
    (b"ERROR\r\n" + answer_of({"maxbytes": 64 << 20}), ErrorKind.REFUSED, "it answers ERROR"),
    (b"ERROR Too many open connections\r\n", ErrorKind.SATURATED, "turns others away"),
    (b"x" * (MAX_LINE + 1), ErrorKind.MALFORMED, "does not speak"),
    (b"OK\r\nSTAT maxbytes", ErrorKind.SILENT, "no answer"),
    *(
        (b"OK\r\n" + answer_of({"maxbytes": "9" * digits}), ErrorKind.MALFORMED, "does not speak")
        for digits in (21, MAX_LINE - 20, 5_000)
    ),
    (b"O", ErrorKind.SILENT, "no answer"),
]


@pytest.mark.parametrize(("received", "kind", "why"), LIMITS)
async def test_a_limit_that_cannot_be_read_back_is_a_failure(received: bytes, kind: ErrorKind, why: str) -> None:
    async with talking(saying(received)) as where:
        response = await memlimit(Endpoint(where), 128, SOON_S if kind is ErrorKind.SILENT else TIMEOUT_S)
    failed(response, kind, why)


async def test_an_address_of_version_6_is_asked_as_well() -> None:
    async with talking(saying(answer_of({"uptime": 7}) + answer_of({}))) as where:
        assert isinstance(await queried(f"::ffff:{where}", TIMEOUT_S), StatsAnswer)


async def test_a_connection_that_is_not_made_in_time_is_given_up() -> None:
    where = address()
    with socket.create_server((where, PORT), backlog=0), ExitStack() as held:
        # The kernel answers nobody any more when so many wait to be accepted.
        for _ in range(4):
            waiting = held.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex((where, PORT))
        failure = await queried(where, SOON_S)
    assert failure == Failure(ErrorKind.UNREACHABLE, f"no connection within {SOON_S} s")
