"""Sizes of a Deployment's ReplicaSets: a rolling update step by step, and scaling in proportion.

Pure arithmetic on objects; source of the rules: the documentation of Deployments, and what a real one does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from kube_simulator.controllers.object_fields import annotations_of, by_age, counted, replicas_of
from kube_simulator.values import Json

DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"

_MOST_REPLICAS = 2**31 - 1


def is_rolling(deployment: Json) -> bool:
    """Report whether the strategy is RollingUpdate, which is also the default."""
    return bool((deployment["spec"].get("strategy") or {}).get("type", "RollingUpdate") == "RollingUpdate")


def max_surge(deployment: Json) -> int:
    """Count the pods that may exist beyond the desired ones, while it is updated."""
    return _fenceposts(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Json) -> int:
    """Count the desired pods that may be unavailable, while it is updated."""
    desired = replicas_of(deployment)
    return min(_fenceposts(deployment)[1], desired) if is_rolling(deployment) else 0


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
    new_unavailable = replicas_of(new) - counted(new, "availableReplicas")
    may_go = sum(map(replicas_of, everything)) - least - new_unavailable
    if may_go <= 0:
        return {}
    sizes = {each["metadata"]["name"]: replicas_of(each) for each in old}
    for each in by_age(old):
        name = each["metadata"]["name"]
        unhealthy = min(may_go, sizes[name] - counted(each, "availableReplicas"))
        if sizes[name] > 0 and unhealthy > 0:
            sizes[name] -= unhealthy
            may_go -= unhealthy
    spare = sum(counted(each, "availableReplicas") for each in everything) - least
    for each in by_age(old):
        name = each["metadata"]["name"]
        taken = max(0, min(spare, sizes[name]))
        sizes[name] -= taken
        spare -= taken
    return {
        each["metadata"]["name"]: sizes[each["metadata"]["name"]]
        for each in old
        if sizes[each["metadata"]["name"]] != replicas_of(each)
    }


def scaled_sizes(deployment: Json, new: Json | None, old: Sequence[Json]) -> dict[str, int]:
    """Return each ReplicaSet's size, by name, when the Deployment's own was changed.

    One that is alone gets all. In the middle of a rolling update each gets its share, the greatest what is left over.
    """
    alone = _active_or_latest(new, old)
    desired = replicas_of(deployment)
    if alone is not None:
        return {alone["metadata"]["name"]: desired}
    active = [each for each in old if replicas_of(each) > 0]
    if new is not None and _saturated(deployment, new):
        return {each["metadata"]["name"]: 0 for each in active}
    if not is_rolling(deployment):
        return {}
    active += [new] if new is not None and replicas_of(new) > 0 else []
    return _shares(deployment, active)


def _shares(deployment: Json, active: list[Json]) -> dict[str, int]:
    desired = replicas_of(deployment)
    total = sum(map(replicas_of, active))
    to_add = (desired + max_surge(deployment) if desired > 0 else 0) - total
    oldest_first = by_age(active)
    ordered = sorted(oldest_first[::-1] if to_add > 0 else oldest_first, key=replicas_of, reverse=True)
    sizes, added = {}, 0
    for each in ordered:
        share = _share(deployment, each, to_add, added)
        sizes[each["metadata"]["name"]] = replicas_of(each) + share
        added += share
    if ordered and added != to_add:
        first = ordered[0]["metadata"]["name"]
        sizes[first] = max(0, sizes[first] + to_add - added)
    return sizes


def _share(deployment: Json, replica_set: Json, to_add: int, added: int) -> int:
    present = replicas_of(replica_set)
    if present == 0 or to_add in (0, added):
        return 0
    desired = replicas_of(deployment)
    if desired == 0:
        fraction = -present
    else:
        before = int(annotations_of(replica_set).get(MAXIMUM) or counted(deployment, "replicas") or 1)
        exact = present * (desired + max_surge(deployment)) / before
        fraction = math.floor(exact + 0.5) - present
    left = to_add - added
    return min(fraction, left) if to_add > 0 else max(fraction, left)


def _active_or_latest(new: Json | None, old: Sequence[Json]) -> Json | None:
    """The one ReplicaSet that has pods to be; or the newest if none has; None if several have."""
    everything = [*old, *([new] if new is not None else [])]
    active = [each for each in everything if replicas_of(each) > 0]
    if len(active) > 1 or not everything:
        return None
    if active:
        return active[0]
    return new if new is not None else by_age(old)[-1]


def _saturated(deployment: Json, new: Json) -> bool:
    desired = replicas_of(deployment)
    return (
        replicas_of(new) == desired
        and annotations_of(new).get(DESIRED) == str(desired)
        and counted(new, "availableReplicas") == desired
    )


def size_annotations(deployment: Json) -> dict[str, str]:
    """Make the annotations by which a ReplicaSet has how large the Deployment was when its size was decided."""
    desired = replicas_of(deployment)
    return {DESIRED: str(desired), MAXIMUM: str(min(desired + max_surge(deployment), _MOST_REPLICAS))}


def is_scaled(deployment: Json, replica_sets: Iterable[Json]) -> bool:
    """The Deployment's size has changed since the ReplicaSets' sizes were decided."""
    desired = str(replicas_of(deployment))
    return any(annotations_of(each).get(DESIRED, desired) != desired for each in replica_sets if replicas_of(each) > 0)
