"""Each command on its own: a server that fills itself answers what it answers when it does not."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from operator_runtime.testing.waiting import async_eventually
from tests.handover.changes import started
from tests.handover.scripts import cluster_of, needs_memcached
from tests.handover.servers import connected

pytestmark = needs_memcached

LONGEST = "k" * 250
SIZES = range(700, 1301, 6)
"""Of values: with their lines they have about as much as an answer may have that the script makes."""
TOMB = "F4076008193"
COUNTS = ("incr {} 1", "decr {} 1", "ma {} D1 c", "ma {} MD c v", "ma {} N0 J1 c")
OF_MEMCACHED = 1 << 60
"""Less than the CAS of a write, and more than what memcached counts itself."""
# Those of no 32 bits memcached takes as another, or refuses.
LIFETIMES = (4102444800, 2147483647, 2147483648, 4294967295, 4294967296, 99999999999, 1 << 63, -1, -(1 << 31) - 1, "+9")


def of_lifetime(lifetime: object) -> Sequence[str]:
    """Commands that give a key a lifetime, where it has a value before and where it has none."""
    return (
        *(f"set life 0 0 1\r\na\r\nset life 0 {lifetime} 1\r\nb", f"add life 0 {lifetime} 1\r\nc"),
        *(f"set life 0 0 1\r\na\r\nreplace life 0 {lifetime} 1\r\nd", "set life 0 0 1\r\na"),
        *(f"touch life {lifetime}", f"gat {lifetime} life", f"mg life T{lifetime} v", f"md life I T{lifetime}"),
        *(f"delete life\r\nms life 1 T{lifetime}\r\ne", f"ms life 1 ME T{lifetime}\r\nf", f"mg life N{lifetime} v"),
        *(f"delete life\r\nma life N{lifetime} J5 v", f"ma life T{lifetime} v", f"ms life 1 MA N{lifetime}\r\n6"),
    )


COMMANDS = (
    *("set a 1 0 1 noreply\r\nz", "gets a", "get a", "mg a f v", "mg a k f O1", "mg a v f c q", "get none a none"),
    *(
        "ms a 2 T0 F5\r\nab",
        "ms m 2 T10 c\r\nab",
        "ms m 2 q\r\nab",
        "mg m t v",
        "mg none v q",
        "mg none v",
        "gets none",
    ),
    *("set a%1%d 0 0 1\r\np", "get a%1%d", "set a%1%d 0 0 1\r\nq", "mg a%1%d v", "get a none a%1%d m"),
    *("set a\tb 0 0 1\r\nx", "get a\tb", "append a\tb 0 0 1\r\ny", "mg a\tb v", "delete a\tb noreply", "get a\tb"),
    *("incr n 1", "set n 0 0 1\r\n5", "incr n 3", "decr n 1 noreply", "get n", "ma new N0 J13 v", "ma new v"),
    *("append n 0 0 1\r\n7", "get n", "add n 0 0 1\r\n1", "add m 0 0 1 noreply\r\n1", "get m"),
    *("replace m 4 0 2\r\nhi", "get m", "replace none 0 0 1\r\nx", "prepend m 0 0 1\r\no", "get m"),
    *("touch m 100", "touch none 1", "touch m 100 noreply", "gat 100 m", "gats 100 m", "gat 1 none"),
    *("delete m", "delete m", "delete n noreply", "get n", "md a q", "md a", "cas none 0 0 1 5\r\nx"),
    *("mg won N30 v t", "mg won v t", "ms YWJj 2 b S2\r\nab", "ms YWJj 2 b\r\nab", "mg YWJj b k v", "md YWJj b"),
    *("set size 0 0 13\r\n1234567890123", "get size", "mg size s v", "set gone 0 -1 1\r\nx", "get gone"),
    *("set noreply 0 0 1\r\nx", "get noreply", "set noreply 0 0 1 noreply\r\ny", "gat 10 noreply", "get noreply"),
    *("touch noreply 10", "delete noreply noreply", "get noreply", "gets noreply", "gat 10 noreply"),
    *(f"set {LONGEST} 0 0 1\r\nx", f"get {LONGEST}", f"touch {LONGEST} 10", f"append {LONGEST} 0 0 1\r\ny"),
    *(f"get {LONGEST}", f"delete {LONGEST}", f"delete {LONGEST}", f"get {LONGEST}", f"set {LONGEST}k 0 0 1\r\nx"),
    *(f"set {LONGEST[:200]} 0 0 1\r\nx", f"delete {LONGEST[:-1]}", f"delete {LONGEST[:200]}", f"get {LONGEST[:201]}"),
    *("mg nobody k", "mg nobody O12 q", "mg nobody k O12", "mg nobody O12 k f c q", "mg nobody f k t", "mg nobody q"),
    *("mg bm9i b k f", "mg bm9i b O12 k q", "ms bm9i 1 b\r\nx", "mg bm9i b k f", "mg bm9i k b s q", "mg bm9i b"),
    *("set d 0 0 1 \r\n1", "touch d 10 0 noreply", "incr d 1 0 noreply", "decr d 1 0  noreply ", "delete d 0 noreply"),
    *("get d", "set d 0 0 1 0 noreply\r\n2", "append d 0 0 1 0 noreply\r\n3", "cas d 0 0 1 5 0 noreply\r\n3", "get d"),
    *("set noreply 0 0 1\r\n1", "delete noreply", "get noreply", "delete noreply", "incr noreply 1", "get a noreply"),
    *("mg noreply v k", "ms noreply 1\r\n1", "md noreply", "md noreply"),
    *("set text 0 0 1\r\na", "incr text 1 noreply", "incr text 1", "incr text a noreply", "touch text a noreply"),
    *("ma text q", "ma text", "ma nothing q", "ma counted N0 J13 v q", "ma counted N0 J13 v q", "ma counted v"),
    *("md nothing q", "md nothing", "md text C1 q", "md text C1", "ms nothing 1 MR q\r\n1", "ms nothing 1 MR\r\n1"),
    *("add text 0 0 1 noreply\r\na", "cas text 0 0 1 1 noreply\r\na", "replace nothing 0 0 1 noreply\r\na"),
    *("append nothing 0 0 1 noreply\r\na", "delete nothing noreply", "ms text 1 ME q\r\n1", "ms text 1 C1 q\r\n1"),
    *("set handover:none 0 0 1\r\n1", "set this 0 0 1\r\n1", "ms text 1 q\r\n1", "mg nothing v q", "mg nothing q"),
    *("set text 0 0 1 noreply\r\n1", "delete text noreply", "delete handover:none", "delete this"),
    *("set n 0 0 2\n10", "incr n 10\nget n", "decr n 10 \nget n", "touch n 100\nmg n t", "mg n v\nmg none v\nget n"),
    *(
        "delete n noreply\nget n",
        "ms n 2\n10",
        "ms n 2 q\n11",
        "ma n D12\nget n",
        "append n 0 0 2 noreply\n12",
        "gat 100 n\nget n",
    ),
    *("get n\ngets none\nmd n\nget n", "cas n 0 0 2 7\nab", "ms bm9i 1 b\nx", "mg bm9i v b\nmd bm9i b\nmg bm9i v b"),
    *("ms high 1 E9000000000000000000\r\n1", "mg high v", "ms high 1 E18446744073709551615\r\n2", "mg high v"),
    *("set stale 0 0 1\r\n1", "md stale I", "mg stale N30 v", "mg stale N30 v", "md stale I", "mg stale T40 v"),
    *("mg stale v", "md stale I", "touch stale 40", "mg stale k", "mg stale v"),
    *(f"{command}\r\nmg life t" for lifetime in LIFETIMES for command in of_lifetime(lifetime)),
    *("set number 4294967295 0 1\r\n1", "set number 4294967296 0 1\r\n2", "get number", "set number -1 0 1\r\n3"),
    *("get number", "set number 0 x 1\r\n4", "get number", "append number 0 4102444800 1\r\n5", "get number"),
    *(f"set {LONGEST} 0 0 {size}\r\n{'x' * size}\r\nmg {LONGEST} k v\r\nget {LONGEST}" for size in SIZES),
)
"""Keys are used again and again; some are as long as they may be, or what a pattern or a command has a use for."""


async def _answers(port: int) -> list[str]:
    async with connected(port) as client:
        answers = [await client.answer(command) for command in COMMANDS]
    # The CAS of a write is the server's to choose, and a second may pass.
    answers = [re.sub(r"(?m)( c|^VALUE \S+ \d+ \d+ )\d+", r"\1N", answer) for answer in answers]
    answers = [re.sub(r" t\d{5,}", " tFAR", answer) for answer in answers]
    return [re.sub(r" t(\d+)", lambda found: f" t{round(int(found[1]), -1)}", answer) for answer in answers]


async def test_servers_that_have_peers_had_some_or_never_had_any_answer_as_memcached_does(folder: Path) -> None:
    cluster = cluster_of(folder, 1)
    async with started(cluster, 3):
        first = cluster.servers[0]
        plain = await _answers(first.peer_port)
        for step in (None, cluster.fill, cluster.hide):
            if step is not None:
                await step()
            async with connected(first.peer_port) as inner:
                assert await inner.answer("flush_all") == "OK\r\n"

            answers = await _answers(first.port)

            assert list(zip(COMMANDS, answers, strict=True)) == list(zip(COMMANDS, plain, strict=True))


async def test_a_value_that_a_peer_has_and_that_may_not_stay_is_shown_whole(folder: Path) -> None:
    async with (
        started(cluster_of(folder, 1), 2, filled=True) as (first, second),
        connected(first.port) as client,
        connected(first.peer_port) as inner,
        connected(second.peer_port) as peer,
    ):
        for key, size in itertools.product(("key", LONGEST), SIZES):
            reads = (f"get {key}", f"gets {key}", f"get none {key}", f"mg {key} v", f"mg {key} k f c Oopaque s v")
            await peer.answer(f"set {key} 7 0 {size}\r\n{'x' * size}")
            await inner.answer(f"ms {key} 13 {TOMB} T3\r\nhandover mark")  # of another write

            assert await client.answer(*reads) == await peer.answer(*reads), (key, size)
            assert await inner.answer(f"mg {key} f") == f"HD {TOMB.lower()}\r\n"


async def test_a_number_has_a_cas_that_no_server_gives_again(folder: Path) -> None:
    """Each time, as one that memcached counts itself is another server's as well."""
    async with (
        started(cluster_of(folder, 1), 2, filled=True) as (first, second),
        connected(first.port) as client,
        connected(second.port) as other,
    ):
        for index, command in enumerate(COUNTS * 4):
            number = f"number-{index}"
            await client.answer(f"set {number} 3 100 3\r\n 99", f"set {number} 3 100 1\r\n9")
            tokens: list[int] = []
            for each in (client, other, other, client):
                answer = await each.answer(command.format(number))
                _, _, flags, _, token, *_ = (await each.answer(f"gets {number}")).split()
                tokens.append(int(token))

                assert flags == "3"
                assert await each.answer(f"mg {number} t") in ("HD t100\r\n", "HD t99\r\n", "HD t98\r\n")
                assert int(token) > OF_MEMCACHED
                assert " c" not in command or f" c{token}" in answer
            assert len(set(tokens)) == len(tokens), tokens
            assert await client.answer(f"cas {number} 0 0 2 {tokens[1]}\r\n50") == "EXISTS\r\n"
            assert await other.answer(f"cas {number} 0 0 2 {tokens[-1]}\r\n50") == "STORED\r\n"


