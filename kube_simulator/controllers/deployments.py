"""Deployments: a ReplicaSet for each template they had, rolling updates, pauses, history and status.

Differs from Kubernetes: what one reconcile of a Deployment changes in its status is written at once, where Kubernetes
may write twice; the hash in a ReplicaSet's name is another one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

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

_DEPLOYMENTS = "deployments.apps"
_REPLICA_SETS = "replicasets.apps"
_COMPONENT = "deployment-controller"


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
            keys |= self._keys_that_match(change.object)
        return keys - {None}  # type: ignore[return-value]

    def _keys_that_match(self, orphan: Json) -> set[Key | None]:
        found = self._context.store.list(_DEPLOYMENTS, orphan["metadata"]["namespace"])
        labels = labels_of(orphan)
        return {key_of(each) for each in found if from_label_selector(each["spec"]["selector"]).matches(labels)}

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
        rollout = _Rollout(found, by_age(owned))
        try:
            await self._advance(rollout)
        except ApiError:
            await self._write(found, rollout.deployment)  # why it cannot get on
            raise
        await self._write(found, rollout.deployment)
        left_s = rollout_status.left_s(rollout.deployment, rollout.deployment.get("status") or {}, self._context.now())
        if math.isfinite(left_s):
            # A second more, as times have whole seconds.
            self.controller.add_after(key, max(0.0, left_s) + 1)

    async def _advance(self, rollout: _Rollout) -> None:
        """Do the next step, and report in the status how far it is."""
        deployment = rollout.deployment
        if is_deleting(deployment):
            await self._find_new(rollout, create=False)
            rollout.count(self._context)
            return
        self._record_pause(rollout)
        if deployment["spec"].get("paused"):
            await self._find_new(rollout, create=False)
            for latest in rollout.replica_sets[-1:]:
                others = sum(map(replicas_of, rollout.replica_sets[:-1]))
                size = max(0, replicas_of(deployment) - others)
                await self._resize(rollout, latest["metadata"]["name"], size)
            rollout.count(self._context)
        elif rollouts.is_rolling(deployment):
            await self._roll(rollout)
            rollout.progress(self._context)
        else:
            await self._recreate(rollout)
            rollout.progress(self._context)

    def _record_pause(self, rollout: _Rollout) -> None:
        """A pause stops the clock of the deadline, and its end starts it anew."""
        if rollout_status.deadline_s(rollout.deployment) is None:
            return
        known = condition_of(rollout.deployment, "Progressing")
        was_paused = known is not None and known["reason"] == rollout_status.PAUSED
        paused = bool(rollout.deployment["spec"].get("paused"))
        if paused and not was_paused:
            rollout.set_progressing("Unknown", rollout_status.PAUSED, "Deployment is paused", self._context)
        elif was_paused and not paused:
            rollout.set_progressing("Unknown", rollout_status.RESUMED, "Deployment is resumed", self._context)

    async def _roll(self, rollout: _Rollout) -> None:
        new = await self._find_new(rollout, create=True)
        if new is None:
            return
        deployment = rollout.deployment
        size = rollouts.new_size(deployment, rollout.old, replicas_of(new))
        if await self._resize(rollout, new["metadata"]["name"], size):
            return
        sizes = rollouts.old_sizes(deployment, new, rollout.old)
        for name, smaller in sizes.items():
            await self._resize(rollout, name, smaller)
        if not sizes and rollout_status.is_complete(deployment, deployment.get("status") or {}):
            await self._clean_up(rollout)

    async def _recreate(self, rollout: _Rollout) -> None:
        await self._find_new(rollout, create=False)
        active = [each["metadata"]["name"] for each in rollout.old if replicas_of(each) > 0]
        for name in active:
            await self._resize(rollout, name, 0)
        if active or self._old_pods_run(rollout):
            return
        new = await self._find_new(rollout, create=True)
        if new is None:
            return
        await self._resize(rollout, new["metadata"]["name"], replicas_of(rollout.deployment))
        if rollout_status.is_complete(rollout.deployment, rollout.deployment.get("status") or {}):
            await self._clean_up(rollout)

    def _old_pods_run(self, rollout: _Rollout) -> bool:
        pods = (pod for each in rollout.old for pod in self._pods.get(each["metadata"]["uid"]))
        return any(not is_finished(pod) for pod in pods)

    async def _find_new(self, rollout: _Rollout, *, create: bool) -> Json | None:
        """The ReplicaSet of the present template, numbered as the latest; made if it is missing and may be."""
        deployment = rollout.deployment
        revision = max(map(templates.revision_of, rollout.old), default=0) + 1
        new = rollout.new
        if new is None:
            return await self._create(rollout, revision) if create else None
        changed = templates.refreshed(deployment, new, revision)
        if changed is not new:
            new = rollout.put(await self._update(changed))
        rollout.number(templates.revision_of(new))
        if rollout_status.deadline_s(deployment) is not None and condition_of(deployment, "Progressing") is None:
            message = f'Found new replica set "{new["metadata"]["name"]}"'
            rollout.set_progressing("True", rollout_status.FOUND_NEW, message, self._context)
        return new

    async def _create(self, rollout: _Rollout, revision: int) -> Json | None:
        deployment = rollout.deployment
        body = templates.made(deployment, revision, rollouts.new_size(deployment, rollout.old, 0))
        name, namespace = body["metadata"]["name"], body["metadata"]["namespace"]
        try:
            target = self._context.target(_REPLICA_SETS, namespace)
            new = (await self._context.api.create(target, body, self._caller)).object
        except ApiError as error:
            if namespace_is_leaving(error):
                return None
            if error.reason != "AlreadyExists":  # one that is about to go
                self._report_failure(rollout, f'Failed to create new replica set "{name}": {error.message}')
            raise
        rollout.put(new)
        if replicas_of(new):
            self._record(deployment, f"Scaled up replica set {name} from 0 to {replicas_of(new)}")
        rollout.number(revision)
        if rollout_status.deadline_s(deployment) is not None:
            rollout.set_progressing(
                "True", rollout_status.NEW_CREATED, f'Created new replica set "{name}"', self._context
            )
        return new

    def _report_failure(self, rollout: _Rollout, message: str) -> None:
        if rollout_status.deadline_s(rollout.deployment) is not None:
            rollout.set_progressing("False", rollout_status.CREATE_FAILED, message, self._context)
        self._recorder.record(rollout.deployment, "Warning", rollout_status.CREATE_FAILED, message, _COMPONENT)

    async def _resize(self, rollout: _Rollout, name: str, size: int) -> bool:
        """Give a ReplicaSet another size; whether it had another."""
        found = next(each for each in rollout.replica_sets if each["metadata"]["name"] == name)
        before = replicas_of(found)
        if size == before:
            return False
        rollout.put(await self._update(with_spec(found, replicas=size)))
        direction = "up" if size > before else "down"
        self._record(rollout.deployment, f"Scaled {direction} replica set {name} from {before} to {size}")
        return True

    async def _clean_up(self, rollout: _Rollout) -> None:
        """Forget the oldest templates beyond `revisionHistoryLimit`, once nothing of them is left."""
        limit = rollout.deployment["spec"].get("revisionHistoryLimit")
        kept = [each for each in rollout.old if not is_deleting(each)]
        if limit is None or len(kept) <= limit:
            return
        for each in sorted(kept, key=templates.revision_of)[: len(kept) - limit]:
            meta = each["metadata"]
            unseen = meta.get("generation", 0) > counted(each, "observedGeneration")
            if counted(each, "replicas") == replicas_of(each) == 0 and not unseen:
                await self._context.api.delete(
                    self._context.target(_REPLICA_SETS, *key_of(each)), DeleteOptions(uid=meta["uid"])
                )
                rollout.drop(each)

    async def _update(self, replica_set: Json) -> Json:
        target = self._context.target(_REPLICA_SETS, *key_of(replica_set))
        return (await self._context.api.update(target, replica_set, self._caller)).object

    async def _write(self, found: Json, changed: Json) -> None:
        """Write the status and the revision, if they are not so already; the status subresource takes both."""
        same_status = found.get("status") == changed.get("status")
        if same_status and found["metadata"].get("annotations") == changed["metadata"].get("annotations"):
            return
        target = self._context.target(_DEPLOYMENTS, *key_of(found), "status")
        await self._context.api.update(target, changed, self._caller)

    def _record(self, deployment: Json, message: str) -> None:
        self._recorder.record(deployment, "Normal", "ScalingReplicaSet", message, _COMPONENT)


class _Rollout:
    """A Deployment as it shall be written, and its ReplicaSets as they are by now."""

    def __init__(self, deployment: Json, replica_sets: list[Json]) -> None:
        self.deployment = deployment
        self.replica_sets = replica_sets

    @property
    def new(self) -> Json | None:
        """The ReplicaSet of the present template."""
        return templates.find_new(self.deployment, self.replica_sets)

    @property
    def old(self) -> Sequence[Json]:
        """ReplicaSets of other templates, the oldest first."""
        new = self.new
        return [each for each in self.replica_sets if each is not new]

    def put(self, replica_set: Json) -> Json:
        """Take a ReplicaSet as it is now."""
        uid = replica_set["metadata"]["uid"]
        others = [each for each in self.replica_sets if each["metadata"]["uid"] != uid]
        self.replica_sets = by_age([*others, replica_set])
        return replica_set

    def drop(self, replica_set: Json) -> None:
        """Know it no more."""
        self.replica_sets = [each for each in self.replica_sets if each is not replica_set]

    def number(self, revision: int) -> None:
        """Give the Deployment the number of its present template."""
        if templates.revision_of(self.deployment) != revision:
            annotations = {**annotations_of(self.deployment), templates.REVISION: str(revision)}
            self.deployment = with_metadata(self.deployment, annotations=annotations)

    def set_progressing(self, state: str, reason: str, message: str, context: Context) -> None:
        """Set the condition Progressing."""
        status = self.deployment.get("status") or {}
        changed = rollout_status.with_condition(status, "Progressing", state, reason, message, context.now())  # type: ignore[arg-type]
        self.deployment = {**self.deployment, "status": changed}

    def count(self, context: Context) -> None:
        """Set the status without a word on progress."""
        status = rollout_status.counts(self.deployment, self.replica_sets, self.new, context.now())
        self.deployment = {**self.deployment, "status": status}

    def progress(self, context: Context) -> None:
        """Set the status, and report in it how the rollout gets on."""
        status = rollout_status.progress(self.deployment, self.replica_sets, self.new, context.now())
        self.deployment = {**self.deployment, "status": status}


def _owner_key(replica_set: Json) -> Key | None:
    owner = controller_of(replica_set)
    if owner is None or owner["kind"] != "Deployment":
        return None
    return replica_set["metadata"]["namespace"], owner["name"]
