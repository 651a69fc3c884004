from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from memcached_operator.memcached.kinds import MEMCACHEDS
from memcached_operator.memcached.labels import OWNER_UID_ANNOTATION
from memcached_operator.memcached.records import MemcachedRecord, memcached_record
from memcached_operator.memcached.workloads.pods import PodRecord, pod_record
from memcached_operator.memcached.workloads.records import WorkloadRecord, deployment_record
from operator_runtime.cache.store import ObjectKey
from tests.unit.memcached_operator.memcached.support import (
    DEPLOYMENT_UID,
    NAME,
    NAMESPACE,
    OTHER_UID,
    UID,
    deployment_of,
    live_deployment,
    live_pod,
)

Edit = Callable[[dict[str, Any]], object]


def memcached(**fields: object) -> MemcachedRecord:
    meta: dict[str, object] = {
        "name": NAME,
        "namespace": NAMESPACE,
        "uid": UID,
        "resourceVersion": "7",
        "generation": 2,
    }
    return memcached_record(json.dumps({"metadata": meta, **fields}).encode())


def pod(edit: Edit = lambda _: None) -> PodRecord:
    live = live_pod()
    edit(live)
    return pod_record(json.dumps(live).encode())


def deployment(edit: Edit) -> WorkloadRecord:
    live = live_deployment()
    edit(live)
    return deployment_of(live)


# Memcached


def test_a_memcached_keeps_its_spec_and_status_as_they_came() -> None:
    record = memcached(spec={"size": "three"}, status={"nodes": ["a"]})
    assert (record.namespace, record.name, record.uid) == (NAMESPACE, NAME, UID)
    assert (record.resource_version, record.generation, record.deleting) == ("7", 2, False)
    assert json.loads(record.spec) == {"size": "three"}
    assert json.loads(record.status) == {"nodes": ["a"]}


def test_a_memcached_keeps_its_finalizers_and_equal_ones_take_their_memory_once() -> None:
    meta = {"name": NAME, "uid": UID, "resourceVersion": "7", "finalizers": ["example.com/a", "orphan"]}
    one, other = (memcached_record(json.dumps({"metadata": meta}).encode()) for _ in range(2))
    assert one.finalizers == ("example.com/a", "orphan")
    assert one.finalizers is other.finalizers
    assert memcached().finalizers == ()


def test_a_memcached_without_spec_and_status_has_no_bytes_of_them() -> None:
    record = memcached()
    assert (record.spec, record.status) == (b"", b"")


def test_a_memcached_with_a_deletion_timestamp_is_being_deleted() -> None:
    meta = {"name": NAME, "uid": UID, "resourceVersion": "8", "deletionTimestamp": "2026-11-21T12:00:00Z"}
    assert memcached(metadata=meta).deleting


# Deployment


def test_our_deployment_is_known_by_its_owner_and_by_its_annotation() -> None:
    record = deployment_of()
    assert (record.namespace, record.name, record.uid) == (NAMESPACE, NAME, DEPLOYMENT_UID)
    assert (record.owner, record.owner_uid, record.made_for_uid) == (f"Memcached {NAME}", UID, UID)
    assert (record.deleting, record.create_failure, record.deadline_exceeded) == (False, "", "")


def test_a_deployment_that_lost_its_owner_is_known_by_its_annotation_and_still_held_in_full() -> None:
    record = deployment(lambda live: live["metadata"].pop("ownerReferences"))
    assert (record.owner, record.owner_uid, record.made_for_uid) == ("", "", UID)
    assert record.owned


@pytest.mark.parametrize(
    "owners",
    [
        [],
        [{"apiVersion": "example.com/v1", "kind": "Boss", "name": "boss", "uid": OTHER_UID, "controller": True}],
        [{"apiVersion": "example.com/v1", "kind": "Memcached", "name": NAME, "uid": OTHER_UID, "controller": True}],
    ],
    ids=["no owner", "another kind", "a Memcached of another group"],
)
def test_of_a_strangers_deployment_nothing_is_held_but_its_name_and_owner(owners: list[dict[str, Any]]) -> None:
    def edit(live: dict[str, Any]) -> None:
        live["metadata"]["ownerReferences"] = owners
        del live["metadata"]["annotations"]
        live["spec"] = {"replicas": "a stranger's specification is not read"}

    record = deployment(edit)
    assert record.owned == b""
    assert record.owner == (f"{owners[0]['kind']} {owners[0]['name']}" if owners else "")


# Pieces of JSON, the characters that stand for a name and a uid in a record, and whatever else a string may have.
TEXTS = st.lists(st.sampled_from([*':,{}[]"\\\0\1', NAME, UID, "é"]) | st.characters(codec="utf-8"), max_size=8).map(
    "".join
)


