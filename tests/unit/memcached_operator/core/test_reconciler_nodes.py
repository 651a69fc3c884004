"""What nodes say of servers that are not ready, and by which clock, through the reconciler."""

from __future__ import annotations

import pytest

from memcached_operator.core.rollout.diagnosis.bounded_reads import READ_AFTER_S, REREAD_AFTER_S
from memcached_operator.core.rollout.server_states import STUCK_AFTER_S, WAIT_S
from operator_runtime.client.errors import Forbidden
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.running_servers import EVICT, PAUSE_S, get_ready, pod, rfc3339, sent
from tests.unit.memcached_operator.support import NAME, NAMESPACE
from tests.unit.memcached_operator.world import DELAY_S, World

AHEAD_S = 900


async def test_nodes_whose_clocks_are_ahead_hold_no_rollout_and_are_told(named: World) -> None:
    for ordinal in range(3):
        pod(named, ordinal)["status"]["conditions"][0]["lastTransitionTime"] = rfc3339(named, in_s=AHEAD_S)
        named.api.put(pod(named, ordinal))
    named.memcached(size=3, workload="StatefulSet", image="memcached:2")
    assert EVICT not in await sent(named), "they may have been ready for no longer than that was seen"
    words = f"The clock of the node of {NAME}-0 is ahead of the operator's"
    assert words in named.message("Progressing")
    assert words in named.message("Ready")
    named.clock.advance(PAUSE_S)
    assert EVICT in await sent(named)
    named.clock.advance(AHEAD_S)
    await sent(named)
    assert words not in named.message("Progressing")


@pytest.mark.parametrize("reason", ["ImagePullBackOff", "CrashLoopBackOff"])
async def test_an_init_container_that_fails_is_named_and_the_corrected_specification_is_taken_at_once(
    named: World, reason: str
) -> None:
    inits = {"spec": {"initContainers": [{"name": "fetch", "image": "wrong"}]}}
    named.memcached(size=3, workload="StatefulSet", podTemplate=inits)
    assert EVICT in await sent(named)
    status = pod(named, 2)["status"]
    status["containerStatuses"][0]["state"] = {"waiting": {"reason": "PodInitializing"}}
    status["initContainerStatuses"] = [{"name": "fetch", "state": {"waiting": {"reason": reason}}}]
    get_ready(named, 2, ready=False)
    assert EVICT not in await sent(named)
    problem = f"{reason} of the container fetch"
    assert named.message("Available") == f"2 of 3 servers are ready: 1 with {problem}"
    assert named.condition("Degraded") == ("True", "RolloutStuck")
    assert f"The new server {NAME}-2 is not ready ({problem}), so the other 2" in named.message("Degraded")
    named.memcached(size=3, workload="StatefulSet")
    assert EVICT in await sent(named)
    assert named.condition("Degraded") == ("False", "AsExpected")


REJECTED = "Pod was rejected: Node didn't have enough resource: memory, requested: 134217728, used: 0, capacity: 9"


async def test_why_a_node_rejects_pods_is_told_in_the_words_of_a_pods_status_also_once_it_is_gone(world: World) -> None:
    world.memcached(size=2)
    await world.reconcile()
    world.deployment["status"] = {"observedGeneration": 1}
    world.pods(0, 2)
    found = [each for key, each in world.api.objects.items() if key[0] == "Pod"]
    for each in found:
        each["status"] = {"phase": "Failed", "reason": "OutOfmemory", "message": REJECTED}
        world.api.put(each)
    await world.writes()
    told = f"0 of 2 servers are ready: OutOfmemory: {REJECTED}"
    assert world.message("Available") == told
    world.pods(0, 2)
    await world.writes()
    assert world.message("Available") == told
    world.pods(2)
    await world.writes()
    world.pods(0, 2)
    await world.writes()
    assert world.message("Available") == "0 of 2 servers are ready."


async def unmounted(world: World) -> None:
    """A new server is made whose volumes are not mounted."""
    world.memcached(size=3, workload="StatefulSet", podTemplate={"spec": {"dnsPolicy": "Default"}})
    await sent(world)
    get_ready(world, 2, ready=False)
    status = pod(world, 2)["status"]
    status["containerStatuses"][0]["state"] = {"waiting": {"reason": "ContainerCreating"}}
    status["conditions"].append({"type": "PodScheduled", "status": "True"})
    status["conditions"].append({"type": "PodReadyToStartContainers", "status": "False"})
    world.api.put(pod(world, 2))
    await sent(world)
    assert world.message("Available") == "2 of 3 servers are ready."


NO_SECRET = 'MountVolume.SetUp failed for volume "config" : secret "nope" not found'


