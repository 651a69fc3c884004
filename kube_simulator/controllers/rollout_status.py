"""Status of a Deployment during a rollout: counts and conditions, in Kubernetes' reasons and words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from kube_simulator.controllers.object_fields import (
    condition_of,
    conditions_of,
    counted,
    replicas_of,
    seconds_since,
    stamp,
)
from kube_simulator.controllers.rollouts import max_unavailable
from kube_simulator.values import Json

NEW_CREATED = "NewReplicaSetCreated"
FOUND_NEW = "FoundNewReplicaSet"
UPDATED = "ReplicaSetUpdated"
COMPLETE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
CREATE_FAILED = "ReplicaSetCreateError"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"

# A Deployment whose deadline is this has none.
_NO_DEADLINE_S = 2**31 - 1


def deadline_s(deployment: Json) -> int | None:
    """Return the seconds within which a rollout must get on; None for no deadline."""
    found = deployment["spec"].get("progressDeadlineSeconds")
    return None if found in (None, _NO_DEADLINE_S) else int(found)


def with_condition(
    status: Json, kind: str, state: Literal["True", "False", "Unknown"], reason: str, message: str, now: datetime
) -> Json:
    """The status with this condition; unchanged if it says the same, whatever the message."""
    at = stamp(now)
    new = {
        "type": kind,
        "status": state,
        "lastUpdateTime": at,
        "lastTransitionTime": at,
        "reason": reason,
        "message": message,
    }
    return _with(status, new)


def _with(status: Json, new: Json) -> Json:
    present = condition_of({"status": status}, new["type"])
    if present is not None and (present["status"], present.get("reason")) == (new["status"], new["reason"]):
        return status
    if present is not None and present["status"] == new["status"]:
        new = {**new, "lastTransitionTime": present["lastTransitionTime"]}
    return {**status, "conditions": [*_others(status, new["type"]), new]}


def without_condition(status: Json, kind: str) -> Json:
    """The status without the condition of this type."""
    return {**status, "conditions": _others(status, kind)} if condition_of({"status": status}, kind) else status


def _others(status: Json, kind: str) -> list[Json]:
    return [each for each in status.get("conditions") or () if each["type"] != kind]


def counts(deployment: Json, replica_sets: Sequence[Json], new: Json | None, now: datetime) -> Json:
    """The status with what the ReplicaSets count, and the condition Available; zero counts are left out."""

    def total(field: str) -> int:
        return sum(counted(each, field) for each in replica_sets)

    available = total("availableReplicas")
    unavailable = max(0, sum(map(replicas_of, replica_sets)) - available)
    terminating = [each["status"]["terminatingReplicas"] for each in replica_sets if _reports_terminating(each)]
    found = {
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "replicas": total("replicas"),
        "updatedReplicas": 0 if new is None else counted(new, "replicas"),
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": unavailable,
    }
    status: Json = {key: value for key, value in found.items() if value}
    if terminating:
        status["terminatingReplicas"] = sum(terminating)
    status["conditions"] = conditions_of(deployment)
    if available >= replicas_of(deployment) - max_unavailable(deployment):
        words = "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
    else:
        words = "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
    return with_condition(status, "Available", *words, now)  # type: ignore[arg-type]


def _reports_terminating(replica_set: Json) -> bool:
    return "terminatingReplicas" in (replica_set.get("status") or {})


def progress(deployment: Json, replica_sets: Sequence[Json], new: Json | None, now: datetime) -> Json:
    """The status after a step of a rollout: `counts`, and the conditions Progressing and ReplicaFailure."""
    status = counts(deployment, replica_sets, new, now)
    if deadline_s(deployment) is None:
        status = without_condition(status, "Progressing")
    elif not _was_complete(deployment, status):
        status = _progressing(deployment, status, new, now)
    failure = _failure(replica_sets, new)
    if failure is None:
        return without_condition(status, "ReplicaFailure")
    return _with(status, {**failure, "lastUpdateTime": failure["lastTransitionTime"]})


def _was_complete(deployment: Json, status: Json) -> bool:
    known = condition_of(deployment, "Progressing")
    same = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    return known is not None and known["reason"] == COMPLETE and same


def _progressing(deployment: Json, status: Json, new: Json | None, now: datetime) -> Json:
    what = f'ReplicaSet "{new["metadata"]["name"]}"' if new else f'Deployment "{deployment["metadata"]["name"]}"'
    if is_complete(deployment, status):
        return with_condition(status, "Progressing", "True", COMPLETE, f"{what} has successfully progressed.", now)
    if _got_on(deployment, status):
        known = condition_of(deployment, "Progressing")
        rest = without_condition(status, "Progressing")
        changed = with_condition(rest, "Progressing", "True", UPDATED, f"{what} is progressing.", now)
        if known is not None and known["status"] == "True":
            last = {**changed["conditions"][-1], "lastTransitionTime": known["lastTransitionTime"]}
            changed = {**changed, "conditions": [*changed["conditions"][:-1], last]}
        return changed
    if left_s(deployment, status, now) < 0:
        return with_condition(status, "Progressing", "False", TIMED_OUT, f"{what} has timed out progressing.", now)
    return status


def is_complete(deployment: Json, status: Json) -> bool:
    """Report whether all desired pods are there, of the present template, available, and no others."""
    desired = replicas_of(deployment)
    equal = all(status.get(field, 0) == desired for field in ("updatedReplicas", "replicas", "availableReplicas"))
    return equal and status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)


def _got_on(deployment: Json, status: Json) -> bool:
    before = deployment.get("status") or {}

    def grew(field: str) -> bool:
        return int(status.get(field, 0)) > int(before.get(field, 0))

    def old(counts: Json) -> int:
        return int(counts.get("replicas", 0)) - int(counts.get("updatedReplicas", 0))

    return grew("updatedReplicas") or grew("readyReplicas") or grew("availableReplicas") or old(status) < old(before)


def left_s(deployment: Json, status: Json, now: datetime) -> float:
    """Return how long the rollout may still stand still; infinite if nobody waits, or all is reported already."""
    known = condition_of({"status": status}, "Progressing")
    deadline = deadline_s(deployment)
    if known is None or deadline is None or known["reason"] in (COMPLETE, TIMED_OUT, PAUSED):
        return float("inf")
    return deadline - seconds_since(known["lastUpdateTime"], now)


def _failure(replica_sets: Sequence[Json], new: Json | None) -> Json | None:
    """The first ReplicaSet's condition ReplicaFailure, that of the present template before all others."""
    ordered = [*([new] if new is not None else []), *replica_sets]
    found = [condition for each in ordered if (condition := condition_of(each, "ReplicaFailure"))]
    return found[0] if found else None
