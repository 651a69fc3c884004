"""Real memcacheds that hand over, and clients of two lists: no answer that one memcached could not have given.

A seed decides what clients send and how slow links are; what threads and processes make of it differs from run to run.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.handover.changes import Cluster, running
from tests.handover.clients import Keys
from tests.handover.model import NEVER, Finding, Status, counted
from tests.handover.scripts import changed, cluster_of, needs_memcached

pytestmark = needs_memcached
CLIENTS = 10
# What clients see of a change of the list comes within seconds; an operator gives them minutes.
WINDOW_S = 2.0
SLOW_S = 0.004
# Of the list, one after the other: with what comes before and after it, each takes eight seconds.
CHANGES = 7

# Of which at least one shows what is wrong.
HISTORIES = 5

# What is left out or turned round, and must be found; each by its text in the script.
BROKEN: Mapping[str, tuple[str, str]] = {
    "no tombs": (
        "while q.spread <= ROUNDS do",
        "if answer then return answer end while q.spread <= ROUNDS do",
    ),
    "a fill that is not bound to its mark": ('item.c and " C" .. item.c or " ME"', 'item.c and "" or " ME"'),
    "writes that a peer did not take": ("if all and not late then", "if not late then"),
}


def _keys(seed: int, *, lifetimes: bool = False, largest: int = 200, cool: int = 1000, commands: int = 80) -> Keys:
    return Keys(random.Random(seed), hot=20, cool=cool, commands=commands, lifetimes=lifetimes, largest=largest)


async def _through(cluster: Cluster, keys: Keys, sizes: Sequence[int], *, window_s: float = WINDOW_S) -> list[Finding]:
    """Clients while the list changes from one number of servers to the next; what they must never have seen."""
    async with running(cluster, keys, sizes[0], CLIENTS):
        for size in sizes[1:]:
            await cluster.begin(size, window_s)
            await cluster.end(size)
    return _never(keys)


def _never(keys: Keys) -> list[Finding]:
    """What must never be, after something was done at all."""
    histories = keys.all()
    operations = [operation for history in histories for operation in history.operations]
    assert sum(operation.status is Status.DONE for operation in operations) > 500
    faults, findings = counted(histories)
    found = ", ".join(f"{count} times {fault}" for fault, count in faults.items())
    print(f"judged: {len(histories)} keys' histories with {len(operations)} operations; {found or 'nothing is wrong'}")
    return [finding for finding in findings if finding.fault in NEVER]


CLOCK, AHEAD = "mcp.time_real_millis() << 20", 'mcp.start_arg:match("%d+$") * 2000'
# Each server's is two seconds ahead of the one before it.
CLOCKS_DIFFER = changed(CLOCK, CLOCK.replace("mcp", f"({AHEAD} + mcp").replace(" <<", ") <<"))


@pytest.mark.parametrize(
    ("seed", "sizes", "delay_s", "script"),
    [
        pytest.param(1, (3, 4, 3), SLOW_S, None, id="while servers come and go"),
        pytest.param(2, (9, 10, 9), 0.0, None, id="of ten servers", marks=pytest.mark.slow),
        pytest.param(5, (3, 6, 2), SLOW_S, CLOCKS_DIFFER, id="where clocks differ", marks=pytest.mark.slow),
        pytest.param(6, (3, 4, 3), SLOW_S, CLOCKS_DIFFER, id="where clocks differ, again", marks=pytest.mark.slow),
    ],
)
async def test_no_client_sees_an_older_value(
    folder: Path, seed: int, sizes: Sequence[int], delay_s: float, script: str | None
) -> None:
    found = await _through(cluster_of(folder, seed, script=script, delay_s=delay_s), _keys(seed), sizes)

    assert not found, "\n".join(map(str, found[:10]))


async def _begun(cluster: Cluster, keys: Keys, fault: str) -> None:
    async with running(cluster, keys, 3, CLIENTS):
        change = asyncio.create_task(cluster.begin(4, (3 if fault else 1) * WINDOW_S))
        await cluster.filling.wait()
        if fault:
            await _with(cluster, fault, WINDOW_S)
        await change
        if fault:
            await cluster.end(4)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("a fill that is not bound to its mark", ""),
        pytest.param("no tombs", "", marks=pytest.mark.slow),
        pytest.param("writes that a peer did not take", "hung", marks=pytest.mark.slow),
    ],
)
async def test_the_model_finds_what_is_wrong_in_a_script(folder: Path, name: str, fault: str) -> None:
    """In a few histories, as one of them may happen to go well."""
    right, wrong = BROKEN[name]
    for seed in range(1, 1 + HISTORIES):
        cluster = cluster_of(folder, seed, script=changed(right, wrong), delay_s=SLOW_S)
        keys = _keys(seed, cool=0)
        await _begun(cluster, keys, fault)
        if _never(keys):
            return
    pytest.fail("none shows it")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 22))
async def test_no_client_sees_an_older_value_in_thousands_of_histories(folder: Path, seed: int) -> None:
    """Through one change of the list after the other, of servers that have what earlier ones left."""
    chosen, sizes = random.Random(seed), [3]
    for _ in range(CHANGES):
        sizes.append(chosen.choice([size for size in range(2, 7) if size != sizes[-1]]))
    keys = _keys(
        seed,
        lifetimes=seed % 3 == 0,
        largest=60_000 if seed % 4 == 1 else 200,
        cool=seed % 2 * 1000,
        commands=(20, 40, 80)[seed % 3],
    )

    found = await _through(cluster_of(folder, seed, delay_s=seed % 3 * SLOW_S / 2), keys, sizes, window_s=WINDOW_S / 2)

    assert not found, "\n".join(map(str, found[:10]))


@pytest.mark.slow
async def test_no_client_sees_an_older_value_where_marks_are_evicted(folder: Path) -> None:
    cluster, keys = cluster_of(folder, 3, memory_mib=2), _keys(3, largest=20_000, cool=4000)
    async with running(cluster, keys, 3, CLIENTS):
        for size in (4, 3):
            await cluster.begin(size, WINDOW_S)
            await cluster.end(size)
        evicted = [await server.count("evictions") for server in cluster.servers]

    found = _never(keys)

    assert all(evicted)
    assert not found, "\n".join(map(str, found[:10]))


async def _with(cluster: Cluster, fault: str, lasts_s: float) -> None:
    """Do something to the second server while both lists are in use, and undo it."""
    await asyncio.sleep(lasts_s)
    server, links = cluster.servers[1], [link for ends, link in cluster.links.items() if 1 in ends]
    if fault == "killed":
        server.kill()
    elif fault == "hung":
        server.signal(signal.SIGSTOP)
    else:
        for link in links:
            link.cut()
    await asyncio.sleep(lasts_s)
    if fault == "killed":
        await server.start()
    elif fault == "hung":
        server.signal(signal.SIGCONT)
    else:
        for link in links:
            link.mend()


@pytest.mark.slow
async def test_the_model_finds_that_a_new_pod_serves_before_it_has_peers(folder: Path) -> None:
    """A limit that docs/decisions.md names: what it stores until then, no peer is told of."""
    cluster, keys = cluster_of(folder, 1, delay_s=SLOW_S), _keys(1)
    async with running(cluster, keys, 3, CLIENTS):
        change = asyncio.create_task(cluster.begin(4, 4 * WINDOW_S))
        await cluster.filling.wait()
        await cluster.replace(1, WINDOW_S)
        await change

    assert _never(keys)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["killed", "hung", "cut off"])
@pytest.mark.parametrize("seed", [1, 2])
async def test_no_client_sees_an_older_value_when_a_server_is(folder: Path, fault: str, seed: int) -> None:
    cluster, keys = cluster_of(folder, seed), _keys(seed)
    await _begun(cluster, keys, fault)

    found = _never(keys)

    assert not found, "\n".join(map(str, found[:10]))
