"""Why a StatefulSet's servers are missing is found and told, with what to do about it."""

from __future__ import annotations

import json
import logging

import pytest

from memcached_operator.core.observed.pods import PodRecord, pod_record
from memcached_operator.core.rollout.diagnosis.bounded_reads import READ_AFTER_S, REREAD_AFTER_S
from memcached_operator.core.rollout.diagnosis.ended_pods import OVERDUE_S, why_not_ended
from memcached_operator.core.rollout.server_states import STUCK_AFTER_S
from operator_runtime.client.errors import Forbidden, KubeError, ServerError
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.running_servers import control, pod, reasons, rfc3339, stateful_set
from tests.unit.memcached_operator.support import NAME, NAMESPACE, OTHER_UID
from tests.unit.memcached_operator.world import DELAY_S, World

SERVER = f"{NAME}-2"
REQUESTS = ["list Event", "get Pod"]
GRACE_S = 30


async def reconcile(world: World, *, after_s: float = DELAY_S) -> list[str]:
    """Reconcile with a watch that keeps up; what was requested of the API server."""
    world.show()
    await world.reconcile(after_s=after_s)
    return [each for each in world.api.verbs() if not each.endswith("Memcached")]


def delete(world: World, found: Json) -> None:
    """Ask for the end of a pod, as of now; nothing ends it."""
    ends = rfc3339(world, in_s=GRACE_S)
    found["metadata"] |= {"deletionTimestamp": ends, "deletionGracePeriodSeconds": GRACE_S}
    found["spec"]["nodeName"] = "worker-2"
    world.api.put(found)


async def test_a_pod_that_does_not_end_is_named_with_its_node_and_what_to_do(named: World) -> None:
    since = rfc3339(named)
    delete(named, pod(named, 2))
    for _ in range(3):
        assert await reconcile(named) == []
    result = await named.reconcile(after_s=DELAY_S)
    assert result.requeue_after_s == pytest.approx(GRACE_S + OVERDUE_S, abs=2), "without an event"
    assert named.condition("Degraded") == ("False", "AsExpected")
    assert await reconcile(named, after_s=GRACE_S + OVERDUE_S) == []
    await reconcile(named)
    assert named.condition("Degraded") == ("True", "TerminationStalled")
    message = named.message("Degraded")
    assert f"{SERVER} has been terminating since {since}, and its node worker-2 has not reported that it" in message
    assert f"`kubectl delete pod {SERVER} --force --grace-period=0`" in message
    assert "2 of 3 servers are ready: 2 of 3 pods exist. " in named.message("Available")
    assert message in named.message("Available")
    del named.api.objects["Pod", NAMESPACE, SERVER]


async def begin_rollout(world: World) -> None:
    """To another image, which the StatefulSet's controller has named."""
    world.memcached(size=3, workload="StatefulSet", image="memcached:2")
    await reconcile(world)
    generation = stateful_set(world)["metadata"]["generation"]
    stateful_set(world)["status"] |= {"observedGeneration": generation, "updateRevision": "new"}
    world.api.put(stateful_set(world))


async def test_the_time_in_which_a_pod_ends_is_not_counted_as_that_of_its_successor(named: World) -> None:
    """A grace period of minutes is the user's wish, and no rollout that is stuck."""
    await begin_rollout(named)
    ends = rfc3339(named, in_s=10 * STUCK_AFTER_S)
    ending = pod(named, 2)
    ending["metadata"] |= {"deletionTimestamp": ends, "deletionGracePeriodSeconds": int(10 * STUCK_AFTER_S)}
    named.api.put(ending)
    await reconcile(named)
    await reconcile(named, after_s=2 * STUCK_AFTER_S)
    await reconcile(named)
    assert named.condition("Degraded") == ("False", "AsExpected")
    del named.api.objects["Pod", NAMESPACE, SERVER]
    await reconcile(named)
    await reconcile(named, after_s=STUCK_AFTER_S)
    await reconcile(named)
    assert named.condition("Degraded") == ("True", "RolloutStuck")
    assert f"The server {SERVER} has no pod" in named.message("Degraded")


