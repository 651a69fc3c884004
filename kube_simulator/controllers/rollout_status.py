"""Status of a Deployment during a rollout: counts and conditions, in Kubernetes' reasons. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from kube_simulator.controllers.object_fields import condition_of, counted, replicas_of, seconds_since, stamp
from kube_simulator.controllers.rollouts import max_unavailable
from kube_simulator.errors import ApiError
from kube_simulator.values import Json

UPDATED: Final = "ReplicaSetUpdated"
COMPLETE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
CREATE_FAILED: Final = "ReplicaSetCreateError"

# A Deployment whose deadline is this has none.
_NO_DEADLINE_S: Final = 2**31 - 1


def status_of(
    deployment: Json, replica_sets: Sequence[Json], new: Json | None, refused: ApiError | None, now: datetime
) -> Json:
    """The status; zero counts are left out.

    Args:
        new: the ReplicaSet of the present template.
        refused: why it could not be made.
    """

    def total(field: str) -> int:
        return sum(counted(each, field) for each in replica_sets)

    available = total("availableReplicas")
    found = {
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "replicas": total("replicas"),
        "updatedReplicas": 0 if new is None else counted(new, "replicas"),
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(map(replicas_of, replica_sets)) - available),
    }
    status: Json = {key: value for key, value in found.items() if value}
    if any("terminatingReplicas" in (each.get("status") or {}) for each in replica_sets):
        status["terminatingReplicas"] = total("terminatingReplicas")
    conditions = [_available(deployment, available, now)]
    if _deadline_s(deployment) is not None:
        conditions += _progressing(deployment, status, refused, now)
    failures = [condition_of(each, "ReplicaFailure") for each in ([new] if new else []) + [*replica_sets]]
    conditions += [{**each, "lastUpdateTime": each["lastTransitionTime"]} for each in failures if each][:1]
    return {**status, "conditions": conditions}


def _available(deployment: Json, available: int, now: datetime) -> Json:
    if available >= replicas_of(deployment) - max_unavailable(deployment):
        words = "MinimumReplicasAvailable", "Deployment has minimum availability."
        return _condition(deployment, "Available", "True", *words, now)
    words = "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
    return _condition(deployment, "Available", "False", *words, now)


def _progressing(deployment: Json, status: Json, refused: ApiError | None, now: datetime) -> Iterator[Json]:
    known, what = condition_of(deployment, "Progressing"), f'Deployment "{deployment["metadata"]["name"]}"'
    rolled = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    if refused is not None:
        yield _condition(deployment, "Progressing", "False", CREATE_FAILED, refused.message, now)
    elif is_complete(deployment, status):
        yield _condition(deployment, "Progressing", "True", COMPLETE, f"{what} has successfully progressed.", now)
    elif known is not None and known["reason"] == COMPLETE and rolled:
        yield known  # scaled, and not rolled
    elif known is None or known["reason"] == COMPLETE or _got_on(deployment, status):
        yield _condition(deployment, "Progressing", "True", UPDATED, f"{what} is progressing.", now, renew=True)
    elif left_s(deployment, known, now) < 0:
        yield _condition(deployment, "Progressing", "False", TIMED_OUT, f"{what} has timed out progressing.", now)
    else:
        yield known


def _condition(
    deployment: Json, kind: str, state: str, reason: str, message: str, now: datetime, *, renew: bool = False
) -> Json:
    """A condition; what it was, if it says the same and need not be renewed."""
    known, at = condition_of(deployment, kind), stamp(now)
    if known is not None and (known["status"], known["reason"]) == (state, reason) and not renew:
        return known
    since = known["lastTransitionTime"] if known is not None and known["status"] == state else at
    return {
        "type": kind,
        "status": state,
        "lastUpdateTime": at,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }


def is_complete(deployment: Json, status: Json) -> bool:
    """Report whether all desired pods are there, of the present template, available, and no others."""
    desired = replicas_of(deployment)
    equal = all(status.get(field, 0) == desired for field in ("updatedReplicas", "replicas", "availableReplicas"))
    return equal and status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)


def _got_on(deployment: Json, status: Json) -> bool:
    before = deployment.get("status") or {}

    def old(counts: Json) -> int:
        return int(counts.get("replicas", 0)) - int(counts.get("updatedReplicas", 0))

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return any(status.get(each, 0) > before.get(each, 0) for each in grown) or old(status) < old(before)


def _deadline_s(deployment: Json) -> int | None:
    found = deployment["spec"].get("progressDeadlineSeconds")
    return None if found in (None, _NO_DEADLINE_S) else int(found)


def left_s(deployment: Json, progressing: Json | None, now: datetime) -> float:
    """Return how long the rollout may still stand still; infinite if nobody waits, or all is reported already."""
    deadline = _deadline_s(deployment)
    if progressing is None or deadline is None or progressing["reason"] in (COMPLETE, TIMED_OUT):
        return float("inf")
    return deadline - seconds_since(progressing["lastUpdateTime"], now)
