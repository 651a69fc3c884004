"""Real memcacheds of which one moves, and clients of all commands: no older value, and no key that is lost.

A seed decides what clients send and how slow links are; what threads and processes make of it differs from run to run.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from memcached_operator.features.handover import handover_proxy
from memcached_operator.features.handover.purge import COARSE_S
from tests.handover.changes import Cluster, running, started
from tests.handover.clients import Keys
from tests.handover.model import NEVER, Fault, Finding, Status, counted
from tests.handover.moves import STEPS, Move
from tests.handover.scripts import MOVING, PATIENT, PATIENT_MOVING, cluster_of, needs_memcached
from tests.handover.servers import Connection, connected

pytestmark = needs_memcached
CLIENTS = 8
SLOW_S = 0.004
INDEX = 1
IDLE = [f"idle-{number}" for number in range(3000)]
BATCH = 500
HISTORIES = 3


class Seen:
    """What clients have seen of a move.

    Attributes:
        never: what nothing excuses.
        lost: misses of keys that live.
        idle: how many keys that nobody used are gone.
    """

    def __init__(self, keys: Keys, idle: int) -> None:
        histories = keys.all()
        operations = [operation for history in histories for operation in history.operations]
        assert sum(operation.status is Status.DONE for operation in operations) > 500
        faults, findings = counted(histories)
        self.never: list[Finding] = [each for each in findings if each.fault in NEVER]
        self.lost: int = Counter(faults)[Fault.LOST]
        self.idle = idle
        print(f"judged: {len(operations)} operations; {dict(faults) or 'nothing is wrong'}; {idle} idle keys are gone")


async def _write_idle(client: Connection) -> None:
    for first in range(0, len(IDLE), BATCH):
        batch = IDLE[first : first + BATCH]
        assert await client.answer(*(f"set {key} 0 0 3\r\nabc" for key in batch)) == "STORED\r\n" * len(batch)


async def _idle(client: Connection) -> int:
    """How many of them there are."""
    batches = [IDLE[first : first + BATCH] for first in range(0, len(IDLE), BATCH)]
    return sum([(await client.answer(*(f"get {key}" for key in batch))).count("VALUE") for batch in batches])


async def _seen(cluster: Cluster, keys: Keys, *moves: Move) -> Seen:
    async with running(cluster, keys, 3, CLIENTS):
        async with connected(cluster.servers[INDEX].port) as client:
            await _write_idle(client)
        for move in moves:
            await asyncio.sleep(move.begun_s)
            await move.run()
        await asyncio.sleep(moves[0].begun_s)
        async with connected(cluster.servers[INDEX].port) as client:
            idle = len(IDLE) - await _idle(client)
    return Seen(keys, idle)


def _keys(seed: int, largest: int = 200) -> Keys:
    return Keys(random.Random(seed), hot=20, cool=1000, commands=80, lifetimes=seed % 3 == 0, largest=largest)


@dataclass(frozen=True)
class Case:
    """Servers that run a script, clients by a seed, and the moves that follow each other, by `Move`'s arguments."""

    seed: int
    script: str
    moves: Sequence[Mapping[str, Any]]
    largest: int = 200
    delay_s: float = SLOW_S

    async def seen(self, folder: Path) -> Seen:
        cluster = cluster_of(folder, self.seed, script=self.script, delay_s=self.delay_s)
        moves = [Move(cluster, **{"index": INDEX, **each}) for each in self.moves]
        return await _seen(cluster, _keys(self.seed, self.largest), *moves)


def _one(seed: int, script: str = PATIENT, **move: Any) -> Case:
    return Case(seed, script, [move])


def _two(seed: int) -> Case:
    largest, delay_s = 60_000 if seed % 4 == 1 else 200, seed % 3 * SLOW_S / 2
    return Case(seed, PATIENT, [{}, {"index": seed % 3}], largest, delay_s)


SLOW = {
    **{f"one after the other, {seed}": _two(seed) for seed in range(2, 10)},
    **{
        f"another operator goes on from {step} on": _one(seed, interrupted=step)
        for seed, step in enumerate(STEPS[1:], start=1)
    },
    **{
        f"another operator goes on from {step} on with a pod that is ending": _one(
            seed, PATIENT_MOVING, interrupted=step, ends=True
        )
        for seed, step in enumerate(STEPS[1:], start=41)
    },
}
CASES = {
    "one": _one(1),
    "one whose pod is ending, and is told": _one(2, PATIENT_MOVING, ends=True),
    **SLOW,
}