async def test_the_time_of_one_missing_server_is_not_that_of_another(named: World) -> None:
    await begin_rollout(named)
    back = pod(named, 2)
    del named.api.objects["Pod", NAMESPACE, SERVER]
    await reconcile(named)
    await reconcile(named, after_s=STUCK_AFTER_S - 10)
    del named.api.objects["Pod", NAMESPACE, f"{NAME}-1"]
    await reconcile(named)
    named.api.put(back)
    await reconcile(named)
    await reconcile(named, after_s=STUCK_AFTER_S / 2)
    await reconcile(named)
    assert named.condition("Degraded") == ("False", "AsExpected")
    await reconcile(named, after_s=STUCK_AFTER_S / 2)
    await reconcile(named)
    assert f"The server {NAME}-1 has no pod" in named.message("Degraded")


@pytest.mark.parametrize(
    ("labels", "owner", "words"),
    [
        ({"app": "debug"}, None, f"it lacks the labels app=memcached,memcached_cr={NAME}"),
        (
            {"app": "memcached", "memcached_cr": NAME},
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": OTHER_UID, "controller": True},
            "it belongs to StatefulSet web",
        ),
    ],
)
async def test_a_pod_that_is_none_of_its_servers_and_bears_the_name_of_one_is_told(
    named: World, labels: Json, owner: Json | None, words: str
) -> None:
    theirs = pod(named, 2)
    theirs["metadata"] |= {"labels": labels, "ownerReferences": [owner] if owner else []}
    named.api.put(theirs)
    assert await reconcile(named) == []
    assert "get Pod" in await reconcile(named, after_s=READ_AFTER_S)
    await reconcile(named)
    assert named.condition("Degraded") == ("True", "NotControlled")
    message = named.message("Degraded")
    assert f"Pod {SERVER} blocks the server of that name: {words}, so it does" in message
    assert f"`kubectl delete pod {SERVER}`" in message
    assert ("kubectl label pod" in message) == (owner is None)


async def test_the_api_server_is_asked_seldom_and_no_more_once_all_are_there(named: World) -> None:
    lost = pod(named, 2)
    del named.api.objects["Pod", NAMESPACE, SERVER]
    stateful_set(named)["status"]["observedGeneration"] = 0
    named.api.put(stateful_set(named))
    await reconcile(named)
    assert await reconcile(named, after_s=REREAD_AFTER_S) == [], "its controller is yet to see it"
    stateful_set(named)["status"]["observedGeneration"] = stateful_set(named)["metadata"]["generation"]
    named.api.put(stateful_set(named))
    assert await reconcile(named) == REQUESTS
    for _ in range(5):
        assert await reconcile(named, after_s=REREAD_AFTER_S / 6) == []
    assert await reconcile(named, after_s=REREAD_AFTER_S / 6) == REQUESTS
    named.api.put(lost)
    for _ in range(5):
        assert await reconcile(named, after_s=REREAD_AFTER_S) == []


async def test_of_a_server_that_is_there_again_nothing_is_told_while_another_is_missing(named: World) -> None:
    healthy = pod(named, 1)
    theirs = json.loads(json.dumps(healthy))
    theirs["metadata"] |= {"labels": {"app": "debug"}, "ownerReferences": []}
    named.api.put(theirs)
    del named.api.objects["Pod", NAMESPACE, SERVER]
    await reconcile(named)
    await reconcile(named, after_s=READ_AFTER_S)
    await reconcile(named)
    assert named.condition("Degraded") == ("True", "NotControlled")
    named.api.put(healthy)
    await reconcile(named)
    await reconcile(named)
    assert named.condition("Degraded") == ("False", "AsExpected")


@pytest.mark.parametrize(
    ("verb", "kind", "error"),
    [
        ("get", "Pod", Forbidden(403, "Forbidden", "no right")),
        ("list", "Event", Forbidden(403, "Forbidden", "no right")),
        ("list", "Event", ServerError(500)),
    ],
)
async def test_what_cannot_be_asked_costs_nothing_else(named: World, verb: str, kind: str, error: KubeError) -> None:
    del named.api.objects["Pod", NAMESPACE, SERVER]
    named.api.refuse(verb, kind, error)
    await reconcile(named)
    assert f"{verb} {kind}" in await reconcile(named, after_s=READ_AFTER_S)
    await reconcile(named)
    assert named.condition("Degraded") == ("False", "AsExpected")
    assert f"the events of `kubectl describe statefulset {NAME}` say why" in named.message("Available")


REFUSED = f'pods "{SERVER}" is forbidden: exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2'
POLICY = 'admission webhook "x" denied the request: no'