def record_mount_failure(world: World, of: Json) -> None:
    """Record an event, as the pod's node does."""
    world.api.put(
        {
            "kind": "Event",
            "metadata": {"name": "mount", "namespace": NAMESPACE},
            "involvedObject": {"kind": "Pod", "uid": of["metadata"]["uid"]},
            "reason": "FailedMount",
            "message": NO_SECRET,
            "lastTimestamp": rfc3339(world),
        }
    )


async def test_why_a_volume_cannot_be_mounted_is_told_in_the_words_of_the_pods_event(named: World) -> None:
    await unmounted(named)
    record_mount_failure(named, pod(named, 2))
    named.show()
    result = await named.reconcile()
    assert result.requeue_after_s == pytest.approx(READ_AFTER_S, abs=2), "without an event"
    assert "list Event" not in named.api.verbs()
    await named.reconcile(after_s=READ_AFTER_S)
    assert "list Event" in named.api.verbs()
    await sent(named)
    assert named.message("Available") == f"2 of 3 servers are ready: 1 with FailedMount: {NO_SECRET}"
    assert named.condition("Degraded") == ("True", "RolloutStuck")
    assert NO_SECRET in named.message("Degraded")
    assert "list Event" not in named.api.verbs(), "once in a while"
    named.memcached(size=3, workload="StatefulSet")
    assert EVICT in await sent(named)


async def test_why_the_volumes_of_a_first_pod_are_not_mounted_is_told_without_an_event_of_the_pod(world: World) -> None:
    world.memcached(size=1)
    await world.reconcile()
    world.deployment["status"] = {"observedGeneration": 1}
    world.pods(0, 1)
    (first,) = [each for key, each in world.api.objects.items() if key[0] == "Pod"]
    first["metadata"]["creationTimestamp"] = rfc3339(world)
    first["spec"] = first.get("spec", {}) | {"nodeName": "node-1"}
    first["status"] = {"phase": "Pending"}
    world.api.put(first)
    world.show()
    result = await world.reconcile(after_s=DELAY_S)
    assert result.requeue_after_s == pytest.approx(READ_AFTER_S, abs=1)
    at = rfc3339(world)
    first["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": at},
        {"type": "PodReadyToStartContainers", "status": "False", "lastTransitionTime": at},
        {"type": "Ready", "status": "False", "lastTransitionTime": at},
    ]
    world.api.put(first)
    record_mount_failure(world, first)
    begin_s = world.clock.now
    while world.clock.now - begin_s < READ_AFTER_S + 2:
        world.show()
        assert result.requeue_after_s is not None
        result = await world.reconcile(after_s=result.requeue_after_s)
    assert world.message("Available") == f"0 of 1 servers are ready: FailedMount: {NO_SECRET}"


UNBOUND = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims"
NO_CLASS = 'storageclass.storage.k8s.io "nope" not found'


async def test_why_the_claim_of_a_disk_is_not_bound_is_told_in_the_words_of_the_claims_event(named: World) -> None:
    named.memcached(size=3, workload="StatefulSet", podTemplate={"spec": {"dnsPolicy": "Default"}})
    await sent(named)
    get_ready(named, 2, ready=False)
    placed = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": f"{UNBOUND}. preemption"}
    pod(named, 2)["status"]["conditions"].append(placed)
    named.api.put(pod(named, 2))
    await sent(named)
    assert named.message("Available") == f"2 of 3 servers are ready: 1 with Unschedulable: {UNBOUND}"
    event = {
        "kind": "Event",
        "metadata": {"name": "claim", "namespace": NAMESPACE},
        "involvedObject": {"kind": "PersistentVolumeClaim", "name": f"{NAME}-2-extstore"},
        "reason": "ProvisioningFailed",
        "message": NO_CLASS,
        "lastTimestamp": rfc3339(named),
    }
    named.api.put(event)
    named.clock.advance(REREAD_AFTER_S)
    await sent(named)
    problem = f"Unschedulable: ProvisioningFailed of the claim {NAME}-2-extstore: {NO_CLASS}"
    assert named.message("Available") == f"2 of 3 servers are ready: 1 with {problem}"


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_volume_that_cannot_be_mounted_is_told_once_it_takes_long(named: World, *, allowed: bool) -> None:
    if not allowed:
        named.api.refuse("list", "Event", *[Forbidden(403, "Forbidden", "no right")] * 9)
    await unmounted(named)
    named.clock.advance(WAIT_S)
    await sent(named)
    words = "ContainerCreating: its volumes or its network are not ready, as where a volume's Secret or ConfigMap does "
    assert words in named.message("Available")
    assert named.condition("Degraded") == ("False", "AsExpected")
    named.clock.advance(STUCK_AFTER_S - WAIT_S)
    await sent(named)
    assert named.condition("Degraded") == ("True", "RolloutStuck")
    assert words in named.message("Degraded")
    named.memcached(size=3, workload="StatefulSet")
    assert EVICT in await sent(named)
