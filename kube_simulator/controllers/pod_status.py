"""Status of a pod as a kubelet writes it while the containers come up, run, fail and end. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from kube_simulator.controllers.object_fields import conditions_of, stamp
from kube_simulator.values import Json

NODE = "simulator"
"""The name of the one node."""
HOST_ADDRESS = "127.0.0.1"
_READY_TO_START = "PodReadyToStartContainers"
_OWN = frozenset({_READY_TO_START, "Initialized", "Ready", "ContainersReady", "PodScheduled"})


@dataclass(frozen=True, slots=True)
class End:
    """End of a container's process."""

    exit_code: int
    signal: int
    started_at: datetime
    finished_at: datetime

    def json(self) -> Json:
        """`ContainerStateTerminated`."""
        return {
            "terminated": {
                "exitCode": self.exit_code,
                **({"signal": self.signal} if self.signal else {}),
                "reason": "Completed" if self.exit_code == 0 else "Error",
                "startedAt": stamp(self.started_at),
                "finishedAt": stamp(self.finished_at),
            }
        }


@dataclass(frozen=True, slots=True)
class Container:
    """State of one container; of a container that is not `running`, `waiting_for` has the reason."""

    running_since: datetime | None = None
    ready: bool = False
    waiting_for: str = "ContainerCreating"
    message: str = ""
    restarts: int = 0
    last_end: End | None = None
    finished: bool = False
    """It has ended for good."""

    def state(self) -> Json:
        """`ContainerState`."""
        if self.finished and self.last_end is not None:
            return self.last_end.json()
        if self.running_since is not None:
            return {"running": {"startedAt": stamp(self.running_since)}}
        return {"waiting": {"reason": self.waiting_for, **({"message": self.message} if self.message else {})}}


@dataclass(frozen=True, slots=True)
class Running:
    """State of a pod on the node that it was bound to."""

    started_at: datetime
    address: str = ""
    containers: dict[str, Container] = field(default_factory=dict)
    """By name; of one that is missing nothing is known yet."""


def bound(pod: Json, now: datetime) -> Json:
    """The pod as the scheduler's binding leaves it."""
    condition = _condition("PodScheduled", True, pod, now)
    status = {**pod.get("status", {}), "conditions": [*_others(pod, {"PodScheduled"}), condition]}
    return {**pod, "spec": {**pod["spec"], "nodeName": NODE}, "status": status}


def status_of(pod: Json, running: Running, now: datetime) -> Json:
    """The status of a pod on the node. Conditions of others stay, and so do times where nothing has changed."""
    spec = pod["spec"]
    containers = {each["name"]: running.containers.get(each["name"], Container()) for each in spec["containers"]}
    unready = [name for name, each in containers.items() if not each.ready]
    # Whoever was restarted was not ready in between, however short that was.
    started = max((each.running_since for each in containers.values() if each.running_since), default=None)
    phase = _phase(list(containers.values()))
    conditions = [
        _condition(_READY_TO_START, bool(running.address) and phase in ("Pending", "Running"), pod, now),
        _condition("Initialized", True, pod, now),
        _readiness("Ready", phase, unready, started, pod, now),
        _readiness("ContainersReady", phase, unready, started, pod, now),
        _condition("PodScheduled", True, pod, now),
    ]
    addresses = {"podIP": running.address, "podIPs": [{"ip": running.address}]} if running.address else {}
    statuses = [_container_status(pod, each, containers[each["name"]]) for each in spec["containers"]]
    return {
        **{key: value for key, value in pod.get("status", {}).items() if key not in ("podIP", "podIPs")},
        "phase": phase,
        "observedGeneration": pod["metadata"].get("generation", 1),
        "conditions": [*conditions, *_others(pod, _OWN)],
        "hostIP": HOST_ADDRESS,
        "hostIPs": [{"ip": HOST_ADDRESS}],
        **addresses,
        "startTime": stamp(running.started_at),
        "containerStatuses": statuses,
    }


def _phase(containers: list[Container]) -> str:
    if all(each.finished for each in containers):
        failed = any(each.last_end is not None and each.last_end.exit_code for each in containers)
        return "Failed" if failed else "Succeeded"
    begun = all(each.running_since is not None or each.last_end is not None for each in containers)
    return "Running" if begun else "Pending"


def _readiness(kind: str, phase: str, unready: list[str], started: datetime | None, pod: Json, now: datetime) -> Json:
    if phase == "Succeeded":
        return _condition(kind, False, pod, now, "PodCompleted")
    if phase == "Failed":
        return _condition(kind, False, pod, now, "PodFailed")
    if unready:
        return _condition(
            kind, False, pod, now, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
        )
    found = _condition(kind, True, pod, now)
    if started is not None and found["lastTransitionTime"] < stamp(started):
        return {**found, "lastTransitionTime": stamp(started)}
    return found


def _condition(kind: str, holds: bool, pod: Json, now: datetime, reason: str = "", message: str = "") -> Json:
    status = "True" if holds else "False"
    known = next((each for each in conditions_of(pod) if each["type"] == kind and each["status"] == status), None)
    at = (known or {}).get("lastTransitionTime") or stamp(now)
    return {
        "type": kind,
        "status": status,
        "observedGeneration": pod["metadata"].get("generation", 1),
        "lastProbeTime": None,
        "lastTransitionTime": at,
        **({"reason": reason} if reason else {}),
        **({"message": message} if message else {}),
    }


def _others(pod: Json, own: set[str] | frozenset[str]) -> list[Json]:
    return [each for each in conditions_of(pod) if each["type"] not in own]


def _container_status(pod: Json, container: Json, found: Container) -> Json:
    begun = found.running_since is not None or found.last_end is not None
    identity = f"simulator://{pod['metadata']['uid']}-{container['name']}-{found.restarts}"
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": container["image"] if begun else "",
        **({"containerID": identity} if begun else {}),
        "ready": found.ready,
        "started": found.running_since is not None,
        "restartCount": found.restarts,
        "state": found.state(),
        "lastState": found.last_end.json() if found.last_end is not None and not found.finished else {},
    }
