"""Deployments: a ReplicaSet for each template they had, rolling updates, history and status.

Differs from Kubernetes: what one reconcile of a Deployment changes in its status is written at once, where Kubernetes
may write twice; the hash in a ReplicaSet's name is another one; nothing is done for a Deployment that is paused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from kube_simulator.controllers import rollout_status, rollouts, templates
from kube_simulator.controllers.claims import claim, may_be_adopted
from kube_simulator.controllers.controller import Context, Controller, Key, controller_caller, key_of, own_key
from kube_simulator.controllers.event_recorder import Recorder
from kube_simulator.controllers.index import Index
from kube_simulator.controllers.object_fields import (
    annotations_of,
    by_age,
    condition_of,
    controller_of,
    counted,
    is_deleting,
    is_finished,
    labels_of,
    replicas_of,
    with_metadata,
    with_spec,
)
from kube_simulator.controllers.refusals import namespace_is_leaving
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import DeleteOptions
from kube_simulator.store.selection import from_label_selector
from kube_simulator.store.store import Change
from kube_simulator.values import Json

_DEPLOYMENTS: Final = "deployments.apps"
_REPLICA_SETS: Final = "replicasets.apps"
_COMPONENT: Final = "deployment-controller"


class Deployments:
    """The deployment controller."""

    def __init__(self, context: Context, recorder: Recorder, replica_sets: Index, pods: Index) -> None:
        """
        Args:
            replica_sets: by controller.
            pods: by controller.
        """
        self._context = context
        self._recorder = recorder
        self._replica_sets = replica_sets
        self._pods = pods
        self._caller = controller_caller(_COMPONENT)
        self.controller: Controller[Key] = Controller("deployment", self._reconcile)
        self.controller.watch(context.store, _DEPLOYMENTS, own_key)
        self.controller.watch(context.store, _REPLICA_SETS, self._keys_of_replica_set)
        self.controller.watch(context.store, "pods", self._keys_of_pod)

    def _keys_of_replica_set(self, change: Change) -> Iterable[Key]:
        keys = {_owner_key(each) for each in (change.object, change.before) if each is not None}
        if may_be_adopted(change):
            labels = labels_of(change.object)
            for found in self._context.store.list(_DEPLOYMENTS, change.object["metadata"]["namespace"]):
                if from_label_selector(found["spec"]["selector"]).matches(labels):
                    keys.add(key_of(found))
        return keys - {None}  # type: ignore[return-value]

    def _keys_of_pod(self, change: Change) -> Iterable[Key]:
        """Recreate goes on when the last pod of the older templates is gone."""
        owner = controller_of(change.object) if change.type == "DELETED" else None
        if owner is None or owner["kind"] != "ReplicaSet":
            return ()
        replica_set = self._context.store.get(_REPLICA_SETS, change.object["metadata"]["namespace"], owner["name"])
        key = None if replica_set is None else _owner_key(replica_set)
        return () if key is None else (key,)

    async def _reconcile(self, key: Key) -> None:
        found = self._context.store.get(_DEPLOYMENTS, *key)
        if found is None:
            return
        owned = await claim(self._context, self._caller, found, _REPLICA_SETS, self._replica_sets)
        refused: ApiError | None = None
        try:
            if not is_deleting(found) and not found["spec"].get("paused"):
                await self._advance(found, by_age(owned))
        except ApiError as error:
            refused = error
        await self._write(found, refused)
        if refused is not None and not namespace_is_leaving(refused):
            raise refused

    async def _advance(self, deployment: Json, owned: Sequence[Json]) -> None:
        """Do the next step."""
        new = templates.find_new(deployment, owned)
        old = [each for each in owned if each is not new]
        rolling = rollouts.is_rolling(deployment)
        if not rolling and (any(map(replicas_of, old)) or self._pods_run(old)):
            for each in old:
                await self._resize(deployment, each, 0)
            return
        revision, size = max(map(templates.revision_of, old), default=0) + 1, replicas_of(new) if new else 0
        desired = rollouts.new_size(deployment, old, size)
        if new is None:
            new = await self._create(deployment, revision, desired)
        else:
            changed = templates.refreshed(deployment, new, revision)
            new = changed if changed is new else await self._update(changed)
            if await self._resize(deployment, new, desired):
                return
        sizes = rollouts.old_sizes(deployment, new, old) if rolling else {}
        for each in old:
            await self._resize(deployment, each, sizes.get(each["metadata"]["name"], replicas_of(each)))
        if not sizes and rollout_status.is_complete(deployment, deployment.get("status") or {}):
            await self._clean_up(deployment, old)

    def _pods_run(self, replica_sets: Iterable[Json]) -> bool:
        pods = (pod for each in replica_sets for pod in self._pods.get(each["metadata"]["uid"]))
        return any(not is_finished(pod) for pod in pods)

    async def _create(self, deployment: Json, revision: int, replicas: int) -> Json:
        body = templates.made(deployment, revision, replicas)
        name, namespace = body["metadata"]["name"], body["metadata"]["namespace"]
        try:
            target = self._context.target(_REPLICA_SETS, namespace)
            new = (await self._context.api.create(target, body, self._caller)).object
        except ApiError as error:
            if not namespace_is_leaving(error):
                message = f'Failed to create new replica set "{name}": {error.message}'
                self._recorder.record(deployment, "Warning", rollout_status.CREATE_FAILED, message, _COMPONENT)
            raise
        if replicas:
            self._record(deployment, f"Scaled up replica set {name} from 0 to {replicas}")
        return new

    async def _resize(self, deployment: Json, found: Json, size: int) -> bool:
        """Give a ReplicaSet another size; whether it had another."""
        before, name = replicas_of(found), found["metadata"]["name"]
        if size == before:
            return False
        await self._update(with_spec(found, replicas=size))
        direction = "up" if size > before else "down"
        self._record(deployment, f"Scaled {direction} replica set {name} from {before} to {size}")
        return True

    async def _clean_up(self, deployment: Json, old: Sequence[Json]) -> None:
        """Forget the oldest templates beyond `revisionHistoryLimit`, once nothing of them is left."""
        limit = deployment["spec"].get("revisionHistoryLimit")
        kept = sorted((each for each in old if not is_deleting(each)), key=templates.revision_of)
        for each in kept[: max(0, len(kept) - limit)] if limit is not None else ():
            if counted(each, "replicas") == replicas_of(each) == 0:
                options = DeleteOptions(uid=each["metadata"]["uid"])
                await self._context.api.delete(self._context.target(_REPLICA_SETS, *key_of(each)), options)

    async def _update(self, replica_set: Json) -> Json:
        target = self._context.target(_REPLICA_SETS, *key_of(replica_set))
        return (await self._context.api.update(target, replica_set, self._caller)).object

    async def _write(self, found: Json, refused: ApiError | None) -> None:
        """Write the status and the revision, if they are not so already; the status subresource takes both."""
        present = self._context.store.get(_DEPLOYMENTS, *key_of(found))
        if present is None or present["metadata"]["uid"] != found["metadata"]["uid"]:
            return
        owned, now = by_age(self._replica_sets.get(found["metadata"]["uid"])), self._context.now()
        new = templates.find_new(found, owned)
        changed = {**present, "status": rollout_status.status_of(found, owned, new, refused, now)}
        if new is not None:
            annotations = {**annotations_of(present), templates.REVISION: str(templates.revision_of(new))}
            changed = with_metadata(changed, annotations=annotations)
        if changed != present:
            target = self._context.target(_DEPLOYMENTS, *key_of(found), "status")
            await self._context.api.update(target, changed, self._caller)
        left_s = rollout_status.left_s(changed, condition_of(changed, "Progressing"), now)
        if math.isfinite(left_s):
            # A second more, as times have whole seconds.
            self.controller.add_after(key_of(found), max(0.0, left_s) + 1)

    def _record(self, deployment: Json, message: str) -> None:
        self._recorder.record(deployment, "Normal", "ScalingReplicaSet", message, _COMPONENT)


def _owner_key(replica_set: Json) -> Key | None:
    owner = controller_of(replica_set)
    if owner is None or owner["kind"] != "Deployment":
        return None
    return replica_set["metadata"]["namespace"], owner["name"]
