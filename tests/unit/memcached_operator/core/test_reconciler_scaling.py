"""The memory of servers follows what they evict, through the reconciler."""

from __future__ import annotations

from typing import Any

import pytest

from memcached_operator.core.objects.labels import HOLDER_ANNOTATION
from memcached_operator.core.rollout.live.resize_state import PATIENCE_S
from memcached_operator.servers.server_connection import Failure
from operator_runtime.client.errors import Forbidden, Invalid
from tests.unit.memcached_operator.running_servers import (
    RESIZE,
    RESTARTS,
    UNREACHABLE,
    get_ready,
    pod,
    reasons,
    resize,
    sent,
    start_again,
)
from tests.unit.memcached_operator.scaled_servers import (
    CALM,
    DAY_S,
    LOSS,
    POLL_S,
    SPEC,
    WINDOW_S,
    WRITE,
    Servers,
    memory_of,
    pods,
    running_scaled,
)
from tests.unit.memcached_operator.world import DELAY_S, KEY, World


async def test_what_is_evicted_too_early_grows_all_servers_by_a_quarter_and_says_why(
    scaled: World, servers: Servers
) -> None:
    before = pods(scaled)
    assert scaled.status["memory"] == "64Mi"
    assert scaled.condition("Retaining") == ("Unknown", "Observing")
    assert servers.record_answers(LOSS)
    assert await sent(scaled) == [RESIZE, RESIZE, WRITE]
    assert sorted(scaled.limits_set) == [("10.0.0.0", 80), ("10.0.0.1", 80)]
    assert (scaled.status["memory"], memory_of(scaled)) == ("80Mi", "80")
    assert pods(scaled) == before
    assert reasons(scaled) == ["MemoryGrows", "Resized", "Resized", "Updated"]
    words = "Items idle for 12m were evicted, retention is 1h: 64 → 80 MiB"
    assert scaled.recorder.events[0].note == words
    assert scaled.condition("Retaining") == ("False", "Growing")
    assert scaled.message("Retaining") == f"{words}."
    assert scaled.condition("Ready") == ("True", "AllServersReady")


async def test_a_step_is_as_long_observed_as_the_one_before_and_what_was_decided_stays_told(
    scaled: World, servers: Servers
) -> None:
    servers.record_answers(LOSS)
    await sent(scaled)
    servers.record_answers(LOSS, seconds=WINDOW_S - POLL_S)
    assert await sent(scaled) == []
    assert scaled.condition("Retaining") == ("False", "Growing")
    servers.record_answers(LOSS, seconds=2 * POLL_S)
    await sent(scaled)
    assert scaled.status["memory"] == "100Mi"
    servers.record_answers(CALM)
    assert await sent(scaled) == []
    assert scaled.condition("Retaining") == ("True", "RetentionKept")


async def test_the_maximum_is_told_once_and_a_higher_one_is_grown_into() -> None:
    world = await running_scaled(memoryScaling={"max": "70Mi"})
    servers = Servers(world)
    servers.record_answers(LOSS)
    await sent(world)
    assert world.status["memory"] == "70Mi"
    servers.record_answers(LOSS)
    await sent(world)
    servers.record_answers(LOSS)
    await sent(world)
    assert world.condition("Retaining") == ("False", "MaximumReached")
    assert reasons(world).count("MaximumReached") == 1
    world.memcached(**SPEC)
    await sent(world)
    assert world.status["memory"] == "88Mi"


async def test_no_step_begins_while_a_server_is_missing(scaled: World, servers: Servers) -> None:
    get_ready(scaled, 1, ready=False)
    servers.record_answers(LOSS)
    assert await sent(scaled) == []
    assert scaled.status["memory"] == "64Mi"
    assert scaled.condition("Retaining") == ("False", "Waiting")
    assert scaled.message("Retaining") == (
        "Items idle for less than 1h are evicted. The memory grows once all servers are ready; 1 of 2 are."
    )
    get_ready(scaled, 1)
    await sent(scaled)
    assert scaled.status["memory"] == "80Mi"


@pytest.mark.parametrize(
    ("fields", "in_force"),
    [
        ({"memory": "128Mi"}, "128Mi"),  # the least
        ({"memory": "8Mi"}, "80Mi"),  # servers never shrink by themselves
        ({"memoryScaling": {"max": "72Mi"}}, "72Mi"),
        ({"memoryScaling": None}, "64Mi"),
    ],
)
async def test_the_specification_bounds_what_is_in_force(
    scaled: World, servers: Servers, fields: dict[str, Any], in_force: str
) -> None:
    servers.record_answers(LOSS)
    await sent(scaled)
    scaled.memcached(**SPEC | fields)
    await sent(scaled)
    assert scaled.status["memory"] == in_force
    assert f"{memory_of(scaled)}Mi" == in_force
    is_there = "Retaining" in {each["type"] for each in scaled.status["conditions"]}
    assert is_there == ("memoryScaling" not in fields or bool(fields["memoryScaling"]))


