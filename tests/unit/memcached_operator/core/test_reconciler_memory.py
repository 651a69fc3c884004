"""Other memory reaches servers that run, through the reconciler."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memcached_operator.core.rollout.live.resize_state import PATIENCE_S, REFUSED_RETRY_S
from memcached_operator.servers.server_connection import ErrorKind, Failure
from operator_runtime.client.errors import Forbidden, Invalid, NotFound, StatusCause
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.running_servers import (
    EVICT,
    PAUSE_S,
    RESIZE,
    RESTARTS,
    UNREACHABLE,
    control,
    costs,
    get_ready,
    pod,
    reasons,
    resize,
    run_for_long,
    sent,
    start_again,
    stateful_set,
    template_of,
)
from tests.unit.memcached_operator.support import NO_RIGHT
from tests.unit.memcached_operator.world import DELAY_S, KEY, World

WRITE, RESIZES = "strategic_merge_patch StatefulSet", [RESIZE] * 3


def more(world: World) -> None:
    """Ask for more memory."""
    world.memcached(size=3, workload="StatefulSet", memory="128Mi")


async def test_more_memory_reaches_servers_that_run_and_the_template_last(named: World) -> None:
    uids = [pod(named, each)["metadata"]["uid"] for each in range(3)]
    more(named)
    assert await sent(named) == [*RESIZES, WRITE]
    assert sorted(named.limits_set) == [(f"10.0.0.{each}", 128) for each in range(3)]
    assert [pod(named, each)["metadata"]["uid"] for each in range(3)] == uids
    assert "128" in template_of(stateful_set(named))["spec"]["containers"][0]["command"]
    assert named.condition("Ready") == ("True", "AllServersReady")
    assert reasons(named).count("Resized") == 2, "of the first, and of the others"
    assert await sent(named) == []


async def test_which_items_are_moved_to_a_disk_reaches_servers_that_run(world: World) -> None:
    disk = {"size": "1Gi", "volume": {"emptyDir": {}}}
    world.memcached(size=3, workload="StatefulSet", extstore=disk)
    await world.reconcile_shown()
    control(world)
    await world.settle()
    uids = [pod(world, each)["metadata"]["uid"] for each in range(3)]
    world.memcached(size=3, workload="StatefulSet", extstore=disk | {"itemSizeMin": 4096})
    assert await sent(world) == [WRITE]
    assert world.disks_from == [4096] * 3
    assert [pod(world, each)["metadata"]["uid"] for each in range(3)] == uids
    (note,) = (each.note for each in world.recorder.events if each.reason == "Resized")
    assert note.endswith("to 64 MiB, with items of 4096 bytes or more moved to the disk, without a restart")


async def test_less_memory_is_told_before_there_is_less_room(named: World) -> None:
    named.memcached(size=3, workload="StatefulSet", memory="32Mi")
    named.show()
    named.api.refuse("strategic_merge_patch/resize", "Pod", *[Forbidden(403, "Forbidden", "not now")] * 3)
    await named.reconcile(after_s=DELAY_S)
    assert sorted(named.limits_set) == [(f"10.0.0.{each}", 32) for each in range(3)]


CAPACITY = StatusCause("NodeCapacity", "too much", "spec")


@pytest.mark.parametrize(
    ("refusal", "why"),
    [
        (Forbidden(403, "Forbidden", NO_RIGHT), NO_RIGHT),
        (Invalid(422, "Invalid", "Pod QOS Class may not change as a result of resizing"), "QOS"),
        (Forbidden(403, "Forbidden", "node has 64Mi", causes=(CAPACITY,)), "node has 64Mi"),
        (NotFound(404, "NotFound", "the server could not find the requested resource"), "1.33"),
    ],
)
async def test_a_pod_that_cannot_be_resized_is_replaced_and_told_why(named: World, refusal: Any, why: str) -> None:
    named.api.refuse("strategic_merge_patch/resize", "Pod", *[refusal] * 3)
    more(named)
    written = await sent(named)
    assert written == [*RESIZES, WRITE, EVICT]
    notes = [each.note for each in named.recorder.events if each.reason == "NotResized"]
    assert len(notes) == 3
    assert all(why in each for each in notes)
    for _ in range(2):
        named.clock.advance(PAUSE_S)
        assert await sent(named) == [EVICT]
    assert named.limits_set == []
    assert named.condition("Ready") == ("True", "AllServersReady")


async def test_no_server_is_replaced_for_memory_that_the_template_does_not_have_yet(named: World) -> None:
    """It would be made with the former memory, and replaced once more."""
    more(named)
    await sent(named)
    named.api.refuse("strategic_merge_patch/resize", "Pod", Invalid(422, "Invalid", "QOS"))
    named.set_limit_failure = Failure(ErrorKind.SATURATED, "it is busy")
    named.memcached(size=3, workload="StatefulSet", memory="256Mi")
    assert set(await sent(named)) == {RESIZE}
    named.set_limit_failure = None
    assert await sent(named) == [WRITE, EVICT]


async def test_where_no_new_pod_could_be_made_either_servers_stay_as_they_are(named: World) -> None:
    words = 'pods "sessions-0" is forbidden: exceeded quota: small, requested: limits.memory=74Mi'
    named.api.refuse("strategic_merge_patch/resize", "Pod", *[Forbidden(403, "Forbidden", words)] * 21)
    more(named)
    assert set(await sent(named)) == {RESIZE}
    named.clock.advance(PATIENCE_S)
    named.show()
    await named.reconcile(after_s=DELAY_S)
    named.show()
    result = await named.reconcile(after_s=DELAY_S)
    assert result.requeue_after_s == REFUSED_RETRY_S
    assert named.condition("Degraded") == ("True", "QuotaExceeded")
    assert words in named.message("Degraded")
    assert not {"NotResized", "Replacing"} & set(reasons(named))
    assert await sent(named) == [*RESIZES, WRITE]
    assert named.condition("Ready") == ("True", "AllServersReady")


async def test_resources_that_somebody_reverts_are_requested_once_a_reconcile(named: World) -> None:
    patch = named.api.patch

    async def revert(*arguments: Any, **options: Any) -> bytes:
        answer = await patch(*arguments, **options)
        if options["subresource"] != "resize":
            return answer
        (key,) = [key for key in named.api.objects if key[0] == "Pod" and key[2] == arguments[2]]
        (container,) = named.api.objects[key]["spec"]["containers"]
        container["resources"] = {"limits": {"memory": "1Mi"}}
        return json.dumps(named.api.objects[key]).encode()

    named.api.patch = revert  # type: ignore[method-assign]
    more(named)
    assert await sent(named, reconciles=1) == RESIZES
    named.clock.advance(PATIENCE_S)
    await sent(named)
    assert "reverts" in next(each.note for each in named.recorder.events if each.reason == "NotResized")


async def test_a_memcached_that_was_started_again_is_told_again(named: World) -> None:
    more(named)
    await sent(named)
    named.limits_set.clear()
    start_again(named, 1)
    assert await sent(named) == []
    assert named.limits_set == [("10.0.0.1", 128)]


async def test_a_busy_server_keeps_its_keys_and_is_told_when_it_has_a_moment(named: World) -> None:
    named.set_limit_failure = Failure(ErrorKind.SATURATED, "it is busy")
    more(named)
    assert await sent(named) == RESIZES
    for _ in range(3):
        named.clock.advance(PATIENCE_S)
        assert await sent(named) == []
    assert named.condition("Ready") == ("False", "Waiting")
    assert "it is busy" in named.message("Ready")
    named.set_limit_failure = None
    assert await sent(named) == [WRITE]


@pytest.mark.parametrize("kind", [*ErrorKind, None])
async def test_a_new_leader_that_reaches_no_server_or_may_not_read_pods_replaces_none_for_it(
    named: World, kind: ErrorKind | None
) -> None:
    more(named)
    await sent(named)
    named.owners.states.forget(KEY)
    if kind is None:
        refusal = Forbidden(403, "Forbidden", 'pods "a" is forbidden: cannot get resource "pods"')
        named.api.refuse("get", "Pod", *[refusal] * 99)
    else:
        named.set_limit_failure = Failure(kind, "it does not answer")
    for _ in range(3):
        named.clock.advance(PATIENCE_S)
        assert await sent(named) == []
    assert named.condition("Ready") == ("True", "AllServersReady")
    assert "NotResized" not in reasons(named)
    named.set_limit_failure = None
    named.api.refusals_of.clear()
    named.limits_set.clear()
    await sent(named)
    assert len(named.limits_set) == 3


async def running(fields: dict[str, Any]) -> World:
    """Three servers of that specification that have run for long, of an operator that asks servers."""
    world = World(queried=True)
    return await run_for_long(world, size=3, workload="StatefulSet", **fields)


TLS = {"secretName": "a", "reload": "Restart"}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"auth": {"secretName": "a"}, "tls": TLS}, "the servers require a password, and --server-credentials is off"),
        ({"tls": TLS | {"clientAuth": "Require"}}, "the servers require a client certificate, and --server-cred"),
        ({}, "this cluster cannot resize pods in place (Kubernetes 1.33 and newer can)"),
        ({}, "the operator cannot connect to the servers (no connection within 1 s)"),
    ],
)
async def test_what_is_known_to_be_missing_is_announced_and_waited_for_by_nobody(
    fields: dict[str, Any], why: str
) -> None:
    world = await running(fields)
    assert world.stats_cache is not None
    if "resize" in why:
        world.api.core = ("pods",)
    elif "connect" in why:
        for each in [*world.caches.pods.values()] * 2:
            world.stats_cache.record(each, UNREACHABLE)
    world.memcached(size=3, workload="StatefulSet", memory="128Mi", **fields)
    assert await sent(world) == [WRITE, EVICT], "at the pace of a rollout, and without a try"
    ((reason, note),) = costs(world)
    assert reason == "RollingChange"
    assert note.startswith("spec.memory: 3 servers are replaced, one at a time, from the highest ordinal; each loses")
    assert f"; their memory cannot be changed while they run, as {why}" in note
    assert "no key is lost" not in note
    notes = [each.note for each in world.recorder.events if each.reason == "NotResized"]
    assert [why in each for each in notes] == [True] * 3
    assert world.limits_set == []


@pytest.mark.parametrize("by_webhook", [False, True])
async def test_a_resize_that_would_have_containers_start_again_is_a_rollout_and_announced_as_one(
    by_webhook: bool,
) -> None:
    policy = {"podTemplate": {"spec": {"containers": [{"name": "memcached", "resizePolicy": RESTARTS}]}}}
    fields: dict[str, Any] = {} if by_webhook else policy
    world = await running(fields)
    for ordinal in range(3):
        pod(world, ordinal)["spec"]["containers"][0]["resizePolicy"] = RESTARTS
        world.api.put(pod(world, ordinal))
    get_ready(world, 1, ready=False)
    get_ready(world, 2, ready=False)
    world.memcached(size=3, workload="StatefulSet", memory="128Mi", **fields)
    await sent(world)
    get_ready(world, 1)
    get_ready(world, 2)
    assert [each for each in await sent(world) if each != EVICT] == [], "none is resized"
    ((reason, note),) = costs(world)
    assert reason == "RollingChange"
    assert "no key is lost" not in note
    assert (
        "; their memory cannot be changed while they run, as the resizePolicy of the container memcached is "
        "RestartContainer for memory"
    ) in note
    assert world.limits_set == []


async def test_a_policy_of_another_resource_or_container_restarts_nothing() -> None:
    world = await running({})
    for ordinal in range(3):
        (container,) = pod(world, ordinal)["spec"]["containers"]
        container["resizePolicy"] = [
            {"resourceName": "cpu", "restartPolicy": "RestartContainer"},
            {"resourceName": "memory", "restartPolicy": "NotRequired"},
        ]
        pod(world, ordinal)["spec"]["containers"].append({"name": "exporter", "resizePolicy": RESTARTS})
        world.api.put(pod(world, ordinal))
    world.memcached(size=3, workload="StatefulSet", memory="128Mi")
    assert await sent(world) == [*RESIZES, WRITE]
    assert [reason for reason, _ in costs(world)] == ["LiveChange"]


@pytest.mark.parametrize("is_ready", [True, False])
async def test_a_change_that_turns_out_to_empty_a_server_stops_there_and_says_so(named: World, is_ready: bool) -> None:
    more(named)
    assert await sent(named, reconciles=1) == [RESIZE]
    start_again(named, 0)
    get_ready(named, 0, ready=is_ready)
    await sent(named)
    get_ready(named, 0)
    for _ in range(3):
        named.clock.advance(PATIENCE_S)
        assert await sent(named) == []
    assert named.limits_set == [("10.0.0.0", 128)]
    assert named.condition("Degraded") == ("True", "RolloutStuck")
    assert named.message("Degraded").startswith(
        "sessions-1 keeps its memory, as it cannot get 128 MiB: the container of sessions-0 started again when it was "
        "resized, and its keys are lost. Restore the previous memory, or change the annotation"
    )
    (event,) = (each for each in named.recorder.events if each.reason == "Resized")
    assert event.type == "Warning"
    assert event.note == "The container of sessions-0 started again when it was given 128 MiB, so its keys are lost"


async def test_a_change_that_stopped_can_be_taken_back(named: World) -> None:
    more(named)
    await sent(named, reconciles=1)
    start_again(named, 0)
    await sent(named)
    named.memcached(size=3, workload="StatefulSet")
    assert await sent(named) == []
    assert dict(named.limits_set)["10.0.0.0"] == 64
    assert named.condition("Ready") == ("True", "AllServersReady")
    assert named.condition("Degraded") == ("False", "AsExpected")
    assert not {"NotResized", "Replacing"} & set(reasons(named))
    named.memcached(size=3, workload="StatefulSet", memory="256Mi")
    assert await sent(named) == [WRITE, EVICT]
    reason, note = costs(named)[-1]
    assert reason == "RollingChange"
    assert "as the container of sessions-0 started again when it was resized" in note


async def test_a_change_that_stopped_goes_on_as_a_rollout_once_a_restart_is_requested(named: World) -> None:
    more(named)
    await sent(named, reconciles=1)
    start_again(named, 0)
    await sent(named)
    memcached = named.api.objects["Memcached", *KEY]
    memcached["metadata"]["annotations"] = {"cache.example.com/restart": "now"}
    named.api.put(memcached)
    assert await sent(named) == [WRITE, EVICT]
    assert costs(named)[-1][0] == "RollingChange"


def limit(world: World, found: Json, memory: str, *, specified: bool = True) -> None:
    """Let a pod have another memory limit, by another client or by its node alone."""
    for each in [found["status"]["containerStatuses"][0], *found["spec"]["containers"][: int(specified)]]:
        each["resources"] = {**each.get("resources", {}), "limits": {"memory": memory}}
    world.api.put(found)


async def sent_and_told(world: World) -> list[str]:
    """What is written until the status is, while no node does anything."""
    found = []
    for _ in range(2):
        world.show()
        await world.reconcile(after_s=DELAY_S)
        found += [each for each in world.api.verbs() if not each.startswith("get ") and "Memcached" not in each]
    return found


def limit_of(world: World, ordinal: int) -> str:
    return str(pod(world, ordinal)["spec"]["containers"][0]["resources"]["limits"]["memory"])


LIMITED = ("True", "MemoryLimited")


@pytest.mark.parametrize("is_ready", [True, False])
@pytest.mark.parametrize("grown", [True, False])
async def test_a_limit_that_another_client_lowers_is_told_and_set_back(
    named: World, is_ready: bool, grown: bool
) -> None:
    if grown:
        more(named)
        await sent(named)
        named.clock.advance(PATIENCE_S)
    before, calculated = len(named.limits_set), limit_of(named, 1)
    limit(named, pod(named, 1), "10Mi")
    get_ready(named, 1, ready=is_ready)
    assert await sent_and_told(named) == ([RESIZE] if is_ready or not grown else [])
    if grown and not is_ready:
        return  # it is to answer first
    assert named.condition("Degraded") == LIMITED
    assert named.message("Degraded") == (
        f"The memory limit of sessions-1 (10Mi) is lower than the {calculated} that a server needs, as after another "
        "client's change of its pod: the kernel may end it, and its keys are lost. Have that client leave out these "
        "pods"
    )
    get_ready(named, 1)
    control(named)
    assert await sent(named) == []
    assert limit_of(named, 1) == calculated
    assert named.condition("Degraded") == ("False", "AsExpected")
    note = f"Set the memory limit of sessions-1 back to {calculated}, as another client had lowered it"
    assert note in [each.note for each in named.recorder.events]
    assert (len(named.limits_set) > before) == grown, "only where its command line has another"
    assert not {"NotResized", "Replacing"} & set(reasons(named))


@pytest.mark.parametrize("lowered", ["64Mi", "200Mi"])  # as the memory for items, and as the request
async def test_a_limit_that_is_lowered_to_another_number_of_its_memory_is_set_back(world: World, lowered: str) -> None:
    memory = {"requests": {"memory": "200Mi"}, "limits": {"memory": "300Mi"}}
    world.memcached(size=3, workload="StatefulSet", resources=memory)
    await world.reconcile_shown()
    control(world)
    await world.settle()
    limit(world, pod(world, 1), lowered)
    assert await sent(world) == [RESIZE]
    assert limit_of(world, 1) == "300Mi"


async def test_a_limit_that_cannot_be_set_back_costs_no_server_and_is_tried_again(named: World) -> None:
    calculated = limit_of(named, 1)
    limit(named, pod(named, 1), "10Mi")
    refusal = Invalid(422, "Invalid", "no in-place resize of these")
    named.api.refuse("strategic_merge_patch/resize", "Pod", refusal)
    assert await sent(named) == [RESIZE]
    assert named.condition("Degraded") == LIMITED
    assert named.message("Degraded").endswith("; it is not set back, sessions-1: no in-place resize of these")
    assert named.condition("Available") == ("True", "MinimumReplicasAvailable")
    named.clock.advance(PATIENCE_S)
    assert await sent(named) == [RESIZE]
    assert limit_of(named, 1) == calculated
    assert named.condition("Degraded") == ("False", "AsExpected")
    limit(named, pod(named, 1), "10Mi")
    assert await sent(named) == [], "not at that client's pace"
    assert named.condition("Degraded") == LIMITED
    named.clock.advance(PATIENCE_S)
    assert await sent(named) == [RESIZE]
    assert not {"NotResized", "Replacing"} & set(reasons(named))


async def test_a_limit_is_not_set_back_where_that_empties_the_server(named: World) -> None:
    pod(named, 1)["spec"]["containers"][0]["resizePolicy"] = RESTARTS
    limit(named, pod(named, 1), "10Mi")
    assert await sent(named) == []
    assert named.condition("Degraded") == LIMITED
    assert "it is not set back, sessions-1: the resizePolicy of the container memcached" in named.message("Degraded")
    assert "Replacing" not in reasons(named)


async def test_a_limit_that_its_node_has_not_raised_is_told_in_its_words(named: World) -> None:
    limit(named, pod(named, 1), "10Mi", specified=False)
    resize(named, pod(named, 1), type="PodResizePending", reason="Deferred", message="Node has no room")
    assert await sent(named) == []
    assert named.condition("Degraded") == LIMITED
    assert named.message("Degraded").endswith("it is not set back, sessions-1: Deferred: Node has no room")


async def test_more_room_than_calculated_or_what_a_node_rounds_is_no_problem(named: World) -> None:
    calculated = limit_of(named, 1)
    limit(named, pod(named, 0), "1Gi")
    limit(named, pod(named, 1), str(int(calculated.removesuffix("Mi")) * 1024 * 1024 - 4096), specified=False)
    assert await sent(named) == []
    assert named.condition("Degraded") == ("False", "AsExpected")


async def test_a_limit_of_a_deployments_server_is_set_back_too(running: World) -> None:
    (key, *_) = [key for key in running.api.objects if key[0] == "Pod"]
    found = running.api.objects[key]
    template = running.api.objects["Deployment", *KEY]["spec"]["template"]
    found["metadata"]["annotations"] = dict(template["metadata"]["annotations"])
    limit(running, found, "10Mi")
    assert await sent_and_told(running) == [RESIZE]
    assert running.condition("Degraded") == LIMITED


async def test_a_cluster_that_does_not_say_what_it_serves_is_tried(named: World) -> None:
    named.api.unserved = Forbidden(403, "Forbidden", "no discovery")
    more(named)
    assert await sent(named) == [*RESIZES, WRITE]
    assert [reason for reason, _ in costs(named)] == ["LiveChange"]


async def test_memory_that_servers_are_told_of_is_announced_once_however_long_it_takes(named: World) -> None:
    named.set_limit_failure = UNREACHABLE
    more(named)
    await sent(named, reconciles=2)
    named.set_limit_failure = None
    await sent(named)
    ((reason, note),) = costs(named)
    assert reason == "LiveChange"
    assert note.startswith("spec.memory: 3 servers are set to 128 MiB while they run, and no key is lost; ")
    assert note.endswith('. spec.memory: "64Mi" → "128Mi"')
    assert reasons(named)[0] == "LiveChange"
