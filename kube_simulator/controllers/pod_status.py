"""Status of a pod as a kubelet writes it while the containers come up, run, fail and end. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from kube_simulator.controllers.object_fields import condition_of, conditions_of, stamp, status_of
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
    """Minus the signal that ended it; a kubelet adds 128 to that."""
    started_at: datetime
    finished_at: datetime

    def json(self) -> Json:
        """`ContainerStateTerminated`."""
        code = self.exit_code if self.exit_code >= 0 else 128 - self.exit_code
        times = {"startedAt": stamp(self.started_at), "finishedAt": stamp(self.finished_at)}
        by_signal = {"signal": -self.exit_code} if self.exit_code < 0 else {}
        return {"terminated": {"exitCode": code, **by_signal, "reason": "Error" if code else "Completed", **times}}


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


def bound(pod: Json, now: datetime) -> Json:
    """The pod as the scheduler's binding leaves it."""
    others = [each for each in conditions_of(pod) if each["type"] != "PodScheduled"]
    status = {**status_of(pod), "conditions": [*others, _condition("PodScheduled", True, pod, now)]}
    return {**pod, "spec": {**pod["spec"], "nodeName": NODE}, "status": status}


def running_status(
    pod: Json, started_at: datetime, address: str, containers: Mapping[str, Container], now: datetime
) -> Json:
    """The status of a pod on the node. Conditions of others stay, and so do times where nothing has changed."""
    # Whoever was restarted was not ready in between, however short that was.
    started = max((each.running_since for each in containers.values() if each.running_since), default=None)
    phase = _phase(list(containers.values()))
    unready = [name for name, each in containers.items() if not each.ready]
    reason = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "ContainersNotReady" if unready else "")
    message = f"containers with unready status: [{' '.join(unready)}]" if reason == "ContainersNotReady" else ""
    conditions = [
        _condition(_READY_TO_START, bool(address) and phase in ("Pending", "Running"), pod, now),
        _condition("Initialized", True, pod, now),
        _condition("Ready", not reason, pod, now, reason, message, since=started),
        _condition("ContainersReady", not reason, pod, now, reason, message, since=started),
        _condition("PodScheduled", True, pod, now),
    ]
    return {
        **{key: value for key, value in status_of(pod).items() if key not in ("podIP", "podIPs")},
        "phase": phase,
        "observedGeneration": pod["metadata"].get("generation", 1),
        "conditions": [*conditions, *(each for each in conditions_of(pod) if each["type"] not in _OWN)],
        "hostIP": HOST_ADDRESS,
        "hostIPs": [{"ip": HOST_ADDRESS}],
        **({"podIP": address, "podIPs": [{"ip": address}]} if address else {}),
        "startTime": stamp(started_at),
        "containerStatuses": [
            _container_status(pod, each, containers[each["name"]]) for each in pod["spec"]["containers"]
        ],
    }


def _phase(containers: list[Container]) -> str:
    if all(each.finished for each in containers):
        failed = any(each.last_end is not None and each.last_end.exit_code for each in containers)
        return "Failed" if failed else "Succeeded"
    begun = all(each.running_since is not None or each.last_end is not None for each in containers)
    return "Running" if begun else "Pending"


def _condition(
    kind: str,
    holds: bool,
    pod: Json,
    now: datetime,
    reason: str = "",
    message: str = "",
    since: datetime | None = None,
) -> Json:
    """A condition; one that holds has been so since `since` at the earliest."""
    known = condition_of(pod, kind) or {}
    same = known.get("status") == str(holds)
    at = (known.get("lastTransitionTime") if same else None) or stamp(now)
    return {
        "type": kind,
        "status": str(holds),
        "observedGeneration": pod["metadata"].get("generation", 1),
        "lastProbeTime": None,
        "lastTransitionTime": max(at, stamp(since)) if since is not None and holds else at,
        **({"reason": reason} if reason else {}),
        **({"message": message} if message else {}),
    }


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
