"""A step of the memory beside a change of the user's: the change comes first."""

from __future__ import annotations

import pytest

from tests.unit.memcached_operator.running_servers import EVICT, RESIZE, get_ready, pod, reasons, resize, sent
from tests.unit.memcached_operator.scaled_servers import (
    CALM,
    DAY_S,
    LOSS,
    SPEC,
    WRITE,
    Servers,
    memory_of,
    running_scaled,
)
from tests.unit.memcached_operator.world import World


def recorded_memory(world: World) -> list[str]:
    """The memory that the pods' templates record."""
    return [pod(world, ordinal)["metadata"]["annotations"]["cache.example.com/memory"][:5] for ordinal in range(2)]


async def test_no_step_begins_during_a_rollout_and_the_first_one_after_it_is_for_all() -> None:
    world = await running_scaled(rollout={"minReadySeconds": 3600})
    servers = Servers(world)
    world.memcached(**SPEC | {"rollout": {"minReadySeconds": 3600}, "threads": 2})
    assert EVICT in await sent(world)
    servers.record_answers(LOSS)
    assert await sent(world) == []
    assert (world.status["memory"], memory_of(world), world.limits_set) == ("64Mi", "64", [])
    world.clock.advance(3600)
    assert EVICT in await sent(world, reconciles=1)
    assert await sent(world) == [RESIZE, RESIZE, WRITE]
    assert (world.status["memory"], memory_of(world)) == ("80Mi", "80")


async def test_no_step_begins_while_a_change_is_held(scaled: World, servers: Servers) -> None:
    scaled.memcached(**SPEC | {"rollout": {"paused": True}, "threads": 2})
    await sent(scaled)
    servers.record_answers(LOSS)
    assert await sent(scaled) == []
    assert (scaled.status["memory"], scaled.limits_set) == ("64Mi", [])
    assert scaled.condition("Retaining") == ("False", "Waiting")
    assert scaled.message("Retaining").endswith("The memory grows once no server is to be replaced.")


@pytest.mark.parametrize(("has_room", "memory"), [(True, "80Mi"), (False, "64Mi")])
async def test_servers_that_a_user_replaces_during_a_step_are_made_without_it(
    scaled: World, servers: Servers, has_room: bool, memory: str
) -> None:
    resize(scaled, pod(scaled, 1), type="PodResizePending", reason="Deferred", message="Node has no room")
    servers.record_answers(LOSS)
    await sent(scaled, reconciles=2)
    assert (scaled.status["memory"], memory_of(scaled)) == ("80Mi", "64")
    scaled.memcached(**SPEC | {"threads": 2, "rollout": {"minReadySeconds": 60}})
    assert EVICT in await sent(scaled, reconciles=3)
    assert memory_of(scaled) == "64"
    await sent(scaled)
    scaled.clock.advance(60)
    assert EVICT in await sent(scaled, reconciles=1)
    assert memory_of(scaled) == "64"
    assert recorded_memory(scaled) == ["64Mi,", "64Mi,"]
    if not has_room:
        resize(scaled, pod(scaled, 0), type="PodResizePending", reason="Infeasible", message="Node is too small")
    await sent(scaled, reconciles=8)
    assert (scaled.status["memory"], f"{memory_of(scaled)}Mi") == (memory, memory)


@pytest.mark.parametrize("grown", [False, True])
async def test_what_a_user_changes_is_told_and_carried_out_once_servers_have_grown_as_before(
    scaled: World, servers: Servers, grown: bool
) -> None:
    if grown:
        servers.record_answers(LOSS)
        await sent(scaled)
    scaled.recorder.events.clear()
    for each in range(2):
        resize(scaled, pod(scaled, each), type="PodResizePending", reason="Infeasible", message="Node is too small")
    scaled.memcached(**SPEC | {"resources": {"requests": {"memory": "4Gi"}}})
    assert EVICT in await sent(scaled)
    assert {"LiveChange", "NotResized", "Replacing"} <= set(reasons(scaled))
    assert scaled.status["memory"] == ("80Mi" if grown else "64Mi")


async def test_a_lower_maximum_is_told_with_what_it_costs(scaled: World, servers: Servers) -> None:
    servers.record_answers(LOSS)
    await sent(scaled)
    scaled.recorder.events.clear()
    scaled.memcached(**SPEC | {"memoryScaling": {"max": "72Mi"}})
    await sent(scaled)
    assert reasons(scaled) == ["LiveChange", "Updated", "Resized", "Resized"]
    assert scaled.condition("Retaining") == ("Unknown", "Observing"), "64 → 80 MiB is not so any more"
    assert "evict" in scaled.recorder.events[0].note


async def test_servers_that_leave_count_for_nothing() -> None:
    world = await running_scaled(size=3, drainPeriodSeconds=DAY_S)
    servers = Servers(world)
    servers.record_answers(CALM)
    world.memcached(**SPEC | {"drainPeriodSeconds": DAY_S})
    await sent(world)
    assert world.status["draining"]
    get_ready(world, 0, ready=False)
    servers.record_answers(LOSS)
    assert await sent(world) == []
    assert (world.status["memory"], world.limits_set) == ("64Mi", [])
    get_ready(world, 0)
    await sent(world)
    assert sorted(world.limits_set) == [("10.0.0.0", 80), ("10.0.0.1", 80)]
    servers.record_answers(LOSS)
    await sent(world)
    assert world.status["memory"] == "100Mi", "the one that leaves keeps its 64"