def _params(cases: Mapping[str, Case], slow: Collection[str]) -> list[Any]:
    return [pytest.param(case, id=name, marks=pytest.mark.slow if name in slow else ()) for name, case in cases.items()]


@pytest.mark.parametrize("case", _params(CASES, SLOW))
async def test_servers_move_without_an_older_value_and_without_a_miss(folder: Path, case: Case) -> None:
    seen = await case.seen(folder)

    assert not seen.never, "\n".join(map(str, seen.never[:10]))
    assert (seen.lost, seen.idle) == (0, 0)


async def _server_dies(move: Move) -> None:
    await asyncio.sleep(move.cluster.random.uniform(0.0, 0.2))
    if not move.is_new:
        move.server.kill()


async def _holder_dies(move: Move) -> None:
    await asyncio.sleep(move.cluster.random.uniform(0.0, 0.2))
    if move.holder is not None:
        move.holder.kill()
    await asyncio.sleep(move.begun_s * 2)
    await move.give_up_holder()


async def _holder_hangs(move: Move) -> None:
    if (holder := move.holder) is not None:
        holder.signal(signal.SIGSTOP)
        await asyncio.sleep(move.begun_s * 4)
        holder.signal(signal.SIGCONT)


DISTURBED = {
    **{
        f"a pod ends before all is copied, {seed}": _one(seed, MOVING, ends=True, copies_s=(seed - 59) * 0.02)
        for seed in range(60, 66)
    },
    **{
        f"the {name} at {step}": _one(20 + STEPS.index(step), handover_proxy.lua(), faults={step: disturbance})
        for step in ("connect", "copy", "close", "restore")
        for name, disturbance in {
            "server dies": _server_dies,
            "holder dies": _holder_dies,
            "holder hangs": _holder_hangs,
        }.items()
    },
}


@pytest.mark.parametrize("case", _params(DISTURBED, DISTURBED))
async def test_nothing_that_ends_dies_or_hangs_shows_an_older_value(folder: Path, case: Case) -> None:
    seen = await case.seen(folder)

    assert not seen.never, "\n".join(map(str, seen.never[:10]))


async def _found(folder: Path, left_out: str, *, misses: bool = False) -> bool:
    """Whether some history shows what is left out."""
    for seed in range(1, 1 + HISTORIES):
        cluster = cluster_of(folder, seed, delay_s=SLOW_S)
        seen = await _seen(cluster, _keys(seed), Move(cluster, INDEX, left_out=frozenset({left_out})))
        if seen.lost or seen.idle if misses else seen.never:
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("left_out", ["confirmation", "birth", "forgetting"])
async def test_the_model_finds_a_holder_that_was_not_confirmed_known_too_late_or_dropped(
    folder: Path, left_out: str
) -> None:
    assert await _found(folder, left_out)


@pytest.mark.slow
@pytest.mark.parametrize(("left_out", "read"), [((), "new"), (("purge",), "old")])
async def test_what_a_former_list_left_does_not_become_young_by_a_move(
    folder: Path, left_out: tuple[str, ...], read: str
) -> None:
    """The next list reads it: by its last use it is told what former owners have left."""
    cluster, unused_s = cluster_of(folder, 1), 3 * COARSE_S
    async with started(cluster, 3):
        present, former = cluster.servers[0], cluster.servers[INDEX]
        async with connected(former.port) as client:
            assert await client.answer("set x 0 0 3\r\nold") == "STORED\r\n"
        await asyncio.sleep(unused_s)  # memcached counts whole seconds
        await cluster.publish(cluster.servers, 0.0)
        await asyncio.sleep(unused_s)
        async with connected(present.port) as client:
            assert await client.answer("set x 0 0 3\r\nnew") == "STORED\r\n"
        await Move(cluster, INDEX, left_out=frozenset(left_out)).run()
        await cluster.purge()
        await cluster.hide()
        await cluster.fill()
        async with connected(former.port) as client:
            assert read in await client.answer("get x")


@pytest.mark.slow
@pytest.mark.parametrize("left_out", ["passes", "close"])
async def test_the_model_finds_what_is_not_copied(folder: Path, left_out: str) -> None:
    assert await _found(folder, left_out, misses=True)
