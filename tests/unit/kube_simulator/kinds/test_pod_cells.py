"""The state that sums up a pod."""

from __future__ import annotations

from typing import Any

import pytest

from kube_simulator.kinds.pod_cells import pod
from kube_simulator.values import Json
from tests.unit.kube_simulator.kinds.kinds_support import NOW

EARLIER = "2026-11-21T14:59:00Z"
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
RUNNING = {"ready": True, "state": {"running": {"startedAt": EARLIER}}}
DONE = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}


def waiting(reason: str) -> Json:
    return {"state": {"waiting": {"reason": reason}}}


def ended(**how: Any) -> Json:
    return {"state": {"terminated": how}}


def shown(status: Json, *, deleted: bool = False, **spec: Any) -> list[Any]:
    metadata = {"name": "p", "creationTimestamp": EARLIER, **({"deletionTimestamp": EARLIER} if deleted else {})}
    containers = spec.pop("containers", [{"name": "a"}])
    return pod({"metadata": metadata, "spec": {"containers": containers, **spec}, "status": status}, NOW)


@pytest.mark.parametrize(
    ("status", "ready", "status_cell"),
    [
        ({"phase": "Pending"}, "0/1", "Pending"),
        ({"phase": "Pending", "reason": "Evicted"}, "0/1", "Evicted"),
        ({"phase": "Pending", "containerStatuses": [waiting("ContainerCreating")]}, "0/1", "ContainerCreating"),
        ({"phase": "Running", "containerStatuses": [waiting("CrashLoopBackOff")]}, "0/1", "CrashLoopBackOff"),
        ({"phase": "Running", "containerStatuses": [RUNNING]}, "1/1", "Running"),
        ({"phase": "Running", "containerStatuses": [{**RUNNING, "ready": False}]}, "0/1", "Running"),
        ({"phase": "Running", **READY}, "0/1", "Running"),
        ({"phase": "Failed", "containerStatuses": [ended(exitCode=3)]}, "0/1", "ExitCode:3"),
        ({"phase": "Failed", "containerStatuses": [ended(exitCode=3, reason="Error")]}, "0/1", "Error"),
        ({"phase": "Succeeded", "containerStatuses": [DONE]}, "0/1", "Completed"),
        ({"phase": "Running", "containerStatuses": [DONE, RUNNING], **READY}, "1/1", "Running"),
        ({"phase": "Running", "containerStatuses": [DONE, RUNNING]}, "1/1", "NotReady"),
    ],
)
def test_the_containers_decide_what_a_pod_is_said_to_be(status: Json, ready: str, status_cell: str) -> None:
    assert shown(status)[1:3] == [ready, status_cell]


def test_a_sidecar_counts_like_the_other_containers() -> None:
    spec: Json = {"initContainers": [{"name": "s", "restartPolicy": "Always"}]}
    sidecar = {"name": "s", "started": True, "restartCount": 2, **RUNNING}
    status = {"phase": "Running", "initContainerStatuses": [sidecar], "containerStatuses": [RUNNING]}
    assert shown(status, **spec)[1:4] == ["2/2", "Running", "2"]


def test_restarts_are_counted_and_the_last_one_dated() -> None:
    last = {"lastState": {"terminated": {"finishedAt": "2026-11-21T14:59:30Z"}}}
    statuses = [{**RUNNING, "restartCount": 1}, {**RUNNING, "restartCount": 2, **last}]
    assert shown({"phase": "Running", "containerStatuses": statuses})[3] == "3 (30s ago)"
    assert shown({"phase": "Running", "containerStatuses": statuses[:1]})[3] == "1"
    first = {"initContainerStatuses": [{"name": "i", "restartCount": 4, **DONE}]}
    again = shown({"phase": "Running", **first, "containerStatuses": statuses[:1]}, initContainers=[{"name": "i"}])
    assert again[3] == "1", "what ran first is over"


def test_a_pod_that_is_being_deleted_is_said_to_end() -> None:
    assert shown({"phase": "Running"}, deleted=True)[2] == "Terminating"
    assert shown({"phase": "Succeeded"}, deleted=True)[2] == "Succeeded"
