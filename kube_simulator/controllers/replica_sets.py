"""ReplicaSets: as many pods as are desired, made from the template, and the counts of them in the status."""

from __future__ import annotations

from datetime import datetime

from kube_simulator.controllers.object_fields import (
    available_in_s,
    condition_of,
    conditions_of,
    is_active,
    is_deleting,
    is_finished,
    is_ready,
    labels_of,
    replicas_of,
    seconds_since,
    stamp,
    status_of,
)
from kube_simulator.controllers.workloads import Workload, pod_of
from kube_simulator.errors import ApiError
from kube_simulator.values import Json

_FAILURE = "ReplicaFailure"


class ReplicaSets(Workload):
    """The ReplicaSet controller."""

    KIND, COLLECTION, OWNED = "ReplicaSet", "replicasets.apps", "pods"

    async def advance(self, found: Json, owned: list[Json]) -> None:
        """Make or delete what is missing or too many."""
        now = self.context.now()
        active = sorted(filter(is_active, owned), key=lambda pod: _worth(pod, now))
        surplus = len(active) - replicas_of(found)
        for number in range(abs(surplus)):
            if surplus < 0:
                name = (await self.create(found, pod_of(found)))["metadata"]["name"]
                self.record(found, "SuccessfulCreate", f"Created pod: {name}")
            else:
                await self.delete(active[number])

    def written(self, present: Json, owned: list[Json], refused: ApiError | None) -> tuple[Json, float]:
        """Counts of 0 are left out, but for `replicas` and `terminatingReplicas`."""
        now, spec = self.context.now(), present["spec"]
        active = [pod for pod in owned if is_active(pod)]
        desired = (spec["template"].get("metadata") or {}).get("labels") or {}
        waits_s = [available_in_s(pod, spec.get("minReadySeconds") or 0, now) for pod in active]
        counts = {
            "fullyLabeledReplicas": sum(desired.items() <= labels_of(pod).items() for pod in active),
            "readyReplicas": sum(map(is_ready, active)),
            "availableReplicas": waits_s.count(0),
            "observedGeneration": present["metadata"].get("generation", 0),
        }
        status: Json = {"replicas": len(active), **{key: value for key, value in counts.items() if value}}
        status["terminatingReplicas"] = sum(is_deleting(pod) and not is_finished(pod) for pod in owned)
        conditions = [each for each in conditions_of(present) if each["type"] != _FAILURE]
        if refused is not None:  # the first words stay
            new = {"type": _FAILURE, "status": "True", "reason": self.refusal, "message": refused.message}
            conditions.append(condition_of(present, _FAILURE) or {**new, "lastTransitionTime": stamp(now)})
        status |= {"conditions": conditions} if conditions else {}
        return {**present, "status": status}, min((wait_s for wait_s in waits_s if wait_s), default=float("inf"))


def _worth(pod: Json, now: datetime) -> tuple[object, ...]:
    """Rank what can be spared best first: not bound, not ready, restarted, new."""
    status = status_of(pod)
    restarts = max((each.get("restartCount", 0) for each in status.get("containerStatuses") or ()), default=0)
    return (
        bool(pod["spec"].get("nodeName")),
        is_ready(pod),
        -restarts,
        seconds_since(pod["metadata"]["creationTimestamp"], now),
    )
