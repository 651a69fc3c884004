"""Sizes of a Deployment's ReplicaSets: a rolling update step by step. Pure arithmetic on objects.

Differs from Kubernetes: a Deployment that is scaled in the middle of an update goes on with the update, where
Kubernetes first gives each ReplicaSet its share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kube_simulator.controllers.object_fields import by_age, counted, replicas_of
from kube_simulator.values import Json


def is_rolling(deployment: Json) -> bool:
    """Report whether the strategy is RollingUpdate, which is also the default."""
    return bool((deployment["spec"].get("strategy") or {}).get("type", "RollingUpdate") == "RollingUpdate")


def max_surge(deployment: Json) -> int:
    """Count the pods that may exist beyond the desired ones, while it is updated."""
    return _fenceposts(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Json) -> int:
    """Count the desired pods that may be unavailable, while it is updated."""
    return min(_fenceposts(deployment)[1], replicas_of(deployment)) if is_rolling(deployment) else 0


def _fenceposts(deployment: Json) -> tuple[int, int]:
    """Surge is rounded up and unavailability down; if both come to 0, one pod may be unavailable."""
    desired = replicas_of(deployment)
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    surge = _scaled(rolling.get("maxSurge", "25%"), desired, up=True)
    unavailable = _scaled(rolling.get("maxUnavailable", "25%"), desired, up=False)
    return (0, 1) if surge == 0 and unavailable == 0 else (surge, unavailable)


def _scaled(value: int | str, desired: int, *, up: bool) -> int:
    """A number, or a percentage of what is desired."""
    if isinstance(value, int):
        return value
    hundredths = int(value.removesuffix("%")) * desired
    return -(-hundredths // 100) if up else hundredths // 100


def new_size(deployment: Json, others: Iterable[Json], present: int) -> int:
    """Return how many pods the ReplicaSet of the present template shall have now.

    Args:
        others: the ReplicaSets of older templates.
        present: how many it is to have until now; 0 before it is made.
    """
    desired = replicas_of(deployment)
    if not is_rolling(deployment) or present >= desired:
        return desired
    room = desired + max_surge(deployment) - present - sum(map(replicas_of, others))
    return present + max(0, min(room, desired - present))


def old_sizes(deployment: Json, new: Json, old: Sequence[Json]) -> dict[str, int]:
    """The ReplicaSets of older templates that shall shrink now, by name: first by what is not available anyway."""
    everything = [*old, new]
    least = replicas_of(deployment) - max_unavailable(deployment)
    may_go = sum(map(replicas_of, everything)) - least - (replicas_of(new) - counted(new, "availableReplicas"))
    if may_go <= 0:
        return {}
    sizes = {each["metadata"]["name"]: replicas_of(each) for each in old}
    for each in by_age(old):
        name = each["metadata"]["name"]
        unhealthy = max(0, min(may_go, sizes[name] - counted(each, "availableReplicas")))
        sizes[name] -= unhealthy
        may_go -= unhealthy
    spare = sum(counted(each, "availableReplicas") for each in everything) - least
    for each in by_age(old):
        taken = max(0, min(spare, sizes[each["metadata"]["name"]]))
        sizes[each["metadata"]["name"]] -= taken
        spare -= taken
    before = {each["metadata"]["name"]: replicas_of(each) for each in old}
    return {name: size for name, size in sizes.items() if size != before[name]}