@pytest.mark.parametrize("reason", ["Deferred", "Infeasible"])
async def test_a_node_without_room_is_told_and_all_servers_keep_what_they_have(
    scaled: World, servers: Servers, reason: str
) -> None:
    before = pods(scaled)
    resize(scaled, pod(scaled, 1), type="PodResizePending", reason=reason, message="Node has no room")
    servers.record_answers(LOSS)
    await sent(scaled)
    scaled.clock.advance(PATIENCE_S)
    await sent(scaled, reconciles=8)
    assert scaled.status["memory"] == "64Mi"
    assert memory_of(scaled) == "64"
    assert dict(scaled.limits_set)["10.0.0.0"] == 64, "it was given 80 before, and 64 again"
    assert pods(scaled) == before
    assert scaled.condition("Retaining") == ("False", "ResizeImpossible")
    assert scaled.message("Retaining") == (
        f"All servers keep 64 MiB. sessions-1 cannot get 80 MiB: {reason}: Node has no room."
    )
    assert reasons(scaled).count("ResizeImpossible") == 1
    assert not {"NotResized", "Replacing"} & set(reasons(scaled))
    assert scaled.condition("Ready") == ("True", "AllServersReady")
    assert scaled.condition("Degraded") == ("False", "AsExpected")


async def test_a_new_leader_goes_on_with_a_step_and_takes_it_back_where_a_node_has_no_room(
    scaled: World, servers: Servers
) -> None:
    servers.record_answers(LOSS)
    assert await sent(scaled, reconciles=2) == []
    assert (scaled.status["memory"], memory_of(scaled)) == ("80Mi", "64")
    scaled.owners.states.forget(KEY)
    resize(scaled, pod(scaled, 1), type="PodResizePending", reason="Infeasible", message="Node is too small")
    await sent(scaled, reconciles=8)
    assert (scaled.status["memory"], memory_of(scaled)) == ("64Mi", "64")
    assert dict(scaled.limits_set)["10.0.0.0"] == 64
    assert scaled.condition("Retaining") == ("False", "ResizeImpossible")


async def test_a_pod_that_cannot_be_made_smaller_again_keeps_its_room_and_its_keys(
    scaled: World, servers: Servers
) -> None:
    scaled.memcached(**SPEC | {"memory": "128Mi"})
    await sent(scaled)
    before = pods(scaled)
    resize(scaled, pod(scaled, 1), type="PodResizePending", reason="Infeasible", message="Node is too small")
    servers.record_answers(LOSS)
    await sent(scaled, reconciles=4)
    refusal = Invalid(422, "Invalid", "memory limits cannot be decreased")
    scaled.api.refuse("strategic_merge_patch/resize", "Pod", *[refusal] * 9)
    await sent(scaled, reconciles=8)
    assert (scaled.status["memory"], memory_of(scaled)) == ("128Mi", "128")
    assert dict(scaled.limits_set) == {"10.0.0.0": 128, "10.0.0.1": 128}
    assert pods(scaled) == before
    assert not {"NotResized", "Replacing"} & set(reasons(scaled))


async def test_no_step_has_a_container_start_again(scaled: World, servers: Servers) -> None:
    """A webhook gave one pod a policy by which it would; the template shows nothing of it."""
    pod(scaled, 1)["spec"]["containers"][0]["resizePolicy"] = RESTARTS
    scaled.api.put(pod(scaled, 1))
    before = pods(scaled)
    servers.record_answers(LOSS)
    assert (await sent(scaled, reconciles=8)).count(RESIZE) == 2, "of the other one, and back"
    assert scaled.condition("Retaining") == ("False", "ResizeImpossible")
    assert scaled.message("Retaining") == (
        "All servers keep 64 MiB. sessions-1 cannot get 80 MiB: the resizePolicy of the container memcached is "
        "RestartContainer for memory."
    )
    assert (memory_of(scaled), dict(scaled.limits_set)["10.0.0.0"]) == ("64", 64)
    assert pods(scaled) == before
    assert not {"NotResized", "Replacing"} & set(reasons(scaled))


