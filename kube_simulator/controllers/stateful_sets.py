"""StatefulSets: each pod under its own name, made anew under it when it is gone, and updated from the top.

The rules are those of `k8s.io/kubernetes/pkg/controller/statefulset`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kube_simulator.controllers.deployments import template_hash
from kube_simulator.controllers.object_fields import (
    available_in_s,
    is_deleting,
    is_finished,
    is_ready,
    labels_of,
    replicas_of,
    status_of,
)
from kube_simulator.controllers.workloads import Workload, pod_of
from kube_simulator.errors import ApiError
from kube_simulator.values import Json

REVISION_LABEL: Final = "controller-revision-hash"
_NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
_INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
_NAME: Final = re.compile(r"(.*)-([0-9]+)", re.DOTALL)
_LONGEST_PREFIX: Final = 223


class StatefulSets(Workload):
    """The StatefulSet controller."""

    KIND, COLLECTION, OWNED = "StatefulSet", "statefulsets.apps", "pods"

    def may_own(self, owner: Json, found: Json) -> bool:
        """Report whether the pod's name is one of the set's."""
        return _ordinal(owner, found) is not None

    async def advance(self, found: Json, owned: list[Json]) -> None:
        """Make what is missing, end what is one too many or has ended, and then the next of an older revision."""
        there = {_ordinal(found, pod): pod for pod in owned}
        start = (found["spec"].get("ordinals") or {}).get("start", 0)
        desired = range(start, start + replicas_of(found))
        for ordinal in desired:
            if ordinal not in there:
                name = (await self.create(found, _pod_at(found, ordinal)))["metadata"]["name"]
                about = f"create Pod {name} in StatefulSet {found['metadata']['name']} successful"
                self.record(found, "SuccessfulCreate", about)
        stale = [pod for ordinal, pod in there.items() if ordinal not in desired or is_finished(pod)]
        if not stale and there.keys() == {*desired}:
            stale = self._outdated(found, [there[ordinal] for ordinal in reversed(desired)])
        for pod in stale:
            if not is_deleting(pod):
                await self.delete(pod)

    def _outdated(self, found: Json, pods: Sequence[Json]) -> list[Json]:
        """The first pod of another revision, from the top, once all above it are available."""
        strategy = found["spec"]["updateStrategy"]
        partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
        for pod in pods[: max(0, len(pods) - partition)] if strategy["type"] == "RollingUpdate" else ():
            if labels_of(pod).get(REVISION_LABEL) != _revision(found):
                return [pod]
            if is_deleting(pod) or self._available_in_s(found, pod):
                return []
        return []

    def _available_in_s(self, found: Json, pod: Json) -> float:
        return available_in_s(pod, found["spec"].get("minReadySeconds") or 0, self.context.now())

    def written(self, present: Json, owned: list[Json], refused: ApiError | None) -> tuple[Json, float]:
        """Count the pods, by readiness and by revision."""
        before, revision = status_of(present), _revision(present)
        current = before.get("currentRevision") or revision
        ready = [pod for pod in owned if is_ready(pod) and status_of(pod).get("phase") == "Running"]
        waits_s = [self._available_in_s(present, pod) for pod in ready]
        revisions = [labels_of(pod).get(REVISION_LABEL) for pod in owned if not is_deleting(pod)]
        rolling = present["spec"]["updateStrategy"]["type"] == "RollingUpdate"
        if rolling and revisions.count(revision) == len(ready) == len(owned) == replicas_of(present):
            current = revision
        counts = {
            "readyReplicas": len(ready),
            "currentReplicas": revisions.count(current),
            "updatedReplicas": revisions.count(revision),
        }
        status = {
            **({"conditions": before["conditions"]} if before.get("conditions") else {}),
            "observedGeneration": present["metadata"].get("generation", 0),
            "replicas": len(owned),
            **{key: count for key, count in counts.items() if count},
            "availableReplicas": waits_s.count(0),
            "currentRevision": current,
            "updateRevision": revision,
            "collisionCount": 0,
        }
        return {**present, "status": status}, min((wait_s for wait_s in waits_s if wait_s), default=float("inf"))


def _ordinal(stateful_set: Json, pod: Json) -> int | None:
    """Return the pod's ordinal in the set by its name; None if it is none of the set's."""
    match = _NAME.fullmatch(pod["metadata"]["name"])
    return int(match[2]) if match is not None and match[1] == stateful_set["metadata"]["name"] else None


def _revision(stateful_set: Json) -> str:
    """The name of the present template's revision; the same for the same template."""
    return f"{stateful_set['metadata']['name'][:_LONGEST_PREFIX]}-{template_hash(stateful_set['spec']['template'])}"


def _pod_at(stateful_set: Json, ordinal: int) -> Json:
    """The body of a new pod."""
    pod, name = pod_of(stateful_set), f"{stateful_set['metadata']['name']}-{ordinal}"
    identity = {_NAME_LABEL: name, _INDEX_LABEL: str(ordinal), REVISION_LABEL: _revision(stateful_set)}
    service = stateful_set["spec"].get("serviceName")
    spec = {key: value for key, value in pod["spec"].items() if key != "subdomain"}
    spec |= {"hostname": name, **({"subdomain": service} if service else {})}
    return {
        **pod,
        "metadata": {**pod["metadata"], "name": name, "labels": {**labels_of(pod), **identity}},
        "spec": spec,
    }
