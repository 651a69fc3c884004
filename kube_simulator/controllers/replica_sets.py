"""ReplicaSets: as many pods as are desired, made from the template, and the counts of them in the status.

Differs from Kubernetes: pods are made one after another up to the first refusal (there in batches that double), and of
equal pods the younger goes first (there ages are compared by their order of magnitude).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from datetime import datetime

from kube_simulator.controllers.claims import claim, may_be_adopted
from kube_simulator.controllers.controller import Context, Controller, Key, controller_caller, key_of
from kube_simulator.controllers.event_recorder import Recorder
from kube_simulator.controllers.index import Index
from kube_simulator.controllers.object_fields import (
    annotations_of,
    condition_of,
    conditions_of,
    controller_of,
    controller_reference,
    controller_uid,
    is_active,
    is_deleting,
    is_finished,
    is_ready,
    labels_of,
    moment_of,
    ready_since,
    replicas_of,
    seconds_since,
    stamp,
)
from kube_simulator.controllers.refusals import namespace_is_leaving
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import DeleteOptions
from kube_simulator.store.selection import from_label_selector
from kube_simulator.store.store import Change
from kube_simulator.values import Json

_REPLICA_SETS = "replicasets.apps"
_COMPONENT = "replicaset-controller"
_FAILURE = "ReplicaFailure"
# Kubernetes' burst: the rest is made at the next reconcile.
_AT_ONCE = 500
# Counting many pods anew for each that changes would take most of the time: it waits this long for each pod there is.
_PAUSE_FOR_A_POD_S = 50e-6
_MANY = 50
# How many pods are made or deleted before others get their turn on the loop.
_WITHOUT_PAUSE = 20
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class ReplicaSets:
    """The ReplicaSet controller."""

    def __init__(self, context: Context, recorder: Recorder, pods: Index) -> None:
        """
        Args:
            pods: by controller.
        """
        self._context = context
        self._recorder = recorder
        self._pods = pods
        self._caller = controller_caller(_COMPONENT)
        self.controller: Controller[Key] = Controller("replicaset", self._reconcile)
        self.controller.watch(context.store, _REPLICA_SETS, self._keys_of_own)
        self.controller.watch(context.store, "pods", self._keys_of_pod)

    def _keys_of_own(self, change: Change) -> Iterable[Key]:
        key, meta = key_of(change.object), change.object["metadata"]
        same = change.before is not None and change.before["metadata"].get("generation") == meta.get("generation")
        return () if same and self._put_off([key], meta["uid"]) else (key,)

    def _keys_of_pod(self, change: Change) -> Iterable[Key]:
        keys: set[Key] = set()
        for each in (change.object, change.before):
            owner = None if each is None else controller_of(each)
            if owner is not None and owner["kind"] == "ReplicaSet":
                keys.add((change.object["metadata"]["namespace"], owner["name"]))
        if change.before is not None and self._put_off(keys, controller_uid(change.object)):
            return ()
        if may_be_adopted(change):
            labels, namespace = labels_of(change.object), change.object["metadata"]["namespace"]
            for found in self._context.store.list(_REPLICA_SETS, namespace):
                if from_label_selector(found["spec"]["selector"]).matches(labels):
                    keys.add(key_of(found))
        return keys

    def _put_off(self, keys: Iterable[Key], uid: str) -> bool:
        """Reconcile a ReplicaSet that has many pods a little later, and all that has changed by then together."""
        count = self._pods.count(uid)
        if count <= _MANY:
            return False
        for key in keys:
            self.controller.add_after(key, count * _PAUSE_FOR_A_POD_S)
        return True

    async def _reconcile(self, key: Key) -> None:
        found = self._context.store.get(_REPLICA_SETS, *key)
        if found is None:
            return
        owned = await claim(self._context, self._caller, found, "pods", self._pods)
        active = [pod for pod in owned if is_active(pod)]
        failed: tuple[str, ApiError] | None = None
        if not is_deleting(found):
            failed = await self._manage(found, active)
        await self._write(key, found, failed)
        if failed is not None and not namespace_is_leaving(failed[1]):
            raise failed[1]

    async def _manage(self, replica_set: Json, active: list[Json]) -> tuple[str, ApiError] | None:
        """Make or delete what is missing or too many; the first refusal and the reason it has in a condition."""
        missing = replicas_of(replica_set) - len(active)
        if missing > 0:
            error = await self._create(replica_set, min(missing, _AT_ONCE))
            return None if error is None else ("FailedCreate", error)
        if missing < 0:
            now = self._context.now()
            victims = sorted(active, key=lambda pod: _keep_rank(pod, now))[: min(-missing, _AT_ONCE)]
            error = await self._delete(replica_set, victims)
            return None if error is None else ("FailedDelete", error)
        return None

    async def _create(self, replica_set: Json, count: int) -> ApiError | None:
        body = pod_of(replica_set)
        target = self._context.target("pods", replica_set["metadata"]["namespace"])
        for number in range(count):
            try:
                created = (await self._context.api.create(target, body, self._caller)).object
            except ApiError as error:
                if not namespace_is_leaving(error):
                    message = f"Error creating: {error.message}"
                    self._recorder.record(replica_set, "Warning", "FailedCreate", message, _COMPONENT)
                return error
            name = created["metadata"]["name"]
            self._recorder.record(replica_set, "Normal", "SuccessfulCreate", f"Created pod: {name}", _COMPONENT)
            if number % _WITHOUT_PAUSE == _WITHOUT_PAUSE - 1:
                await asyncio.sleep(0)
        return None

    async def _delete(self, replica_set: Json, victims: list[Json]) -> ApiError | None:
        failed = None
        for number, pod in enumerate(victims):
            meta = pod["metadata"]
            target = self._context.target("pods", *key_of(pod))
            try:
                await self._context.api.delete(target, DeleteOptions(uid=meta["uid"]))
            except ApiError as error:
                if error.code != 404:
                    message = f"Error deleting: {error.message}"
                    self._recorder.record(replica_set, "Warning", "FailedDelete", message, _COMPONENT)
                    failed = failed or error
                continue
            message = f"Deleted pod: {meta['name']}"
            self._recorder.record(replica_set, "Normal", "SuccessfulDelete", message, _COMPONENT)
            if number % _WITHOUT_PAUSE == _WITHOUT_PAUSE - 1:
                await asyncio.sleep(0)
        return failed

    async def _write(self, key: Key, found: Json, failed: tuple[str, ApiError] | None) -> None:
        """Write the status, of the pods as they are by now, if it is not so already."""
        present = self._context.store.get(_REPLICA_SETS, *key)
        if present is None or present["metadata"]["uid"] != found["metadata"]["uid"]:
            return
        owned = self._pods.get(found["metadata"]["uid"])
        active = [pod for pod in owned if is_active(pod)]
        terminating = sum(1 for pod in owned if is_deleting(pod) and not is_finished(pod))
        status, next_s = status_of(found, active, terminating, self._context.now())
        status = _with_failure(status, found, failed, self._context.now())
        if math.isfinite(next_s):
            self.controller.add_after(key, next_s)
        if status == present.get("status"):
            return
        target = self._context.target(_REPLICA_SETS, *key, "status")
        await self._context.api.update(target, {**present, "status": status}, self._caller)


def pod_of(owner: Json) -> Json:
    """The body of a new pod of what has a template."""
    template = owner["spec"]["template"]
    meta = template.get("metadata") or {}
    copied = {field: meta[field] for field in ("labels", "annotations", "finalizers") if meta.get(field)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **copied,
            "generateName": f"{owner['metadata']['name']}-",
            "namespace": owner["metadata"]["namespace"],
            "ownerReferences": [controller_reference(owner)],
        },
        "spec": template["spec"],
    }


def status_of(replica_set: Json, active: list[Json], terminating: int, now: datetime) -> tuple[Json, float]:
    """The counts, and in how many seconds a pod will have been ready for long enough (infinite: none will).

    Counts of 0 are left out, but for `replicas` and `terminatingReplicas`.
    """
    desired = (replica_set["spec"]["template"].get("metadata") or {}).get("labels") or {}
    minimum_s = replica_set["spec"].get("minReadySeconds") or 0
    labelled = ready = available = 0
    next_s = math.inf
    for pod in active:
        labelled += desired.items() <= labels_of(pod).items()
        if not is_ready(pod):
            continue
        ready += 1
        since = ready_since(pod)
        left_s = minimum_s - seconds_since(since, now) if minimum_s and since else 0.0
        if left_s <= 0:
            available += 1
        elif minimum_s:
            next_s = min(next_s, left_s)
    found = {
        "fullyLabeledReplicas": labelled,
        "readyReplicas": ready,
        "availableReplicas": available,
        "observedGeneration": replica_set["metadata"].get("generation", 0),
    }
    counted = {key: value for key, value in found.items() if value}
    return {"replicas": len(active), **counted, "terminatingReplicas": terminating}, next_s


def _with_failure(status: Json, found: Json, failed: tuple[str, ApiError] | None, now: datetime) -> Json:
    """Add the condition ReplicaFailure as long as pods cannot be created; its first words stay."""
    others = [each for each in conditions_of(found) if each["type"] != _FAILURE]
    known = condition_of(found, _FAILURE)
    if failed is not None:
        reason, error = failed
        new = {"type": _FAILURE, "status": "True", "reason": reason, "message": error.message}
        others.append(known or {**new, "lastTransitionTime": stamp(now)})
    return {**status, "conditions": others} if others else status


def _keep_rank(pod: Json, now: datetime) -> tuple[object, ...]:
    """Rank what can be spared best first: not running, not ready, cheap, ready for a short time, restarted, young."""
    status = pod.get("status") or {}
    cost = annotations_of(pod).get(_DELETION_COST, "0")
    since = ready_since(pod)
    restarts = max((each.get("restartCount", 0) for each in status.get("containerStatuses") or ()), default=0)
    return (
        bool(pod["spec"].get("nodeName")),
        _PHASES.get(status.get("phase", "Pending"), 0),
        is_ready(pod),
        int(cost) if cost.lstrip("+-").isdecimal() else 0,
        seconds_since(since, now) if since else 0.0,
        -restarts,
        -moment_of(pod["metadata"]["creationTimestamp"]).timestamp(),
    )
