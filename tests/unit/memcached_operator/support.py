"""What the tests of this package share: a Deployment and a pod as a real API server returned them, and records of them.

`live_deployment.json` and the pod below were read from a kube-apiserver v1.36.3 whose controllers had acted on them:
all defaults, managedFields and status are there.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import msgspec

from memcached_operator.core.objects.labels import MemcachedOwner
from memcached_operator.core.objects.workload import desired_workload
from memcached_operator.core.objects.workload_types import WorkloadManifest
from memcached_operator.core.observed.pod_status import PodProblem
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord, deployment_record

HERE = Path(__file__).parent
NAMESPACE, NAME = "shop", "sessions"
UID = "eba450eb-158b-4e83-8977-681c598117da"
OWNER = MemcachedOwner(NAME, NAMESPACE, UID)
DEPLOYMENT_UID = "ee1bd256-f1c6-4348-900f-b28016451d1f"
IMAGE = "memcached:1.6.45-alpine"
SIZE = 2
OTHER_UID = "00000000-0000-4000-8000-000000000001"
NO_RIGHT = 'pods "cache-2" is forbidden: User "operator" cannot patch resource "pods" in API group ""'
"""As the API server's authorization refuses."""

_LIVE = json.loads((HERE / "live_deployment.json").read_text())
_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "creationTimestamp": "2026-11-21T12:18:00Z", "generateName": "sessions-7cc6f4b5f7-",
        "labels": {
            "app": "memcached", "app.kubernetes.io/name": "memcached", "memcached_cr": "sessions",
            "pod-template-hash": "7cc6f4b5f7",
        },
        "name": "sessions-7cc6f4b5f7-n9n7d", "namespace": "shop",
        "ownerReferences": [
            {
                "apiVersion": "apps/v1", "blockOwnerDeletion": True, "controller": True, "kind": "ReplicaSet",
                "name": "sessions-7cc6f4b5f7", "uid": "132fb59f-caeb-4743-8af6-870fb61f1694",
            }
        ],
        "resourceVersion": "273", "uid": "69c834d2-3456-477e-8076-181db1b42f58",
    },
    "spec": {"containers": [{"image": IMAGE, "name": "memcached", "resources": {}}]},
    "status": {
        "conditions": [{"lastTransitionTime": "2026-11-21T12:18:03Z", "status": "True", "type": "Ready"}],
        "containerStatuses": [
            {
                "name": "memcached", "ready": True, "restartCount": 0, "lastState": {},
                "state": {"running": {"startedAt": "2026-11-21T12:18:03Z"}},
            }
        ],
        "phase": "Running", "qosClass": "BestEffort",
    },
}  # fmt: skip


def live_deployment() -> dict[str, Any]:
    """A Deployment of two ready servers, to be changed at will."""
    live: dict[str, Any] = copy.deepcopy(_LIVE)
    return live


def live_pod() -> dict[str, Any]:
    """A ready pod of that Deployment, to be changed at will."""
    pod = copy.deepcopy(_POD)
    pod["metadata"]["annotations"] = dict(_LIVE["spec"]["template"]["metadata"]["annotations"])  # type: ignore[index]
    return pod


def container_of(deployment: dict[str, Any]) -> dict[str, Any]:
    """The container `memcached` of a Deployment's JSON."""
    containers: list[dict[str, Any]] = deployment["spec"]["template"]["spec"]["containers"]
    return next(each for each in containers if each["name"] == "memcached")


def desired_deployment(size: int = SIZE, image: str = IMAGE) -> WorkloadManifest:
    """What the Memcached of these tests wants."""
    return desired_workload("Deployment", OWNER, size, image)


def deployment_of(live: dict[str, Any] | None = None, **changes: object) -> WorkloadRecord:
    """The record of a live Deployment, with fields of the record changed."""
    record = deployment_record(json.dumps(live or _LIVE).encode())
    return msgspec.structs.replace(record, **changes)


def problem_of(text: str) -> PodProblem:
    """A problem as a person reads it: a reason, a container and a message, of which the latter may be missing."""
    what, _, message = text.partition(": ")
    reason, _, container = what.partition(" of the container ")
    return PodProblem(reason, message, container)


def pod_of(
    name: str = "a", *, ready: bool = True, problem: str = "", template: str = "7cc6f4b5f7", address: str = ""
) -> PodRecord:
    """An active pod of the Memcached of these tests."""
    return PodRecord(
        namespace=NAMESPACE, name=f"{NAME}-{template}-{name}", uid=f"uid-of-pod-{name}", resource_version="300",
        memcached=NAME, revision=template, active=True, ready=ready, problem=problem_of(problem), address=address,
    )  # fmt: skip
