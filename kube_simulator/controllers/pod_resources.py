"""What a node has set aside for a pod's containers, what they have of it, and how it follows a resize. Pure.

Differs from Kubernetes: a resize restarts no container, whatever its `resizePolicy` says; and a pod's status says
nothing of its resources as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from kube_simulator.controllers.events import EventType
from kube_simulator.controllers.object_fields import condition_of, stamp
from kube_simulator.resizes import Hold
from kube_simulator.values import Json

PENDING: Final = "PodResizePending"
IN_PROGRESS: Final = "PodResizeInProgress"
_NOT_SET_ASIDE: Final = ("Infeasible", "Deferred")


@dataclass(frozen=True, slots=True)
class Resources:
    """Of each container by name, as `v1.ResourceRequirements`."""

    allocated: Mapping[str, Json] = field(default_factory=dict)
    """What the node has set aside."""
    actual: Mapping[str, Json] = field(default_factory=dict)
    """What the container has."""
    conditions: tuple[Json, ...] = ()
    """What the pod's status says of a resize that is not done."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a kubelet tells by an event."""

    type: EventType
    reason: str
    message: str


def of_spec(pod: Json) -> Resources:
    """Of a pod as it comes to the node or, if it was there before, as its status says."""
    wanted = _wanted(pod)
    known = {each["name"]: each for each in (pod.get("status") or {}).get("containerStatuses") or []}
    had = {
        name: known[name]["resources"] if "resources" in known.get(name, {}) else each for name, each in wanted.items()
    }
    return Resources(had, had)


def followed(pod: Json, before: Resources, hold: Hold | None, now: datetime) -> tuple[Resources, list[Step]]:
    """What becomes of a pod's resources when its spec wants others, and what there is to tell.

    Args:
        hold: how far a resize gets; None: to its end.
    """
    wanted, steps = _wanted(pod), list[Step]()
    found = replace(before, conditions=())
    if found.allocated != wanted:
        if hold is not None and hold.how in _NOT_SET_ASIDE:
            steps.append(Step("Warning", f"Resize{hold.how}", _told(f"Pod resize {hold.how}", pod, hold.message)))
            return replace(found, conditions=(_condition(PENDING, pod, now, hold.how, hold.message),)), steps
        found = replace(found, allocated=wanted)
        steps.append(Step("Normal", "ResizeStarted", _told("Pod resize started", pod)))
    if found.actual == found.allocated:
        return found, steps
    if hold is not None and hold.how == "Error":
        steps.append(Step("Warning", "ResizeError", _told("Pod resize error", pod, hold.message)))
        return replace(found, conditions=(_condition(IN_PROGRESS, pod, now, "Error", hold.message),)), steps
    if hold is not None and hold.how == "InProgress":
        return replace(found, conditions=(_condition(IN_PROGRESS, pod, now),)), steps
    steps.append(Step("Normal", "ResizeCompleted", _told("Pod resize completed", pod)))
    return replace(found, actual=found.allocated), steps


def _wanted(pod: Json) -> dict[str, Json]:
    return {each["name"]: each.get("resources") or {} for each in pod["spec"]["containers"]}


def _condition(kind: str, pod: Json, now: datetime, reason: str = "", message: str = "") -> Json:
    known = condition_of(pod, kind)
    at = known["lastTransitionTime"] if known is not None and known.get("reason", "") == reason else stamp(now)
    return {
        "type": kind,
        "status": "True",
        "observedGeneration": pod["metadata"].get("generation", 1),
        "lastProbeTime": at,
        "lastTransitionTime": at,
        **({"reason": reason} if reason else {}),
        **({"message": message} if message else {}),
    }


def _told(what: str, pod: Json, error: str = "") -> str:
    """In a kubelet's words, with what is wanted."""
    containers = [{"name": name, "resources": _in_order(each)} for name, each in _wanted(pod).items()]
    summary = {
        "containers": containers,
        "generation": pod["metadata"].get("generation", 1),
        **({"error": error} if error else {}),
    }
    return f"{what}: {json.dumps(summary, separators=(',', ':'))}"


def _in_order(resources: Json) -> Json:
    return {kind: dict(sorted(resources[kind].items())) for kind in ("limits", "requests") if kind in resources}