def record_event(
    world: World, words: str, *, ordinal: int = 2, reason: str = "FailedCreate", ago_s: float = 0.0
) -> None:
    """Record an event, as the StatefulSet's controller does."""
    how = f"failed error: {words}" if reason == "FailedCreate" else "successful"
    name = f"{NAME}-{len(world.api.objects)}"
    world.api.put(
        {
            "kind": "Event",
            "metadata": {"name": name, "namespace": NAMESPACE, "creationTimestamp": rfc3339(world, in_s=-3600)},
            "involvedObject": {"kind": "StatefulSet", "uid": stateful_set(world)["metadata"]["uid"]},
            "reason": reason,
            "message": f"Create Pod {NAME}-{ordinal} in StatefulSet {NAME} {how}",
            "lastTimestamp": rfc3339(world, in_s=-ago_s),
            "eventTime": None,
        }
    )


@pytest.mark.parametrize(("words", "reason"), [(REFUSED, "QuotaExceeded"), (POLICY, "DeniedByPolicy")])
async def test_why_a_pod_is_not_made_is_told_in_the_events_words(named: World, words: str, reason: str) -> None:
    lost = pod(named, 2)
    del named.api.objects["Pod", NAMESPACE, SERVER]
    record_event(named, words)
    assert await reconcile(named) == []
    assert await reconcile(named, after_s=READ_AFTER_S) == ["list Event"]
    await reconcile(named)
    assert named.condition("Degraded") == ("True", reason)
    assert named.message("Degraded") == f"Create Pod {SERVER} in StatefulSet {NAME} failed error: {words}"
    assert named.condition("Ready") == ("False", reason)
    assert words in named.message("Available")
    assert reasons(named) == [reason]
    named.api.put(lost)
    await named.settle()
    assert named.condition("Degraded") == ("False", "AsExpected")


async def test_that_events_may_not_be_read_is_said_with_remedy(named: World, caplog: pytest.LogCaptureFixture) -> None:
    refusal = Forbidden(403, "Forbidden", 'cannot list resource "events"')
    named.api.refuse("list", "Event", *[refusal] * 3)
    del named.api.objects["Pod", NAMESPACE, SERVER]
    with caplog.at_level(logging.INFO):
        for _ in range(4):
            await reconcile(named, after_s=REREAD_AFTER_S)
    (logged,) = [each for each in caplog.messages if "cannot list events" in each]
    assert 'cannot list resource "events"' in logged
    assert "grant list on events to the operator's service account" in logged


def test_of_many_pods_that_do_not_end_the_first_few_are_named() -> None:
    def ending(name: str, **more: object) -> PodRecord:
        metadata = {"name": name, "uid": "u", "resourceVersion": "1", "namespace": NAMESPACE, **more}
        metadata |= {"deletionTimestamp": "2026-11-21T12:00:30Z", "deletionGracePeriodSeconds": GRACE_S}
        return pod_record(json.dumps({"metadata": metadata, "spec": {"nodeName": "a"}}).encode())

    held = why_not_ended([ending("x", finalizers=["a/b", "c/d"])])
    assert "because of the finalizers a/b, c/d: the clients that added them must remove them" in held
    pods = [ending(f"{NAME}-{ordinal}") for ordinal in range(5)]
    message = why_not_ended(pods)
    assert f"{NAME}-0 has been terminating since 2026-11-21T12:00:00Z, and its node a " in message
    assert f"{NAME}-2" in message
    assert message.endswith(" 2 more pods have not ended.")
    assert why_not_ended([]) == ""


async def test_pods_that_keep_the_workload_that_servers_have_moved_from_are_told(world: World) -> None:
    world.memcached(size=1, drainPeriodSeconds=0)
    await world.reconcile()
    world.deployment["status"] = {"observedGeneration": 1}
    world.pods(1)
    await world.settle()
    world.memcached(size=1, workload="StatefulSet", drainPeriodSeconds=0)
    (left,) = [each for key, each in world.api.objects.items() if key[0] == "Pod"]
    for _ in range(4):
        await reconcile(world)
        control(world)
    assert "deletionTimestamp" in world.deployment["metadata"]
    delete(world, left)
    await reconcile(world)
    assert world.condition("Degraded") == ("False", "AsExpected")
    await reconcile(world, after_s=GRACE_S + OVERDUE_S)
    await reconcile(world)
    assert world.condition("Degraded") == ("True", "TerminationStalled")
    assert f"{left['metadata']['name']} has been terminating since " in world.message("Degraded")
