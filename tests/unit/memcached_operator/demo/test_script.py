"""The script's steps, against an API that does what it is told, and one on which nothing comes of anything."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Coroutine
from contextlib import AsyncExitStack

import pytest

from memcached_operator.demo.caching import StepFailedError, spread
from memcached_operator.demo.cluster_state import ClusterState, Observer
from memcached_operator.demo.demo_command import in_background, run_steps
from memcached_operator.demo.plain import Plain
from memcached_operator.demo.script import EXAMPLE, NAMED, STEPS, TO_PLAY_WITH, DemoStep, StepContext
from tests.unit.memcached_operator.demo.support import AcceptingClient, cluster, memcached_server, pod, running


def context(state: ClusterState, *, down: bool = False, real_pods: bool = False) -> StepContext:
    client = AcceptingClient(down=down)
    observer = Observer(client)
    observer.state = state
    return StepContext(client, observer, cluster(real_pods=real_pods), deadline_s=0.01)


class RecordedDisplay(Plain):
    def __init__(self, *, stays: bool = False) -> None:
        import io

        self.out = io.StringIO()
        self.stays = stays
        super().__init__(self.out)
        self.opens(cluster(), Observer(AcceptingClient()), STEPS)


class ReplacingClient(AcceptingClient):
    """Whatever is deleted, the state becomes another."""

    def __init__(self, observer: Observer, becomes: ClusterState) -> None:
        super().__init__()
        self.observer, self.becomes = observer, becomes

    async def request(self, method: str, path: str, **_: object) -> bytes:
        if method == "DELETE":
            self.observer.state = self.becomes
        return b"{}"


def replacing_context(*, real_pods: bool = False) -> StepContext:
    """A server of three comes back under its name when it is deleted."""
    observer = Observer(AcceptingClient())
    observer.state = state = running(NAMED, 3, named=True)
    again = {f"{NAMED}-1": pod(NAMED, "1", uid="2")}
    client = ReplacingClient(observer, dataclasses.replace(state, pods={**state.pods, **again}))
    return StepContext(client, observer, cluster(real_pods=real_pods), deadline_s=0.01)


DELETE_NAMED = STEPS[-1]
SERVERS = running(NAMED, 3, named=True).servers(NAMED)


async def test_keys_of_the_server_that_was_deleted_are_counted_as_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = frozenset(spread([f"session-{number}" for number in range(60)], SERVERS)[SERVERS[1]])
    async with memcached_server(monkeypatch, forgets=gone):
        seen = await DELETE_NAMED.run(replacing_context(real_pods=True))
    assert seen == f"of 60 keys {60 - len(gone)} are hits; {len(gone)} are misses, all of them {NAMED}-1's"
    assert await DELETE_NAMED.run(replacing_context()) == "", "all that can be said without keys"


@pytest.mark.parametrize("forgets", [frozenset(), frozenset({"session-0"})], ids=["none", "another"])
async def test_other_misses_than_those_fail_the_step(monkeypatch: pytest.MonkeyPatch, forgets: frozenset[str]) -> None:
    async with memcached_server(monkeypatch, forgets=forgets):
        with pytest.raises(StepFailedError, match="these were not found"):
            await DELETE_NAMED.run(replacing_context(real_pods=True))


@pytest.mark.parametrize("step", [*STEPS, TO_PLAY_WITH], ids=lambda step: step.deed)
async def test_no_step_comes_true_by_itself(step: DemoStep) -> None:
    with pytest.raises(StepFailedError, match="after 0 s"):
        await step.run(context(running(EXAMPLE, 2)))


async def test_a_step_that_does_not_come_true_ends_the_play_and_says_what_is_there_instead() -> None:
    display = RecordedDisplay()
    assert await run_steps(context(running(EXAMPLE, 2)), display) == 0
    last = display.out.getvalue().splitlines()[-1]
    assert last.startswith("demo: FAILED 1: ")
    assert f"{EXAMPLE} has 2 of 3 servers ready" in last
    assert await run_steps(context(running(EXAMPLE, 3)), display) == 1
    assert "ok 1: " in display.out.getvalue()


async def test_a_fault_of_what_runs_beside_the_play_is_not_hidden_and_its_end_is_no_fault() -> None:
    async def breaks() -> None:
        raise ValueError("a fault of the test's")

    async def goes_on() -> None:
        await asyncio.Event().wait()

    async def at_the_same_time(work: Coroutine[None, None, None]) -> None:
        async with AsyncExitStack() as ends:
            in_background(ends, work)
            await asyncio.sleep(0)

    await at_the_same_time(goes_on())
    with pytest.raises(ValueError, match="a fault of the test's"):
        await at_the_same_time(breaks())
