"""Whose servers are replaced for the operator's own sake, and when, through the reconciler."""

from __future__ import annotations

import pytest

from memcached_operator.core.rollout.rollout_lock import LeftRollouts, rollouts_left
from operator_runtime.client.errors import Forbidden, Invalid
from tests.unit.memcached_operator.running_servers import (
    EVICT,
    PAUSE_S,
    RESIZE,
    control,
    costs,
    sent,
    sent_of,
    stateful_set,
)
from tests.unit.memcached_operator.support import NAME, NAMESPACE
from tests.unit.memcached_operator.world import KEY, UNSEEN, World


def of_another_operator(world: World) -> None:
    """Have the servers be as the defaults of another release make them."""
    stateful_set(world)["spec"]["template"]["metadata"]["annotations"]["cache.example.com/template"] = "of another"
    world.api.put(stateful_set(world))
    for ordinal in range(3):
        del world.api.objects["Pod", NAMESPACE, f"{NAME}-{ordinal}"]
    control(world)
    world.clock.advance(3600)


OTHER = KEY._replace(name="other")


async def test_a_default_of_another_operator_waits_for_its_turn(named: World) -> None:
    of_another_operator(named)
    rollout_lock = named.reconciler._objects.lock
    assert rollout_lock.take(OTHER)
    assert "strategic_merge_patch StatefulSet" not in await sent(named)
    message = "own defaults have changed: the servers are replaced after the servers of other"
    assert message in named.message("Progressing")
    ((reason, note),) = costs(named)
    assert reason == "RollingChange"
    assert note.startswith("The operator's own defaults have changed: the pods' template: 3 servers are replaced, ")
    assert f", after the servers of {OTHER}; " in note
    assert named.condition("Ready") == ("True", "AllServersReady")
    rollout_lock.leave(OTHER)
    assert named.woken == [KEY]
    assert await sent(named) == ["strategic_merge_patch StatefulSet", EVICT]
    assert not rollout_lock.take(OTHER), "the turn is passed on before all servers have been replaced"
    for _ in range(2):
        named.clock.advance(PAUSE_S)
        await sent(named)
    assert rollout_lock.take(OTHER)


@pytest.mark.parametrize("annotation", ["template", "memory"])
async def test_a_deployment_waits_for_its_turn_with_other_memory_too(world: World, annotation: str) -> None:
    world.memcached(size=2)
    await world.reconcile_shown()
    world.deployment["status"] = {"observedGeneration": 1}
    world.pods(2)
    await world.settle()
    annotations = world.deployment["spec"]["template"]["metadata"]["annotations"]
    annotations[f"cache.example.com/{annotation}"] = "60Mi,1Gi,1Gi"
    world.api.put(world.deployment)
    rollout_lock = world.reconciler._objects.lock
    assert rollout_lock.take(OTHER)
    await sent_of(world)
    assert annotations[f"cache.example.com/{annotation}"] == "60Mi,1Gi,1Gi"
    rollout_lock.leave(OTHER)
    await sent_of(world)
    found = world.deployment["spec"]["template"]["metadata"]["annotations"]
    assert found[f"cache.example.com/{annotation}"] != "60Mi,1Gi,1Gi"
    assert [reason for reason, _ in costs(world)] == ["RollingChange"]


async def test_memory_that_servers_cannot_get_while_they_run_waits_for_its_turn(named: World) -> None:
    template = stateful_set(named)["spec"]["template"]
    template["metadata"]["annotations"]["cache.example.com/memory"] = "64Mi,1Gi,1Gi"
    template["spec"]["containers"][0]["resources"] = {
        each: {**given, "memory": "1Gi"} for each, given in template["spec"]["containers"][0]["resources"].items()
    }
    named.api.put(stateful_set(named))
    named.api.refuse("strategic_merge_patch/resize", "Pod", *[Invalid(422, "Invalid", "QOS")] * 9)
    for ordinal in range(3):
        del named.api.objects["Pod", NAMESPACE, f"{NAME}-{ordinal}"]
    control(named)
    named.clock.advance(3600)
    rollout_lock = named.reconciler._objects.lock
    assert rollout_lock.take(OTHER)
    assert set(await sent(named)) == {RESIZE}
    assert "the servers are replaced after the servers of other" in named.message("Progressing")
    rollout_lock.leave(OTHER)
    assert await sent(named) == ["strategic_merge_patch StatefulSet", EVICT]
    assert not rollout_lock.take(OTHER)
    for _ in range(2):
        named.clock.advance(PAUSE_S)
        await sent(named)
    assert rollout_lock.take(OTHER)


