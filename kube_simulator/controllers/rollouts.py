"""Rolling updates of a Deployment step by step: the sizes of its ReplicaSets, and its status meanwhile. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from kube_simulator.controllers.object_fields import by_age, condition_of, counted, replicas_of, seconds_since, stamp
from kube_simulator.errors import ApiError
from kube_simulator.values import Json

_UPDATED: Final = "ReplicaSetUpdated"
_COMPLETE: Final = "NewReplicaSetAvailable"
_TIMED_OUT: Final = "ProgressDeadlineExceeded"
# A Deployment whose deadline is this has none.
_NO_DEADLINE_S: Final = 2**31 - 1


def fenceposts(deployment: Json) -> tuple[int, int]:
    """Count the pods that may exist beyond the desired ones while it is updated, and those that may be unavailable.

    Surge is rounded up and unavailability down; if both come to 0, one pod may be unavailable.
    """
    desired = replicas_of(deployment)
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    surge = math.ceil(_share(rolling.get("maxSurge", "25%"), desired))
    unavailable = math.floor(_share(rolling.get("maxUnavailable", "25%"), desired))
    return (0, min(1, desired)) if surge == unavailable == 0 else (surge, min(unavailable, desired))


def _share(value: int | str, desired: int) -> float:
    """A number, or a percentage of what is desired."""
    return value if isinstance(value, int) else int(value.removesuffix("%")) * desired / 100


def new_size(deployment: Json, others: Iterable[Json], present: int) -> int:
    """Return how many pods the ReplicaSet of the present template shall have now; until now it is `present`."""
    desired = replicas_of(deployment)
    if present >= desired:
        return desired
    room = desired + fenceposts(deployment)[0] - present - sum(map(replicas_of, others))
    return present + max(0, min(room, desired - present))


def old_sizes(deployment: Json, new: Json, old: Sequence[Json]) -> dict[str, int]:
    """The ReplicaSets of older templates that shall shrink now, by name: first by what is not available anyway."""
    everything = [*old, new]
    least = replicas_of(deployment) - fenceposts(deployment)[1]
    may_go = sum(map(replicas_of, everything)) - least - (replicas_of(new) - counted(new, "availableReplicas"))
    if may_go <= 0:
        return {}
    spare = sum(counted(each, "availableReplicas") for each in everything) - least
    sizes = {}
    for each in by_age(old):
        unhealthy = max(0, min(may_go, replicas_of(each) - counted(each, "availableReplicas")))
        sizes[each["metadata"]["name"]] = replicas_of(each) - unhealthy
        may_go -= unhealthy
    for name, size in sizes.items():
        taken = max(0, min(spare, size))
        sizes[name] = size - taken
        spare -= taken
    return {
        each["metadata"]["name"]: size for each in old if (size := sizes[each["metadata"]["name"]]) != replicas_of(each)
    }


def status_of(
    deployment: Json, replica_sets: Sequence[Json], new: Json | None, refused: ApiError | None, now: datetime
) -> Json:
    """The status of a Deployment; zero counts are left out. `new` is the ReplicaSet of the present template."""

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
    enough = available >= replicas_of(deployment) - fenceposts(deployment)[1]
    words = "MinimumReplicasAvailable", "Deployment has minimum availability."
    if not enough:
        words = "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
    conditions = [_condition(deployment, "Available", enough, *words, now)]
    if _deadline_s(deployment) is not None:
        conditions += _progressing(deployment, status, refused, now)
    failures = [condition_of(each, "ReplicaFailure") for each in ([new] if new else []) + [*replica_sets]]
    conditions += [{**each, "lastUpdateTime": each["lastTransitionTime"]} for each in failures if each][:1]
    return {**status, "conditions": conditions}


def is_complete(deployment: Json, status: Json) -> bool:
    """Report whether all desired pods are there, of the present template, available, and no others."""
    desired = replicas_of(deployment)
    equal = all(status.get(field, 0) == desired for field in ("updatedReplicas", "replicas", "availableReplicas"))
    return equal and status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)


def left_s(deployment: Json, progressing: Json | None, now: datetime) -> float:
    """Return how long the rollout may still stand still; infinite if nobody waits, or all is reported already."""
    deadline = _deadline_s(deployment)
    if progressing is None or deadline is None or progressing["reason"] in (_COMPLETE, _TIMED_OUT):
        return math.inf
    return deadline - seconds_since(progressing["lastUpdateTime"], now)


def _progressing(deployment: Json, status: Json, refused: ApiError | None, now: datetime) -> Iterator[Json]:
    known, what = condition_of(deployment, "Progressing"), f'Deployment "{deployment["metadata"]["name"]}"'
    rolled = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    if refused is not None:
        yield _condition(deployment, "Progressing", False, "ReplicaSetCreateError", refused.message, now)
    elif is_complete(deployment, status):
        yield _condition(deployment, "Progressing", True, _COMPLETE, f"{what} has successfully progressed.", now)
    elif known is not None and known["reason"] == _COMPLETE and rolled:
        yield known  # scaled, and not rolled
    elif known is None or known["reason"] == _COMPLETE or _got_on(deployment, status):
        yield _condition(deployment, "Progressing", True, _UPDATED, f"{what} is progressing.", now, renew=True)
    elif left_s(deployment, known, now) < 0:
        yield _condition(deployment, "Progressing", False, _TIMED_OUT, f"{what} has timed out progressing.", now)
    else:
        yield known


def _condition(
    deployment: Json, kind: str, holds: bool, reason: str, message: str, now: datetime, *, renew: bool = False
) -> Json:
    """A condition; what it was, if it says the same and need not be renewed."""
    known, at, state = condition_of(deployment, kind), stamp(now), str(holds)
    if known is not None and (known["status"], known["reason"]) == (state, reason) and not renew:
        return known
    since = known["lastTransitionTime"] if known is not None and known["status"] == state else at
    times = {"lastUpdateTime": at, "lastTransitionTime": since}
    return {"type": kind, "status": state, **times, "reason": reason, "message": message}


def _got_on(deployment: Json, status: Json) -> bool:
    before = deployment.get("status") or {}

    def old(counts: Json) -> int:
        return int(counts.get("replicas", 0)) - int(counts.get("updatedReplicas", 0))

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return any(status.get(each, 0) > before.get(each, 0) for each in grown) or old(status) < old(before)


def _deadline_s(deployment: Json) -> int | None:
    found = deployment["spec"].get("progressDeadlineSeconds")
    return None if found in (None, _NO_DEADLINE_S) else int(found)
