from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from memcached_operator.core.objects.labels import APPLIED_ANNOTATION, OWNER_UID_ANNOTATION
from memcached_operator.core.observed import workloads as records
from memcached_operator.core.observed.caches import MEMCACHEDS
from memcached_operator.core.observed.memcacheds import MemcachedRecord, memcached_record
from memcached_operator.core.observed.pod_status import NO_PROBLEM
from memcached_operator.core.observed.pods import PodRecord, pod_record
from memcached_operator.core.observed.workloads import WorkloadRecord, deployment_record
from operator_runtime.cache.store import ObjectKey
from tests.unit.memcached_operator.support import (
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
Fields = dict[str, Any]


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


def test_a_memcached_keeps_its_finalizers() -> None:
    meta = {"name": NAME, "uid": UID, "resourceVersion": "7", "finalizers": ["example.com/a", "orphan"]}
    assert memcached_record(json.dumps({"metadata": meta}).encode()).finalizers == ("example.com/a", "orphan")
    assert memcached().finalizers == ()


# Deployment


def test_our_deployment_is_known_by_its_owner_and_by_its_annotation() -> None:
    record = deployment_of()
    assert (record.namespace, record.name, record.uid) == (NAMESPACE, NAME, DEPLOYMENT_UID)
    owner = (record.owner_kind, record.owner_name, record.owner_uid)
    assert (*owner, record.made_for_uid) == ("Memcached", NAME, UID, UID)
    assert (record.deleting, record.create_failure, record.deadline_exceeded) == (False, "", "")


@pytest.mark.parametrize(
    "edit",
    [lambda live: live["metadata"].pop("ownerReferences"), lambda live: owner_of(live).update(controller=False)],
    ids=["no owner", "one that does not control"],
)
def test_a_deployment_that_lost_its_owner_is_known_by_its_annotation_and_still_held_in_full(edit: Edit) -> None:
    record = deployment(edit)
    assert (record.owner_kind, record.owner_uid, record.made_for_uid) == ("", "", UID)
    assert record.owned


def owner_of(live: dict[str, Any]) -> dict[str, Any]:
    owner: dict[str, Any] = live["metadata"]["ownerReferences"][0]
    return owner


def _named(name: str, edit: Edit = lambda _: None) -> bytes:
    """Our Deployment as a Memcached of that name would have it."""
    live = live_deployment()
    edit(live)
    return json.dumps(live).replace(json.dumps(NAME), json.dumps(name)).encode()


def _container(name: str, image: str) -> Edit:
    return lambda live: live["spec"]["template"]["spec"]["containers"][0].update(name=name, image=image)


SIMILAR = [
    _named("one"),
    _named("two"),
    _named("two", lambda live: live["spec"].update(replicas=7)),
    _named("two", lambda live: live["metadata"]["labels"].update(team="shop")),
    _named("two", lambda live: live["metadata"].pop("ownerReferences")),
    _named("memcached"),
    _named("one", _container(NAME, "one")),  # a container that somebody called as the Memcached
    _named("one", _container("memcached", NAME)),  # an image of its name
    _named("two", _container("memcached", NAME)),
    _named("template"),  # a name that is a field's, too
]


@pytest.mark.parametrize(("before", "after"), [*itertools.permutations(SIMILAR, 2)])
def test_what_is_known_of_one_deployment_makes_no_difference_to_another(before: bytes, after: bytes) -> None:
    records._known.clear()
    alone = deployment_record(after)
    records._known.clear()
    deployment_record(before)
    assert deployment_record(after) == alone
    assert deployment_record(after) == alone


def test_specifications_that_differ_in_names_alone_are_read_once_and_not_kept_without_end() -> None:
    records._known.clear()
    for name in ("one", "two"):
        deployment_record(_named(name))
    assert len(records._known) == 1
    for number in range(1_000):
        deployment_record(_named("one", _container("memcached", f"memcached:{number}")))
    assert len(records._known) <= 128


@pytest.mark.parametrize(
    "owners",
    [
        [],
        [{"apiVersion": "example.com/v1", "kind": "Boss", "name": "boss", "uid": OTHER_UID, "controller": True}],
        [{"apiVersion": "example.com/v1", "kind": "Memcached", "name": NAME, "uid": OTHER_UID, "controller": True}],
    ],
    ids=["no owner", "another kind", "a Memcached of another group"],
)
def test_of_a_foreign_deployment_nothing_is_held_but_its_name_and_owner(owners: list[dict[str, Any]]) -> None:
    def edit(live: dict[str, Any]) -> None:
        live["metadata"]["ownerReferences"] = owners
        del live["metadata"]["annotations"]
        live["spec"] = {"replicas": "a stranger's specification is not read"}

    record = deployment(edit)
    assert record.owned == b""
    known = (record.owner_kind, record.owner_name)
    assert known == ((owners[0]["kind"], owners[0]["name"]) if owners else ("", ""))


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
    assert held["metadata"]["annotations"] == {APPLIED_ANNOTATION: "{}", OWNER_UID_ANNOTATION: uid}
    assert held["metadata"]["labels"]["first"] == label
    assert held["spec"] == json.loads(deployment(lambda _: None).owned)["spec"]


@pytest.mark.parametrize("uid", ["ALL", ":[", "},"], ids=["a value", "between two values", "before the specification"])
def test_a_uid_that_stands_in_the_specification_too_spoils_no_other_record(uid: str) -> None:
    def made_for(uid: str) -> Any:
        annotations = {OWNER_UID_ANNOTATION: uid}
        return json.loads(
            deployment(lambda live: live["metadata"].update(ownerReferences=[], annotations=annotations)).owned
        )

    records._known.clear()
    for each in (uid, OTHER_UID):
        assert made_for(each)["metadata"]["annotations"] == {OWNER_UID_ANNOTATION: each}
    assert made_for(uid)["spec"] == made_for(OTHER_UID)["spec"] == json.loads(deployment_of().owned)["spec"]


def progressing(status: str, reason: str, message: str = "") -> Edit:
    condition = {"type": "Progressing", "status": status, "reason": reason, "message": message}
    return lambda live: live["status"].update(conditions=[condition])


def test_the_image_of_an_owned_deployment_is_known_and_a_foreign_one_s_is_not() -> None:
    assert deployment_of().image == "memcached:1.6.45-alpine"

    def of_somebody_else(live: dict[str, Any]) -> None:
        del live["metadata"]["ownerReferences"], live["metadata"]["annotations"]

    assert deployment(of_somebody_else).image == ""
    assert deployment(lambda live: live["spec"]["template"]["spec"].pop("containers")).image == ""


QUOTA = 'pods "sessions-7cc6f4b5f7-4nkmr" is forbidden: exceeded quota: q, requested: pods=1'
FAILURE = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": QUOTA}
LATE = 'ReplicaSet "sessions-7cc6f4b5f7" has timed out progressing.'
REVISION = "deployment.kubernetes.io/revision"
ROLLOUTS: list[tuple[Edit, Fields]] = [
    (lambda _: None, {"is_observed": True, "rolled_out": True, "revised": False, "has_revision": True}),
    (lambda live: live["metadata"].update(generation=2), {"is_observed": False, "rolled_out": True}),
    (lambda live: live.pop("status"), {"is_observed": False, "rolled_out": False}),
    *((progressing("True", f"{each}"), {"rolled_out": False}) for each in ("ReplicaSetUpdated", "DeploymentPaused")),
    (lambda live: live["metadata"]["annotations"].update({REVISION: "2"}), {"revised": True}),
    (lambda live: live["metadata"]["annotations"].pop(REVISION), {"revised": False, "has_revision": False}),
    (lambda live: live["status"]["conditions"].append(FAILURE), {"create_failure": QUOTA}),
    (lambda live: live["status"]["conditions"].append(FAILURE | {"status": "False"}), {"create_failure": ""}),
    # What keeps it from making its ReplicaSet is no missed deadline.
    (progressing("False", "ReplicaSetCreateError", QUOTA), {"create_failure": QUOTA, "deadline_exceeded": ""}),
    (progressing("False", "ProgressDeadlineExceeded", LATE), {"deadline_exceeded": LATE, "rolled_out": False}),
    (progressing("False", "ProgressDeadlineExceeded"), {"deadline_exceeded": "ProgressDeadlineExceeded"}),
]


@pytest.mark.parametrize(("edit", "fields"), ROLLOUTS)
def test_how_far_a_deployment_is_follows_from_what_its_controller_says(edit: Edit, fields: Fields) -> None:
    record = deployment(edit)
    assert {name: getattr(record, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("deleting", "finalizers"), [(True, ("example.com/a", "example.com/b")), (False, ())], ids=["being deleted", "not"]
)
def test_of_a_deployment_being_deleted_it_is_known_whose_finalizers_keep_it(
    deleting: bool, finalizers: tuple[str, ...]
) -> None:
    def held(live: dict[str, Any]) -> None:
        live["metadata"]["finalizers"] = ["example.com/a", "foregroundDeletion", "orphan", "example.com/b"]
        if deleting:
            live["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"

    assert deployment(held).finalizers == finalizers


# Pods


def test_a_ready_pod_as_the_api_server_returns_it() -> None:
    assert pod() == PodRecord(
        namespace=NAMESPACE,
        name="sessions-7cc6f4b5f7-n9n7d",
        uid="69c834d2-3456-477e-8076-181db1b42f58",
        resource_version="273",
        memcached=NAME,
        revision="7cc6f4b5f7",
        active=True,
        ready=True,
        problem=NO_PROBLEM,
        since_s=int(datetime(2026, 11, 21, 12, 18, 3, tzinfo=UTC).timestamp()),
        template_hash=deployment_of().template_hash,
        memory=deployment_of().memory,
    )
    assert pod().memcached_key == ObjectKey(NAMESPACE, NAME)


def test_of_a_pod_it_is_known_what_it_was_made_with_and_how_often_its_memcached_was_started_again() -> None:
    def changed(live: dict[str, Any]) -> None:
        live["metadata"]["annotations"] = {
            "cache.example.com/memory": "64Mi",
            "cache.example.com/template": "abc",
            "example.com/other": "x",
            "kubectl.kubernetes.io/restartedAt": "2026-11-21T12:00:00Z",
        }
        sidecar = {"name": "sidecar", "restartCount": 7}
        live["status"]["containerStatuses"] = [sidecar, live["status"]["containerStatuses"][0] | {"restartCount": 2}]
        live["status"]["podIP"] = "10.0.0.7"

    found = pod(changed)
    assert (found.memory, found.template_hash, found.restarted) == ("64Mi", "abc", "2026-11-21T12:00:00Z")
    assert (found.restarts, found.address) == (2, "10.0.0.7")


@pytest.mark.parametrize("time", [None, "", "yesterday"])
def test_a_time_that_nobody_can_read_is_that_of_its_making(time: str | None) -> None:
    found = pod(lambda live: live["status"]["conditions"][0].update(lastTransitionTime=time))
    assert found.since_s == int(datetime(2026, 11, 21, 12, 18, 0, tzinfo=UTC).timestamp())
    assert pod(lambda live: live["metadata"].update(creationTimestamp=None) or live["status"].clear()).since_s == 0


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


def in_state(**state: object) -> Edit:
    return lambda live: live["status"]["containerStatuses"][0].update(state=state)


def waiting(reason: str) -> Edit:
    return in_state(waiting={"reason": reason})


def reloader(state: dict[str, Any], last: dict[str, Any] | None = None, *, started: bool = False) -> Edit:
    def edit(live: dict[str, Any]) -> None:
        waiting("PodInitializing")(live)
        status = {"name": "reloader", "state": state, "lastState": last or {}, "started": started}
        live["status"]["initContainerStatuses"] = [{"name": "injected", "state": COMPLETED}, status]

    return edit


def ended(message: str) -> dict[str, Any]:
    return {"terminated": {"exitCode": 1, "reason": "Error", "message": message}}


RUNNING: dict[str, Any] = {"running": {}}
COMPLETED: dict[str, Any] = {"terminated": {"exitCode": 0, "reason": "Completed"}}
BACK_OFF: dict[str, Any] = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
PROBLEM = "SecretNotFound: there is no Secret a with the key tls.crt"


def proxy(live: dict[str, Any]) -> None:
    """Another container has a problem while memcached starts."""
    waiting("ContainerCreating")(live)
    live["status"]["containerStatuses"].append({"name": "proxy", "state": {"waiting": {"reason": "ErrImagePull"}}})


def unscheduled(message: str) -> Edit:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return lambda live: live.update(status={"phase": "Pending", "conditions": [condition]})


def in_phase(phase: str) -> Edit:
    return lambda live: live["status"].update(phase=phase)


NO_ROOM = "0/3 nodes are available: 3 Insufficient memory."
MORE = " no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful."
AWAY: Fields = {"active": False}
LEFT: Fields = {"ready": False, "active": True}
WELL: Fields = {"problem": "", "down": False}
PODS: list[tuple[Edit, Fields]] = [
    (lambda live: live["metadata"].update(deletionTimestamp="2026-11-21T12:00:00Z"), AWAY),
    *((in_phase(each), AWAY) for each in ("Succeeded", "Failed")),
    *((in_phase(each), {"active": True}) for each in ("Pending", "Unknown")),
    (lambda live: live.pop("status"), LEFT | WELL),
    (lambda live: live["status"].pop("conditions"), LEFT),
    (lambda live: live["status"]["conditions"][0].update(status="Unknown"), LEFT),
    # A container that cannot start or has ended is a problem, and one that is starting is none.
    *((waiting(each), {"problem": each, "down": True}) for each in ("ImagePullBackOff", "CrashLoopBackOff")),
    (waiting("ErrImagePull"), {"problem": "ImagePullBackOff"}),
    # It has no keys, as it has never run.
    *((waiting(each), {"problem": "", "down": True}) for each in ("ContainerCreating", "PodInitializing", "")),
    (in_state(terminated={"exitCode": 137, "reason": "OOMKilled"}), {"problem": "OOMKilled", "down": True}),
    (proxy, {"problem": "ImagePullBackOff of the container proxy", "down": True}),
    # No node can take it.
    (unscheduled(NO_ROOM), {"problem": f"Unschedulable: {NO_ROOM}", "down": True}),
    (unscheduled(NO_ROOM + MORE), {"problem": f"Unschedulable: {NO_ROOM}".removesuffix(".")}),
    (unscheduled(""), {"problem": "Unschedulable"}),
    # What the sidecar said is the problem until it lets memcached start.
    (reloader(ended(f"{PROBLEM}\n")), {"problem": PROBLEM}),
    (reloader(BACK_OFF, ended(PROBLEM)), {"problem": PROBLEM}),
    (reloader(RUNNING, ended(PROBLEM)), {"problem": PROBLEM}),
    (reloader(ended("Other"), ended(PROBLEM)), {"problem": "Other"}),
    (reloader(RUNNING, ended(PROBLEM), started=True), {"problem": ""}),
    (reloader(RUNNING), {"problem": ""}),
    (reloader(BACK_OFF, ended("")), {"problem": "CrashLoopBackOff of the container reloader"}),
    (reloader({"waiting": {"reason": "ErrImagePull"}}), {"problem": "ImagePullBackOff of the container reloader"}),
]


@pytest.mark.parametrize(("edit", "fields"), PODS)
def test_how_a_pod_is_follows_from_its_status(edit: Edit, fields: Fields) -> None:
    found = {name: getattr(pod(edit), name) for name in fields}
    if "problem" in found:
        found["problem"] = str(found["problem"])
    assert found == fields


def test_of_long_messages_the_beginning_is_kept() -> None:
    assert len(str(pod(reloader(ended("CertificateInvalid: " + "a" * 4096))).problem)) == 512
    problem = str(pod(unscheduled("0/5000 nodes are available: " + "1 Insufficient memory, " * 500)).problem)
    assert problem.startswith("Unschedulable: 0/5000 nodes are available")
    assert len(problem) <= 160


def test_a_pod_that_has_waited_for_a_node_begins_to_start_when_it_has_one() -> None:
    times = {"Ready": "2026-11-21T12:00:00Z", "PodScheduled": "2026-11-21T12:18:03Z"}
    conditions = [{"type": type_, "status": "False", "lastTransitionTime": time} for type_, time in times.items()]
    found = pod(lambda live: live["status"].update(conditions=conditions))
    assert found.since_s == int(datetime(2026, 11, 21, 12, 18, 3, tzinfo=UTC).timestamp())


def test_a_memcached_that_is_nested_deeper_than_a_stack_goes_keeps_what_is_not() -> None:
    deep = '{"a":' * 10_000 + "1" + "}" * 10_000
    body = json.dumps({"metadata": {"name": NAME, "uid": UID, "resourceVersion": "7"}, "spec": {"size": 3, "x": 0}})
    record = MEMCACHEDS.decode(body.replace('"x": 0', f'"x": {deep}').encode())
    assert (record.name, record.resource_version) == (NAME, "7")
    assert record.spec.startswith(b'{"size": 3, "x": {"a":{"a":')
    assert len(record.spec) < 1000