async def test_a_step_that_empties_a_server_is_taken_back_and_not_tried_on_it_again(
    scaled: World, servers: Servers
) -> None:
    servers.record_answers(LOSS)
    while not await sent(scaled, reconciles=1):
        pass
    start_again(scaled, 0)
    await sent(scaled, reconciles=8)
    assert (scaled.status["memory"], memory_of(scaled)) == ("64Mi", "64")
    assert dict(scaled.limits_set)["10.0.0.0"] == 64
    assert scaled.condition("Retaining") == ("False", "ResizeImpossible")
    assert "the container of sessions-0 started again when it was resized" in scaled.message("Retaining")
    assert scaled.condition("Ready") == ("True", "AllServersReady")
    scaled.clock.advance(WINDOW_S)
    servers.record_answers(LOSS)
    assert await sent(scaled, reconciles=8) == []
    assert scaled.condition("Retaining") == ("False", "ResizeImpossible")


async def test_a_quota_is_told_in_its_words_and_tried_again_once_there_may_be_room(
    scaled: World, servers: Servers
) -> None:
    words = "exceeded quota: small, requested: limits.memory=18Mi"
    scaled.api.refuse("strategic_merge_patch/resize", "Pod", *[Forbidden(403, "Forbidden", words)] * 99)
    servers.record_answers(LOSS)
    await sent(scaled)
    assert scaled.condition("Retaining") == ("False", "QuotaExceeded")
    assert words in scaled.message("Retaining")
    assert scaled.condition("Degraded") == ("False", "AsExpected")
    assert scaled.status["memory"] == "64Mi"
    scaled.api.refusals_of.clear()
    await sent(scaled)
    servers.record_answers(LOSS)
    assert await sent(scaled) == []
    assert scaled.condition("Retaining") == ("False", "QuotaExceeded")
    scaled.clock.advance(WINDOW_S)
    assert await sent(scaled) == [RESIZE, RESIZE, WRITE]
    assert scaled.status["memory"] == "80Mi"


async def test_a_step_that_succeeds_ends_the_row_of_those_that_did_not(scaled: World, servers: Servers) -> None:
    async def is_refused(*, waits_s: int) -> None:
        refusal = Forbidden(403, "Forbidden", "exceeded quota: small")
        scaled.api.refuse("strategic_merge_patch/resize", "Pod", *[refusal] * 99)
        servers.record_answers(LOSS)
        await sent(scaled)
        assert scaled.condition("Retaining") == ("False", "QuotaExceeded")
        scaled.api.refusals_of.clear()
        servers.record_answers(LOSS)
        scaled.clock.advance(waits_s - 60)
        assert await sent(scaled) == []
        scaled.clock.advance(60)

    await is_refused(waits_s=WINDOW_S)
    await is_refused(waits_s=2 * WINDOW_S)
    await sent(scaled)
    for _ in range(2):
        servers.record_answers(LOSS)
        await sent(scaled)
    assert scaled.status["memory"] == "125Mi"
    await is_refused(waits_s=WINDOW_S)
    assert await sent(scaled) == [RESIZE, RESIZE, WRITE]


async def test_servers_that_are_not_asked_or_out_of_reach_are_told_of() -> None:
    unqueried = World()
    unqueried.memcached(**SPEC)
    await unqueried.reconcile_shown()
    await unqueried.reconcile(after_s=DELAY_S)
    assert unqueried.condition("Retaining") == ("Unknown", "NotQueried")
    assert unqueried.message("Retaining").endswith("because --server-stats-interval-s is 0.")
    world = await running_scaled()
    assert world.stats_cache is not None
    failure: Failure = UNREACHABLE
    for each in [*world.caches.pods.values()] * 2:
        world.stats_cache.record(each, failure)
    await sent(world)
    assert world.condition("Retaining") == ("Unknown", "Unreachable")
    assert world.message("Retaining").startswith("What servers evict is not known, so their memory does not grow. No")


async def test_nothing_is_told_of_servers_that_are_gone() -> None:
    world = await running_scaled(memoryScaling={"max": "64Mi"})
    Servers(world).record_answers(LOSS)
    await sent(world)
    assert world.condition("Retaining") == ("False", "MaximumReached")
    world.memcached(**SPEC | {"memoryScaling": {"max": "64Mi"}, "size": 0, "drainPeriodSeconds": 0})
    await sent(world)
    for ordinal in range(2):
        del world.api.objects["Pod", *KEY[:1], f"{KEY.name}-{ordinal}"]
    await sent(world)
    assert world.condition("Retaining") == ("Unknown", "NotQueried")


