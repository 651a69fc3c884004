"""What of a server's items another one is asked for: what it lacks, and what can be copied."""

from __future__ import annotations

import pytest

from memcached_operator.features.handover.move.item_copy import Transferred, transfer
from memcached_operator.servers.server_connection import Endpoint, ErrorKind, Failure
from tests.unit.memcached_operator.features.handover.test_purge import HOST, TIMEOUT_S, Fake, _dump, serving

MARK = b"HD c9 f4076008193 s13\r\n"
NOTHING = b"EN\r\n"


def at(server: Fake) -> Endpoint:
    return Endpoint(HOST, port=server.port)


def value(cas: int) -> bytes:
    return b"HD c%d f0 s3\r\n" % cas


async def transferred(*items: tuple[str, int, bytes, bytes]) -> tuple[object, list[bytes]]:
    """What comes of it, and what the other server is asked for.

    Args:
        items: each its key, its CAS as of the dump, and what either server says of it then.
    """
    lines = {key: f"mg {'IGM= b' if key == '%20c' else key} c f s".encode() for key, *_ in items}
    dump = _dump(*((key, 0, cas) for key, cas, *_ in items))
    ends = {b"mn": [b"MN\r\n"]}
    here = {b"lru_crawler": [dump], **{lines[key]: [says] for key, _, says, _ in items}, **ends}
    there = {lines[key]: [says] for key, _, _, says in items}
    asked = {b"mg": [b"HD\r\n"], **ends}
    async with serving(here) as source, serving({**there, **ends}) as target, serving(asked) as clients:
        found = await transfer(at(source), at(target), at(clients), TIMEOUT_S)
    return found, [line for line in clients.received if line != b"mn"]


@pytest.mark.parametrize(
    ("here", "there", "lacks"),
    [
        (value(5), NOTHING, True),
        (value(5), MARK, True),
        (value(5), value(4), True),
        (value(6), value(4), True),
        (value(5), value(5), False),
        (value(5), value(6), False),
        (MARK, NOTHING, False),
        (NOTHING, NOTHING, False),
    ],
)
async def test_a_value_that_the_other_lacks_is_asked_for(here: bytes, there: bytes, lacks: bool) -> None:
    found, asked = await transferred(("a", 5, here, there))

    assert found == Transferred(items=1, lacking=int(lacks))
    assert asked == [b"mg a"] * lacks


async def test_keys_are_asked_for_in_their_order_and_what_ends_a_word_encoded() -> None:
    found, asked = await transferred(*((key, 5, value(5), NOTHING) for key in ("b", "%20c", "a")))

    assert found == Transferred(items=3, lacking=3)
    assert asked == [b"mg b", b"mg IGM= b", b"mg a"]


async def test_only_what_was_used_lately_is_asked_for_where_that_goes_first_and_the_progress_is_told() -> None:
    dump, told = _dump(("old", 100, 5), ("new", 200, 5)), list[int]()
    ends = {b"mn": [b"MN\r\n"]}
    there = {b"mg new c f s": [NOTHING], **ends}
    asked = {b"mg": [b"HD\r\n"], **ends}
    here = {b"lru_crawler": [dump], b"mg new c f s": [value(5)], **ends}
    async with serving(here) as source, serving(there) as target, serving(asked) as clients:
        places = at(source), at(target), at(clients)
        found = await transfer(*places, TIMEOUT_S, used_since_s=150.0, carried=told.append)

    assert found == Transferred(items=1, lacking=1, is_part=True)
    assert [line for line in clients.received if line != b"mn"] == [b"mg new"]
    assert told[-1] == 1


async def test_a_server_that_does_not_answer_is_a_failure() -> None:
    async with serving({}) as gone:
        pass
    found = await transfer(at(gone), at(gone), at(gone), TIMEOUT_S)

    assert isinstance(found, Failure)
    assert found.kind is ErrorKind.UNREACHABLE


@pytest.mark.parametrize("says", [b"\r\n", b"HD\r\nHD\r\n"])
async def test_a_server_that_answers_too_little_or_too_much_is_a_failure(says: bytes) -> None:
    found, _ = await transferred(("a", 5, value(5), says))

    assert isinstance(found, Failure)
    assert found.kind is ErrorKind.MALFORMED
