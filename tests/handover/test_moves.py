"""Real memcacheds of which one moves, and clients of all commands: no older value, and no key that is lost.

A seed decides what clients send and how slow links are; what threads and processes make of it differs from run to run.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from memcached_operator.features.handover.purge import COARSE_S
from tests.handover.changes import Cluster, running
from tests.handover.clients import Keys
from tests.handover.model import NEVER, Fault, Finding, Status, counted
from tests.handover.moves import STEPS, Fault as Disturbance, Move
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


async def test_a_server_moves_without_an_older_value_and_without_a_miss(folder: Path) -> None:
    cluster = cluster_of(folder, 1, script=PATIENT, delay_s=SLOW_S)

    seen = await _seen(cluster, _keys(1), Move(cluster, INDEX))

    assert not seen.never, "\n".join(map(str, seen.never[:10]))
    assert (seen.lost, seen.idle) == (0, 0)


async def test_a_server_whose_pod_is_ending_is_told_and_moves_likewise(folder: Path) -> None:
    cluster = cluster_of(folder, 2, script=PATIENT_MOVING, delay_s=SLOW_S)

    seen = await _seen(cluster, _keys(2), Move(cluster, INDEX, ends=True))

    assert not seen.never, "\n".join(map(str, seen.never[:10]))
    assert (seen.lost, seen.idle) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS[1:])
async def test_another_operator_tells_a_server_whose_pod_is_ending(folder: Path, step: str) -> None:
    seed = 40 + STEPS.index(step)
    cluster = cluster_of(folder, seed, script=PATIENT_MOVING, delay_s=SLOW_S)

    seen = await _seen(cluster, _keys(seed), Move(cluster, INDEX, interrupted=step, ends=True))

    assert not seen.never, "\n".join(map(str, seen.never[:10]))
    assert (seen.lost, seen.idle) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60, 66))
async def test_a_pod_that_ends_before_all_is_copied_shows_no_older_value(folder: Path, seed: int) -> None:
    cluster = cluster_of(folder, seed, script=MOVING, delay_s=SLOW_S)

    seen = await _seen(cluster, _keys(seed), Move(cluster, INDEX, ends=True, copies_s=(seed - 59) * 0.02))

    assert not seen.never, "\n".join(map(str, seen.never[:10]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 10))
async def test_servers_move_one_after_the_other(folder: Path, seed: int) -> None:
    cluster = cluster_of(folder, seed, script=PATIENT, delay_s=seed % 3 * SLOW_S / 2)
    keys = _keys(seed, largest=60_000 if seed % 4 == 1 else 200)

    seen = await _seen(cluster, keys, Move(cluster, INDEX), Move(cluster, seed % 3))

    assert not seen.never, "\n".join(map(str, seen.never[:10]))
    assert (seen.lost, seen.idle) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS[1:])
async def test_an_operator_goes_on_where_another_ended(folder: Path, step: str) -> None:
    seed = STEPS.index(step)
    cluster = cluster_of(folder, seed, script=PATIENT, delay_s=SLOW_S)

    seen = await _seen(cluster, _keys(seed), Move(cluster, INDEX, interrupted=step))

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


@pytest.mark.slow
@pytest.mark.parametrize("disturbance", [_server_dies, _holder_dies, _holder_hangs])
@pytest.mark.parametrize("step", ["connect", "copy", "close", "restore"])
async def test_nothing_that_dies_or_hangs_shows_an_older_value(
    folder: Path, step: str, disturbance: Disturbance
) -> None:
    seed = 20 + STEPS.index(step)
    cluster = cluster_of(folder, seed, delay_s=SLOW_S)

    seen = await _seen(cluster, _keys(seed), Move(cluster, INDEX, faults={step: disturbance}))

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
    try:
        await cluster.start(3)
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
    finally:
        await cluster.stop()


@pytest.mark.slow
@pytest.mark.parametrize("left_out", ["passes", "close"])
async def test_the_model_finds_what_is_not_copied(folder: Path, left_out: str) -> None:
    assert await _found(folder, left_out, misses=True)
