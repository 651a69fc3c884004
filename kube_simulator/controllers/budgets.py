"""The status of PodDisruptionBudgets: how many of their pods are healthy, must be, and may be disrupted.

Differs from Kubernetes: of the owners that say how many pods there should be, only Deployments, ReplicaSets and
StatefulSets are known. Of pods that nobody controls, and of those that were evicted and stayed, no event is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from kube_simulator.controllers.base import Context, Controller, Key, controller_caller, key_of, own_key
from kube_simulator.controllers.object_fields import (
    condition_of,
    controller_of,
    is_deleting,
    is_ready,
    replicas_of,
    seconds_since,
    stamp,
)
from kube_simulator.kinds.budgets import protects
from kube_simulator.store.store import Change
from kube_simulator.values import Json

COLLECTION: Final = "poddisruptionbudgets.policy"
_CONDITION: Final = "DisruptionAllowed"
# How long an evicted pod may take to be deleted before it counts again.
_GOES_WITHIN_S: Final = 120.0
_OWNERS: Final = {
    "Deployment": "deployments.apps",
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
}


class Budgets:
    """The disruption controller."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._caller = controller_caller("disruption-controller")
        self.controller: Controller[Key] = Controller("disruption", self._reconcile)
        self.controller.watch(context.store, COLLECTION, own_key)
        self.controller.watch(context.store, "pods", self._keys_of_pod)

    def _keys_of_pod(self, change: Change) -> Iterable[Key]:
        """The budgets of which the pod is, or was."""
        budgets = self._context.store.list(COLLECTION, change.object["metadata"]["namespace"])
        pods = [each for each in (change.object, change.before) if each is not None]
        return [key_of(each) for each in budgets if any(protects(each, pod) for pod in pods)]

    async def _reconcile(self, key: Key) -> None:
        budget = self._context.store.get(COLLECTION, *key)
        if budget is None:
            return
        pods = [each for each in self._context.store.list("pods", key[0]) if protects(budget, each)]
        now = self._context.now()
        disrupted = _disrupted(budget, pods, now)
        healthy = sum(
            is_ready(each) and not is_deleting(each) and each["metadata"]["name"] not in disrupted for each in pods
        )
        expected, desired = self._wanted(budget["spec"], pods)
        allowed = max(0, healthy - desired) if expected > 0 else 0
        before = {key: value for key, value in (budget.get("status") or {}).items() if key != "disruptedPods"}
        status = {
            **before,
            **({"disruptedPods": disrupted} if disrupted else {}),
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": budget["metadata"]["generation"],
            "conditions": [self._condition(budget, allowed > 0)],
        }
        if status != budget.get("status"):
            target = self._context.target(COLLECTION, *key, "status")
            await self._context.api.update(target, {**budget, "status": status}, self._caller)
        if disrupted:
            self.controller.add_after(key, _GOES_WITHIN_S - max(seconds_since(at, now) for at in disrupted.values()))

    def _wanted(self, spec: Json, pods: list[Json]) -> tuple[int, int]:
        """How many pods there should be, and how many of them healthy."""
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if most is not None:
            scale = self._scale(pods)
            return scale, max(0, scale - _share(most, scale))
        if isinstance(least, int):
            return len(pods), least
        scale = self._scale(pods) if least is not None else 0
        return scale, _share(least, scale) if least is not None else 0

    def _scale(self, pods: list[Json]) -> int:
        """How many pods their controllers want; those of none do not count."""
        wanted: dict[str, int] = {}
        for pod in pods:
            owner = self._owner(self._owner(pod) or {}) or self._owner(pod)
            if owner is not None:
                wanted[owner["metadata"]["uid"]] = replicas_of(owner)
        return sum(wanted.values())

    def _owner(self, found: Json) -> Json | None:
        reference = controller_of(found) if found else None
        if reference is None or reference["kind"] not in _OWNERS:
            return None
        owner = self._context.store.get(_OWNERS[reference["kind"]], found["metadata"]["namespace"], reference["name"])
        return owner if owner is not None and owner["metadata"]["uid"] == reference["uid"] else None

    def _condition(self, budget: Json, holds: bool) -> Json:
        status = "True" if holds else "False"
        known = condition_of(budget, _CONDITION)
        same = known is not None and known["status"] == status
        return {
            "type": _CONDITION,
            "status": status,
            "observedGeneration": budget["metadata"]["generation"],
            "lastTransitionTime": known["lastTransitionTime"] if same and known else stamp(self._context.now()),
            "reason": "SufficientPods" if holds else "InsufficientPods",
            "message": "",
        }


def _disrupted(budget: Json, pods: list[Json], now: datetime) -> dict[str, str]:
    """The pods that were evicted and are not gone yet, by name, with the time; none is believed to go for ever."""
    known = (budget.get("status") or {}).get("disruptedPods") or {}
    names = {pod["metadata"]["name"] for pod in pods if not is_deleting(pod)}
    return {name: at for name, at in known.items() if name in names and seconds_since(at, now) < _GOES_WITHIN_S}


def _share(share: int | str, of: int) -> int:
    """A number, or a percentage of another, rounded up."""
    return share if isinstance(share, int) else -(-int(share[:-1]) * of // 100)