@pytest.mark.parametrize("end", ["deleted", "unreadable", "paused", "refused"])
async def test_one_that_cannot_go_on_passes_its_turn_on(named: World, end: str) -> None:
    of_another_operator(named)
    rollout_lock = named.reconciler._objects.lock
    if end == "refused":
        named.api.refuse("strategic_merge_patch", "StatefulSet", *[Forbidden(403, "Forbidden", "policy says no")] * 9)
    elif end == "paused":
        named.memcached(size=3, workload="StatefulSet", rollout={"paused": True})
        # That generation was seen before the operator's defaults changed.
        named.api.objects["Memcached", NAMESPACE, NAME]["status"]["observedGeneration"] = 2
        named.api.put(named.api.objects["Memcached", NAMESPACE, NAME])
    else:
        await sent(named)
        assert not rollout_lock.take(OTHER)
    if end == "deleted":
        del named.api.objects["Memcached", NAMESPACE, NAME]
    elif end == "unreadable":
        named.memcached(size="many", workload="StatefulSet")
    await sent(named, reconciles=2)
    assert rollout_lock.take(OTHER)


@pytest.mark.parametrize(
    ("degraded", "image", "holds"),
    [(None, None, True), ("RolloutStuck", None, True), ("RolloutStuck", "memcached:2", False)],
)
async def test_a_new_leader_begins_no_second_rollout_beside_one_that_is_on_its_way(
    named: World, degraded: str | None, image: str | None, holds: bool
) -> None:
    of_another_operator(named)
    found = named.api.objects["Memcached", NAMESPACE, NAME]
    conditions = {"Progressing": ("True", "Updating"), "Degraded": ("True" if degraded else "False", degraded)}
    found["spec"] |= {"image": image} if image else {}
    found["status"]["conditions"] = [
        {"type": each, "status": status, "reason": reason or "AsExpected", "message": ""}
        for each, (status, reason) in conditions.items()
    ]
    named.api.put(found)
    leader = World(api=named.api)
    leader.show()
    assert leader.reconciler._objects.lock.take(OTHER) is not holds


async def assert_continues_after_the_other(world: World) -> None:
    """One that was paused in its turn goes on once the other, which began meanwhile, has ended."""
    rollout_lock = world.reconciler._objects.lock
    assert rollout_lock.take(OTHER), "a paused one keeps nobody"
    world.memcached(size=3, workload="StatefulSet")
    assert EVICT not in await sent(world), "servers of two Memcacheds would be cold at once"
    assert f"Its servers are replaced after the servers of {OTHER}." in world.message("Ready")
    rollout_lock.leave(OTHER)
    assert EVICT in await sent(world)


async def test_one_that_was_paused_in_its_turn_waits_for_those_that_began_meanwhile(named: World) -> None:
    of_another_operator(named)
    assert EVICT in await sent(named)
    named.memcached(size=3, workload="StatefulSet", rollout={"paused": True})
    named.clock.advance(PAUSE_S)
    assert EVICT not in await sent(named)
    await assert_continues_after_the_other(named)


async def test_a_new_leader_knows_of_one_that_was_paused_in_its_turn(named: World) -> None:
    of_another_operator(named)
    assert EVICT in await sent(named)
    named.memcached(size=3, workload="StatefulSet", rollout={"paused": True})
    await sent(named)
    leader = World(api=named.api)
    leader.clock.advance(named.clock.now - leader.clock.now + PAUSE_S)
    leader.show()
    await assert_continues_after_the_other(leader)


async def test_a_new_leader_takes_none_without_a_status_for_one_that_was_paused(named: World) -> None:
    of_another_operator(named)
    assert EVICT in await sent(named)
    found = named.api.objects["Memcached", NAMESPACE, NAME]
    named.api.put(found | {"status": UNSEEN})
    leader = World(api=named.api)
    leader.show()
    assert rollouts_left(leader.caches) == LeftRollouts()
