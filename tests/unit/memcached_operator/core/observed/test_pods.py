"""Whose a pod is: a StatefulSet's by its owner, and by its name once it was left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from memcached_operator.core.observed.pod_status import NO_PROBLEM
from memcached_operator.core.observed.pods import NO_ORDINAL, PodRecord, pod_record
from tests.unit.memcached_operator.support import NAME, live_pod

Edit = Callable[[dict[str, Any]], object]
POD_NAME = "statefulset.kubernetes.io/pod-name"


def named(ordinal: int | str, edit: Edit = lambda _: None) -> PodRecord:
    """A pod as a StatefulSet's controller makes it, edited."""
    pod = live_pod()
    pod["status"]["podIP"] = "10.0.0.1"
    labels = {"app": "memcached", "memcached_cr": NAME, "controller-revision-hash": f"{NAME}-74c86c4cfd"}
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": NAME, "uid": "u", "controller": True}
    pod["metadata"] |= {
        "name": f"{NAME}-{ordinal}",
        "labels": labels | {POD_NAME: f"{NAME}-{ordinal}"},
        "ownerReferences": [owner],
    }
    edit(pod)
    return pod_record(json.dumps(pod).encode())


def test_a_pod_of_a_stateful_set_has_its_place() -> None:
    pod = named(12)
    assert (pod.memcached, pod.workload, pod.ordinal) == (NAME, "StatefulSet", 12)
    assert pod.revision == f"{NAME}-74c86c4cfd"


def test_a_pod_of_a_deployment_has_an_address_and_no_place() -> None:
    pod = live_pod()
    pod["status"]["podIP"] = "10.0.0.1"
    record = pod_record(json.dumps(pod).encode())
    assert (record.workload, record.ordinal, record.address) == ("Deployment", NO_ORDINAL, "10.0.0.1")


def test_a_pod_that_a_stateful_set_left_behind_keeps_its_place_as_the_next_one_takes_it_over() -> None:
    pod = named(3, lambda live: live["metadata"].pop("ownerReferences"))
    assert (pod.memcached, pod.ordinal) == (NAME, 3)


MALFORMED: dict[str, Edit] = {
    "a StatefulSet of another name": lambda live: live["metadata"]["ownerReferences"][0].update(name="web"),
    "another kind": lambda live: live["metadata"]["ownerReferences"][0].update(kind="CloneSet"),
    "no owner, and another pod's name": lambda live: (
        live["metadata"].pop("ownerReferences"),
        live["metadata"]["labels"].update({POD_NAME: "web-0"}),
    ),
    "no owner, and no name": lambda live: (
        live["metadata"].pop("ownerReferences"),
        live["metadata"]["labels"].pop(POD_NAME),
    ),
    "no number": lambda live: live["metadata"].update(name=f"{NAME}-x"),
}


@pytest.mark.parametrize("edit", MALFORMED.values(), ids=MALFORMED)
def test_a_pod_that_merely_looks_like_one_is_nobodys(edit: Edit) -> None:
    assert named(0, edit).memcached == ""


NO_SH = 'failed to create containerd task: runc create failed: exec: "sh": executable file not found in $PATH: unknown'


ENDED = {"terminated": {"reason": "StartError", "message": NO_SH}}
WAITS = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}


@pytest.mark.parametrize("fields", [{"state": ENDED}, {"state": WAITS, "lastState": ENDED}], ids=["just now", "later"])
def test_an_image_without_the_shell_that_runs_memcached_is_named_by_the_field_that_needs_it(fields: Any) -> None:
    pod = named(0, lambda live: live["status"].update(containerStatuses=[{"name": "memcached", **fields}]))
    assert str(pod.problem).startswith("InvalidSpec: spec.warmRestart: must be false with an image that contains no sh")
    assert pod.down


@pytest.mark.parametrize(
    ("images", "rewritten"),
    [
        ({"memcached": "memcached:1", "reloader": "memcached:1", "exporter": "exporter"}, False),
        ({"memcached": "mirror/memcached:1", "reloader": "memcached:1"}, True),
        ({"memcached": "memcached:1", "reloader": "mirror/memcached:1"}, True),
    ],
)
def test_a_pod_to_which_admission_gave_another_image_is_known_by_what_its_template_recorded(
    images: dict[str, str], *, rewritten: bool
) -> None:
    def made(live: dict[str, Any]) -> None:
        containers = [{"name": name, "image": image} for name, image in images.items()]
        live["spec"] = {"containers": containers[:1] + containers[2:], "initContainers": containers[1:2]}
        live["metadata"]["annotations"]["cache.example.com/image"] = "memcached:1"

    assert (named(0, made).image, named(0, made).rewritten) == ("memcached:1", rewritten)


def test_a_server_that_runs_with_another_image_since_has_no_such_problem() -> None:
    container = {"name": "memcached", "state": {"running": {}}, "lastState": ENDED}
    assert named(0, lambda live: live["status"].update(containerStatuses=[container])).problem == NO_PROBLEM
