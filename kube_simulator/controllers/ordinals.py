"""The pods of a StatefulSet: their names, their revision, and which of them are to be made or ended next. Pure.

The rules are those of `k8s.io/kubernetes/pkg/controller/statefulset`.

Differs from Kubernetes: a revision has another hash, and there are no ControllerRevisions, so that a pod is always made
from the present template, also one that a partition keeps back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kube_simulator.controllers.object_fields import (
    is_deleting,
    is_finished,
    is_ready,
    labels_of,
    ready_since,
    replicas_of,
    seconds_since,
)
from kube_simulator.controllers.replica_sets import pod_of
from kube_simulator.controllers.templates import template_hash
from kube_simulator.values import Json

REVISION_LABEL: Final = "controller-revision-hash"
NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
_NAME: Final = re.compile(r"(.*)-([0-9]+)", re.DOTALL)
_ROLLING: Final = "RollingUpdate"
_LONGEST_PREFIX: Final = 223


@dataclass(frozen=True, slots=True)
class Make:
    """A pod is missing."""

    ordinal: int


@dataclass(frozen=True, slots=True)
class End:
    """A pod is one too many, has ended, or is of an older revision."""

    pod: Json


Step = Make | End


def ordinal_of(stateful_set: Json, pod: Json) -> int | None:
    """Return the pod's ordinal in the set by its name; None if it is none of the set's."""
    match = _NAME.fullmatch(pod["metadata"]["name"])
    return int(match[2]) if match is not None and match[1] == stateful_set["metadata"]["name"] else None


def revision_of(stateful_set: Json) -> str:
    """The name of the present template's revision; the same for the same template."""
    return f"{stateful_set['metadata']['name'][:_LONGEST_PREFIX]}-{template_hash(stateful_set['spec']['template'])}"


def pod_at(stateful_set: Json, ordinal: int, revision: str) -> Json:
    """The body of a new pod."""
    pod = pod_of(stateful_set)
    meta = {**pod["metadata"], "name": f"{stateful_set['metadata']['name']}-{ordinal}"}
    identity = {NAME_LABEL: meta["name"], INDEX_LABEL: str(ordinal)}
    meta["labels"] = {**(meta.get("labels") or {}), **identity, REVISION_LABEL: revision}
    spec = {**pod["spec"], "hostname": meta["name"]}
    subdomain = stateful_set["spec"].get("serviceName")
    spec = {**spec, "subdomain": subdomain} if subdomain else _without(spec, "subdomain")
    return {**pod, "metadata": meta, "spec": spec}


def _without(found: Json, key: str) -> Json:
    return {name: value for name, value in found.items() if name != key}


def steps(stateful_set: Json, pods: Iterable[Json], revision: str, now: datetime) -> list[Step]:
    """List what to do now, in this order; what must wait for it follows when a pod has changed.

    Args:
        pods: of this set by `ordinal_of`, those that are being deleted too.
    """
    ordered = stateful_set["spec"]["podManagementPolicy"] != "Parallel"
    desired = range(_start(stateful_set), _start(stateful_set) + replicas_of(stateful_set))
    there = {ordinal_of(stateful_set, pod) or 0: pod for pod in pods}
    available = {ordinal: _is_available(pod, stateful_set, now) for ordinal, pod in there.items()}
    found: list[Step] = []
    for ordinal in desired:
        step = _kept_step(ordinal, there.get(ordinal))
        found += [step] if step is not None else []
        if ordered and (step is not None or not available[ordinal]):
            return found
    condemned = sorted(there.keys() - set(desired), reverse=True)
    first_bad = min((each for each in condemned if not available[each]), default=None)
    for ordinal in condemned:
        if not is_deleting(there[ordinal]):
            if ordered and not available[ordinal] and ordinal != first_bad:
                return found
            found.append(End(there[ordinal]))
        if ordered:
            return found
    return [*found, *_update(stateful_set, desired, there, available, revision)]


def _kept_step(ordinal: int, pod: Json | None) -> Step | None:
    """Return the step for a pod that is desired."""
    if pod is None:
        return Make(ordinal)
    return End(pod) if is_finished(pod) and not is_deleting(pod) else None


def _update(
    stateful_set: Json, desired: range, there: Mapping[int, Json], available: Mapping[int, bool], revision: str
) -> list[Step]:
    """End the first pod of another revision, from the top, once all above it are available."""
    strategy = stateful_set["spec"]["updateStrategy"]
    if strategy["type"] != _ROLLING:
        return []
    for ordinal in reversed(desired[(strategy.get("rollingUpdate") or {}).get("partition", 0) :]):
        pod = there.get(ordinal)
        if pod is None or is_finished(pod):
            return []
        if labels_of(pod).get(REVISION_LABEL) != revision and not is_deleting(pod):
            return [End(pod)]
        if not available[ordinal]:
            return []
    return []


def status_of(stateful_set: Json, pods: Iterable[Json], revision: str, now: datetime) -> tuple[Json, float]:
    """The status, and in how many seconds a pod will have been ready for long enough (infinite: none will)."""
    spec, before = stateful_set["spec"], stateful_set.get("status") or {}
    current = before.get("currentRevision") or revision
    replicas = ready = available = currents = updated = 0
    next_s = math.inf
    for pod in pods:
        replicas += 1
        if is_ready(pod) and (pod.get("status") or {}).get("phase") == "Running":
            ready += 1
            left_s = _left_s(pod, stateful_set, now)
            available += left_s <= 0
            next_s = min(next_s, left_s if left_s > 0 else math.inf)
        if not is_deleting(pod):
            currents += labels_of(pod).get(REVISION_LABEL) == current
            updated += labels_of(pod).get(REVISION_LABEL) == revision
    if spec["updateStrategy"]["type"] == _ROLLING and updated == ready == replicas == replicas_of(stateful_set):
        current, currents = revision, updated
    counts = {"readyReplicas": ready, "currentReplicas": currents, "updatedReplicas": updated}
    return {
        **({"conditions": before["conditions"]} if before.get("conditions") else {}),
        "observedGeneration": stateful_set["metadata"].get("generation", 0),
        "replicas": replicas,
        **{key: count for key, count in counts.items() if count},
        "availableReplicas": available,
        "currentRevision": current,
        "updateRevision": revision,
        "collisionCount": 0,
    }, next_s


def _start(stateful_set: Json) -> int:
    return int((stateful_set["spec"].get("ordinals") or {}).get("start", 0))


def _is_available(pod: Json, stateful_set: Json, now: datetime) -> bool:
    """Report whether it is there to stay, and has been ready for long enough."""
    return not is_deleting(pod) and is_ready(pod) and _left_s(pod, stateful_set, now) <= 0


def _left_s(pod: Json, stateful_set: Json, now: datetime) -> float:
    """Return how long a ready pod has yet to be so before it is available."""
    minimum_s, since = stateful_set["spec"].get("minReadySeconds") or 0, ready_since(pod)
    if not minimum_s:
        return 0.0
    return float(minimum_s) - seconds_since(since, now) if since else math.inf