async def test_a_server_that_never_had_peers_hides_the_marks_of_others(folder: Path) -> None:
    """As in a pod that keeps its address, while others have it as a peer and nobody writes its file."""
    async with (
        started(cluster_of(folder, 1), 1) as (server,),
        connected(server.port) as client,
        connected(server.peer_port) as peer,
    ):
        for index, (command, answer) in enumerate(
            {
                "get {}": "END\r\n",
                "gets {} none": "END\r\n",
                "mg {} v": "EN\r\n",
                "gat 10 {}": "END\r\n",
                "incr {} 1": "NOT_FOUND\r\n",
                "append {} 0 0 1\r\nx": "NOT_STORED\r\n",
                "add {} 0 0 1\r\nx": "STORED\r\n",
            }.items()
        ):
            await peer.answer(f"ms {index} 13 {TOMB} T3\r\nhandover mark")
            assert await client.answer(command.format(index)) == answer


async def test_a_server_that_never_had_peers_has_no_bound_for_values_on_their_way(folder: Path) -> None:
    cluster, value = cluster_of(folder, 1, memory_mib=512), "x" * 900_000
    async with started(cluster, 1):

        async def store(client: int) -> str:
            async with connected(cluster.servers[0].port) as connection:
                adds = (f"add key-{client} 0 0 {len(value)}\r\n{value}",) * 8
                return await connection.answer(*adds, f"ms key-{client} {len(value)}\r\n{value}")

        answers = await asyncio.gather(*map(store, range(20)))

        assert set(answers) == {"STORED\r\n" + "NOT_STORED\r\n" * 7 + "HD\r\n"}


async def test_a_server_whose_peers_file_is_taken_away_answers_alone(folder: Path) -> None:
    async with started(cluster_of(folder, 1), 2, filled=True) as (server, peer):
        server.forget()
        await async_eventually(
            server.state, lambda state: state.generations == 0, ignoring=OSError, what="it reads that it has no peers"
        )
        peer.kill()
        async with connected(server.port) as client:
            answer = await client.answer("set k 0 0 1\r\na", "get k", "delete k")
            assert answer == "STORED\r\nVALUE k 0 1\r\na\r\nEND\r\nDELETED\r\n"