async def test_a_maximum_that_is_another_is_not_told_until_as_much_is_known_of_it() -> None:
    world = await running_scaled(memoryScaling={"max": "64Mi"})
    Servers(world).record_answers(LOSS)
    await sent(world)
    world.owners.states.forget(KEY)
    await sent(world)
    assert world.condition("Retaining") == ("False", "MaximumReached")
    world.memcached(**SPEC)
    await sent(world)
    assert world.condition("Retaining") == ("Unknown", "Observing")


async def test_a_limit_that_another_client_sets_is_told_after_a_window(scaled: World, servers: Servers) -> None:
    servers.record_answers(CALM)
    await sent(scaled)
    scaled.limits_set.append(("10.0.0.1", 100))
    servers.record_answers(LOSS, seconds=WINDOW_S)
    await sent(scaled)
    assert scaled.condition("Retaining") == ("True", "RetentionKept")
    assert servers.record_answers(LOSS, seconds=2 * POLL_S)
    await sent(scaled)
    assert scaled.condition("Retaining") == ("Unknown", "Observing")
    assert scaled.message("Retaining").startswith("sessions-1 uses 100 MiB for items instead of 64 MiB, as after")
    scaled.limits_set.append(("10.0.0.1", 64))
    servers.record_answers(CALM)
    await sent(scaled)
    assert scaled.condition("Retaining") == ("True", "RetentionKept")


async def test_unused_memory_is_recommended_and_told_after_a_day(scaled: World, servers: Servers) -> None:
    servers.record_answers(CALM, age_s=3600)
    await sent(scaled)
    assert "recommendedMemory" not in scaled.status, "all of it was used within the retention"
    servers.record_answers(CALM, age_s=30 * 3600)
    await sent(scaled)
    assert scaled.status["recommendedMemory"] == "13Mi"
    assert "MemoryUnused" not in reasons(scaled)
    scaled.clock.advance(DAY_S)
    assert servers.record_answers(CALM, age_s=30 * 3600, seconds=POLL_S), (
        "it is reported without another reason to reconcile"
    )
    await sent(scaled)
    assert scaled.condition("Retaining") == ("True", "MemoryUnused")
    (note,) = (each.note for each in scaled.recorder.events if each.reason == "MemoryUnused")
    assert note.startswith("For a day, 13Mi of 64Mi would have kept what clients request within 1h. ")
    assert (scaled.status["memory"], memory_of(scaled)) == ("64Mi", "64")
    assert not servers.record_answers(CALM, age_s=30 * 3600)


async def test_no_memory_is_recommended_while_servers_lose_nor_less_than_the_largest_item_takes() -> None:
    world = await running_scaled(memoryScaling={"max": "64Mi"}, maxItemSize="15Mi")
    servers = Servers(world)
    servers.record_answers(CALM, age_s=30 * 3600)
    await sent(world)
    assert world.status["recommendedMemory"] == "34Mi"
    servers.record_answers(LOSS, age_s=30 * 3600)
    await sent(world)
    assert world.condition("Retaining") == ("False", "MaximumReached")
    assert "recommendedMemory" not in world.status


async def test_without_the_field_there_is_neither_condition_nor_series(named: World) -> None:
    assert named.status["memory"] == "64Mi"
    assert "Retaining" not in {each["type"] for each in named.status["conditions"]}
    assert not any(family.samples for family in named.reconciler.scaler.families())


async def test_the_metrics_have_memory_and_retention(scaled: World, servers: Servers) -> None:
    servers.record_answers(LOSS)
    samples = {
        sample.name.removeprefix("memcached_scaling_"): sample.value
        for family in scaled.reconciler.scaler.families()
        for sample in family.samples
    }
    assert samples == {
        "memory_actual_bytes": 64 * 2**20,
        "memory_desired_bytes": 64 * 2**20,
        "memory_max_bytes": 512 * 2**20,
        "observed_retention_seconds": 720.0,
        "required_retention_seconds": 3600.0,
    }


async def test_servers_whose_items_moved_there_are_judged_once_they_run_for_the_retention(
    scaled: World, servers: Servers
) -> None:
    for ordinal in range(2):
        moved = pod(scaled, ordinal)
        moved["metadata"]["annotations"][HOLDER_ANNOTATION] = "uid-of-a-holder"
        scaled.api.put(moved)
    servers.uptime = 0
    servers.record_answers(LOSS)
    await sent(scaled)
    assert (scaled.status["memory"], scaled.condition("Retaining")) == ("64Mi", ("Unknown", "Observing"))
    servers.uptime = 3600  # its default
    servers.record_answers(LOSS)
    await sent(scaled)
    assert scaled.status["memory"] == "80Mi"
