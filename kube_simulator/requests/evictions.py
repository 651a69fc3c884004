"""Evictions: deletions of pods that a disruption budget may forbid (`policy/v1` Eviction, posted to `pods/eviction`).

The rules are those of `k8s.io/kubernetes/pkg/registry/core/pod/storage/eviction.go`.

Differs from Kubernetes: a precondition that does not hold is refused at once (there a pod that no budget protects is
tried for 10 s more), and a DisruptionTarget that comes to nothing is not taken back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Final

from kube_simulator.access.identities import MASTERS
from kube_simulator.admission.chain import Admission
from kube_simulator.errors import ApiError, not_found
from kube_simulator.kinds.budgets import protects
from kube_simulator.requests import deletion
from kube_simulator.requests.api import Api
from kube_simulator.requests.types import Caller, DeleteOptions, Target, User
from kube_simulator.values import Json

_BUDGETS: Final = "poddisruptionbudgets.policy"
# Phases in which a pod serves nobody, so that no budget is asked.
_UNPROTECTED: Final = ("Pending", "Succeeded", "Failed")
_TARGET: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_APISERVER: Final = Caller(User("system:apiserver", frozenset({MASTERS, "system:authenticated"})), "kube-apiserver")
_AT_MOST: Final = 2000
_RETRY_AFTER_S: Final = 10
_ATTEMPTS: Final = 20


class Evictions:
    """Evicts pods. Every refusal is an ApiError."""

    def __init__(self, api: Api, admission: Admission, now: Callable[[], datetime]) -> None:
        """
        Args:
            now: the present time, in UTC.
        """
        self._api = api
        self._admission = admission
        self._now = now

    async def evict(self, target: Target, eviction: Json, options: DeleteOptions, caller: Caller) -> None:
        """Delete a pod, if its budget allows that.

        Args:
            target: the pod, by its subresource.
            eviction: as it was sent, for admission.

        Raises:
            ApiError: 404; 409, a precondition does not hold; 429, the budget forbids it; 500, it has several budgets.
        """
        self._admission.admit("CREATE", target, eviction, None, caller)
        pod = self._pod(target)
        if _is_protected(pod):
            guarded = await self._ask_budget(pod, dry_run=options.dry_run)
            if guarded and not options.resource_version and self._pod(target) is not pod:
                raise _too_early(guarded)
        self._delete(target, options)

    def _pod(self, target: Target) -> Json:
        found = self._api.store.get("pods", target.namespace, target.name)
        if found is None:
            raise not_found(target.resource, target.name)
        return found

    async def _ask_budget(self, pod: Json, *, dry_run: bool) -> str:
        """Take one disruption of the pod's budget. The budget's name, if the pod may go only while it is not ready."""
        for _ in range(_ATTEMPTS):
            budget = self._budget(pod)
            if budget is None:
                return ""
            if not _is_ready(pod) and _lets_unready_go(budget):
                return str(budget["metadata"]["name"])
            taken = _taken(budget, pod, self._now())
            if dry_run:
                return ""
            resource = self._api.registry.of("policy", "poddisruptionbudgets")
            assert resource is not None
            target = Target(resource, pod["metadata"]["namespace"], budget["metadata"]["name"], "status")
            try:
                await self._api.update(target, taken, _APISERVER)
            except ApiError as error:
                if error.code != 409:  # else somebody else's write came between
                    raise
            else:
                return ""
        raise ApiError(504, "Timeout", "Timeout: couldn't update PodDisruptionBudget due to conflicts")

    def _budget(self, pod: Json) -> Json | None:
        every = self._api.store.list(_BUDGETS, pod["metadata"]["namespace"])
        budgets = [each for each in every if protects(each, pod)]
        if len(budgets) > 1:
            why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise ApiError(500, "", why)
        return next(iter(budgets), None)

    def _delete(self, target: Target, options: DeleteOptions) -> None:
        """Say in the pod's status why it goes, and delete it; as the server itself, which asks no admission."""
        store, pod = self._api.store, self._pod(target)
        if not options.dry_run:
            _check(pod, options)
            options = replace(options, uid="", resource_version="")
            marked = _marked(pod, self._now())
            pod = pod if marked is pod else store.put("pods", marked)
        left = deletion.outcome(target.resource, pod, options, self._now())
        if options.dry_run:
            return
        if left is None:
            store.delete("pods", target.namespace, target.name)
        elif left is not pod:
            store.put("pods", left)