@given(uid=TEXTS, label=TEXTS)
@example(uid=":\0,", label=NAME)
def test_whatever_the_texts_of_a_deployment_say_it_is_held_as_the_json_that_it_was(uid: str, label: str) -> None:
    def edit(live: dict[str, Any]) -> None:
        live["metadata"]["annotations"][OWNER_UID_ANNOTATION] = uid
        live["metadata"]["labels"]["first"] = label

    held = json.loads(deployment(edit).owned)
    assert held["metadata"].get("annotations", {}) == ({OWNER_UID_ANNOTATION: uid} if uid else {})
    assert held["metadata"]["labels"]["first"] == label
    assert held["spec"] == json.loads(deployment(lambda _: None).owned)["spec"]


def test_an_owner_that_does_not_control_is_no_owner() -> None:
    record = deployment(lambda live: live["metadata"]["ownerReferences"][0].update(controller=False))
    assert (record.owner, record.owner_uid) == ("", "")


def test_a_deployment_is_settled_once_its_controller_has_seen_its_latest_generation() -> None:
    assert deployment_of().settled
    assert not deployment(lambda live: live["metadata"].update(generation=2)).settled
    assert not deployment(lambda live: live.pop("status")).settled


def progressing(status: str, reason: str, message: str = "") -> Edit:
    condition = {"type": "Progressing", "status": status, "reason": reason, "message": message}
    return lambda live: live["status"].update(conditions=[condition])


def test_a_deployment_is_rolled_out_when_its_controller_says_so() -> None:
    assert deployment_of().rolled_out
    for reason in ("NewReplicaSetCreated", "ReplicaSetUpdated", "DeploymentPaused"):
        assert not deployment(progressing("True", reason)).rolled_out
    assert not deployment(lambda live: live.pop("status")).rolled_out


def test_the_image_of_our_deployment_is_known_and_a_stranger_s_is_not() -> None:
    assert deployment_of().image == "memcached:1.6.45-alpine"

    def of_somebody_else(live: dict[str, Any]) -> None:
        del live["metadata"]["ownerReferences"], live["metadata"]["annotations"]

    assert deployment(of_somebody_else).image == ""
    assert deployment(lambda live: live["spec"]["template"]["spec"].pop("containers")).image == ""


def test_a_deployment_is_revised_once_its_controller_has_seen_a_second_template() -> None:
    assert not deployment_of().revised
    revision = "deployment.kubernetes.io/revision"
    assert deployment(lambda live: live["metadata"]["annotations"].update({revision: "2"})).revised
    assert not deployment(lambda live: live["metadata"]["annotations"].pop(revision)).revised


def test_what_keeps_a_deployment_from_making_pods_is_told_in_the_servers_words() -> None:
    message = 'pods "sessions-7cc6f4b5f7-4nkmr" is forbidden: exceeded quota: q, requested: pods=1'
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}
    assert deployment(lambda live: live["status"]["conditions"].append(failure)).create_failure == message
    over = failure | {"status": "False"}
    assert deployment(lambda live: live["status"]["conditions"].append(over)).create_failure == ""


def test_what_keeps_a_deployment_from_making_its_replica_set_is_no_missed_deadline() -> None:
    message = 'Failed to create new replica set "sessions-7cc6f4b5f7": exceeded quota: q'
    record = deployment(progressing("False", "ReplicaSetCreateError", message))
    assert (record.create_failure, record.deadline_exceeded) == (message, "")


def test_a_missed_deadline_is_told_in_the_controllers_words() -> None:
    message = 'ReplicaSet "sessions-7cc6f4b5f7" has timed out progressing.'
    record = deployment(progressing("False", "ProgressDeadlineExceeded", message))
    assert (record.create_failure, record.deadline_exceeded, record.rolled_out) == ("", message, False)
    assert deployment(progressing("False", "ProgressDeadlineExceeded")).deadline_exceeded == "ProgressDeadlineExceeded"


def test_a_deployment_fresh_from_the_api_server_has_no_status_yet() -> None:
    meta = {"name": "d", "namespace": "n", "uid": "u", "resourceVersion": "1", "generation": 1}
    record = deployment_record(json.dumps({"metadata": meta, "spec": {}, "status": {}}).encode())
    assert (record.generation, record.settled, record.rolled_out) == (1, False, False)