def _is_protected(pod: Json) -> bool:
    deleted = "deletionTimestamp" in pod["metadata"]
    return not deleted and (pod.get("status") or {}).get("phase") not in _UNPROTECTED


def _conditions(found: Json) -> list[Json]:
    return (found.get("status") or {}).get("conditions") or []


def _is_ready(pod: Json) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in _conditions(pod))


def _lets_unready_go(budget: Json) -> bool:
    """Whether a pod that is not ready may go without counting as a disruption."""
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy") or 0
    return 0 < desired <= (status.get("currentHealthy") or 0)


def _taken(budget: Json, pod: Json, now: datetime) -> Json:
    """The budget with one disruption less; ApiError 429 or 403 if there is none."""
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _too_early(name)
    allowed, disrupted = status.get("disruptionsAllowed") or 0, status.get("disruptedPods") or {}
    if len(disrupted) > _AT_MOST:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        details = {"name": name, "group": "policy", "kind": "poddisruptionbudget"}
        raise ApiError(403, "Forbidden", f'poddisruptionbudget.policy "{name}" is forbidden: {why}', details)
    if allowed == 0:
        desired, current = status.get("desiredHealthy") or 0, status.get("currentHealthy") or 0
        if current <= desired:
            raise _refused(f"The disruption budget {name} needs {desired} healthy pods and has {current} currently")
        raise _refused(f"The disruption budget {name} does not allow evicting pods currently")
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    new = {
        **status,
        "disruptionsAllowed": allowed - 1,
        "disruptedPods": {**disrupted, pod["metadata"]["name"]: stamp},
    }
    if allowed == 1:
        new["conditions"] = [
            {**each, "status": "False", "reason": "InsufficientPods", "lastTransitionTime": stamp}
            if each["type"] == "DisruptionAllowed" and each["status"] == "True"
            else each
            for each in status.get("conditions") or []
        ]
    return {**budget, "status": new}


def _refused(why: str, retry_after_s: int = 0) -> ApiError:
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    seconds = {"retryAfterSeconds": retry_after_s} if retry_after_s else {}
    headers = {"Retry-After": str(retry_after_s)} if retry_after_s else {}
    causes = [{"reason": "DisruptionBudget", "message": why}]
    return ApiError(429, "TooManyRequests", message, {"causes": causes, **seconds}, headers)


def _too_early(budget: str) -> ApiError:
    return _refused(f"The disruption budget {budget} is still being processed by the server.", _RETRY_AFTER_S)


def _check(pod: Json, options: DeleteOptions) -> None:
    """Raises the 409 of a precondition that does not hold."""
    meta = pod["metadata"]
    for what, wanted, found, done in (
        ("UID", options.uid, meta["uid"], "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, meta["resourceVersion"], "modified"),
    ):
        if wanted and wanted != found:
            why = (
                f"the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). "
                f"The object might have been {done}"
            )
            message = f'Operation cannot be fulfilled on Pod "{meta["name"]}": {why}'
            raise ApiError(409, "Conflict", message, {"name": meta["name"], "kind": "Pod"})


def _marked(pod: Json, now: datetime) -> Json:
    """The pod with the condition that says why it goes; itself, if it says so already."""
    known = next((each for each in _conditions(pod) if each["type"] == _TARGET["type"]), None)
    if known is not None and {key: known.get(key) for key in _TARGET} == _TARGET:
        return pod
    condition = {**_TARGET, "lastProbeTime": None, "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
    if known is None:
        conditions = [*_conditions(pod), condition]
    else:
        conditions = [condition if each is known else each for each in _conditions(pod)]
    return {**pod, "status": {**(pod.get("status") or {}), "conditions": conditions}}