@pytest.mark.parametrize(
    ("deleting", "held_by"), [(True, "example.com/a, example.com/b"), (False, "")], ids=["being deleted", "not"]
)
def test_of_a_deployment_that_is_being_deleted_it_is_known_whose_finalizers_keep_it(
    deleting: bool, held_by: str
) -> None:
    def held(live: dict[str, Any]) -> None:
        live["metadata"]["finalizers"] = ["example.com/a", "foregroundDeletion", "orphan", "example.com/b"]
        if deleting:
            live["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"

    assert deployment(held).held_by == held_by


# Pods


def test_a_ready_pod_as_the_api_server_returns_it() -> None:
    assert pod() == PodRecord(
        namespace=NAMESPACE,
        name="sessions-7cc6f4b5f7-n9n7d",
        uid="69c834d2-3456-477e-8076-181db1b42f58",
        resource_version="273",
        memcached=NAME,
        template_hash="7cc6f4b5f7",
        active=True,
        ready=True,
        problem="",
    )
    assert pod().memcached_key == ObjectKey(NAMESPACE, NAME)


def test_a_terminating_pod_is_not_active() -> None:
    assert not pod(lambda live: live["metadata"].update(deletionTimestamp="2026-11-21T12:00:00Z")).active


@pytest.mark.parametrize(
    ("phase", "active"),
    [("Pending", True), ("Running", True), ("Unknown", True), ("Succeeded", False), ("Failed", False)],
)
def test_a_finished_pod_is_not_active(phase: str, active: bool) -> None:
    assert pod(lambda live: live["status"].update(phase=phase)).active is active


def test_a_pod_without_a_status_is_active_and_not_ready_and_nothing_is_wrong_with_it() -> None:
    record = pod(lambda live: live.pop("status"))
    assert (record.active, record.ready, record.problem) == (True, False, "")


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_pod_is_ready_when_its_condition_is_true_and_not_otherwise(status: str) -> None:
    assert not pod(lambda live: live["status"]["conditions"][0].update(status=status)).ready
    assert not pod(lambda live: live["status"].pop("conditions")).ready


def owned_by(**changes: object) -> Edit:
    return lambda live: live["metadata"]["ownerReferences"][0].update(changes)


FOREIGN_PODS: dict[str, Edit] = {
    "no owner": lambda live: live["metadata"].pop("ownerReferences"),
    "an owner that does not control": owned_by(controller=False),
    "the ReplicaSet of another Deployment": owned_by(name="web-7cc6f4b5f7"),
    "a ReplicaSet of the Memcached's name alone": owned_by(name=NAME),
    "the ReplicaSet of a Memcached whose name begins like this one": owned_by(name="sessions-2-7cc6f4b5f7"),
    "a Job": owned_by(kind="Job"),
    "no hash of a template": lambda live: live["metadata"]["labels"].pop("pod-template-hash"),
}


@pytest.mark.parametrize("edit", FOREIGN_PODS.values(), ids=FOREIGN_PODS)
def test_a_pod_that_merely_carries_our_labels_is_nobodys(edit: Edit) -> None:
    record = pod(edit)
    assert (record.memcached, record.memcached_key) == ("", None)


def waiting(reason: str) -> Edit:
    return lambda live: live["status"]["containerStatuses"][0].update(state={"waiting": {"reason": reason}})


@pytest.mark.parametrize(
    "reason", ["ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError", "CrashLoopBackOff"]
)
def test_a_container_that_cannot_start_is_a_problem(reason: str) -> None:
    assert pod(waiting(reason)).problem == reason


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing", ""])
def test_a_container_that_is_merely_starting_is_no_problem(reason: str) -> None:
    assert pod(waiting(reason)).problem == ""


def test_the_turns_of_an_image_that_cannot_be_pulled_are_one_problem() -> None:
    assert pod(waiting("ErrImagePull")).problem == pod(waiting("ImagePullBackOff")).problem == "ImagePullBackOff"


def test_a_container_that_ended_is_a_problem() -> None:
    terminated = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    assert pod(lambda live: live["status"]["containerStatuses"][0].update(state=terminated)).problem == "OOMKilled"


def test_the_first_container_with_a_problem_is_told() -> None:
    def edit(live: dict[str, Any]) -> None:
        waiting("ContainerCreating")(live)
        live["status"]["containerStatuses"].append({"name": "proxy", "state": {"waiting": {"reason": "ErrImagePull"}}})

    assert pod(edit).problem == "ImagePullBackOff"


def unscheduled(message: str) -> Edit:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return lambda live: live.update(status={"phase": "Pending", "conditions": [condition]})


def test_a_pod_that_no_node_can_take_says_why() -> None:
    message = "0/3 nodes are available: 3 Insufficient memory."
    assert pod(unscheduled(message)).problem == f"Unschedulable: {message}"
    assert pod(unscheduled("")).problem == "Unschedulable"


def test_of_a_long_message_of_the_scheduler_the_beginning_is_kept() -> None:
    problem = pod(unscheduled("0/5000 nodes are available: " + "1 Insufficient memory, " * 500)).problem
    assert problem.startswith("Unschedulable: 0/5000 nodes are available")
    assert len(problem) <= 160


def test_a_scheduled_pod_has_no_such_problem() -> None:
    condition = {"type": "PodScheduled", "status": "True"}
    assert pod(lambda live: live["status"].update(conditions=[condition])).problem == ""


def test_a_memcached_that_is_nested_deeper_than_a_stack_goes_keeps_what_is_not() -> None:
    deep = '{"a":' * 10_000 + "1" + "}" * 10_000
    body = json.dumps({"metadata": {"name": NAME, "uid": UID, "resourceVersion": "7"}, "spec": {"size": 3, "x": 0}})
    record = MEMCACHEDS.decode(body.replace('"x": 0', f'"x": {deep}').encode())
    assert (record.name, record.resource_version) == (NAME, "7")
    assert record.spec.startswith(b'{"size": 3, "x": {"a":{"a":')
    assert len(record.spec) < 1000
