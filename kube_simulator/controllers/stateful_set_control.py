"""StatefulSets: each pod under its own name, made anew under it when it is gone, and updated from the top.

Differs from Kubernetes: pods are made one after another up to the first refusal (there in batches that double).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from typing import Final

from kube_simulator.controllers import ordinals
from kube_simulator.controllers.claims import claim, may_be_adopted
from kube_simulator.controllers.controller import Context, Controller, Key, controller_caller, key_of, own_key
from kube_simulator.controllers.event_recorder import Recorder
from kube_simulator.controllers.index import Index
from kube_simulator.controllers.object_fields import controller_of, is_deleting, labels_of
from kube_simulator.controllers.ordinals import End, Make, Step
from kube_simulator.controllers.refusals import namespace_is_leaving
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import DeleteOptions, Target
from kube_simulator.store.selection import from_label_selector
from kube_simulator.store.store import Change
from kube_simulator.values import Json

COLLECTION: Final = "statefulsets.apps"
_KIND: Final = "StatefulSet"
_COMPONENT: Final = "statefulset-controller"


class StatefulSets:
    """The StatefulSet controller."""

    def __init__(self, context: Context, recorder: Recorder, pods: Index) -> None:
        """
        Args:
            pods: by controller.
        """
        self._context = context
        self._recorder = recorder
        self._pods = pods
        self._caller = controller_caller(_COMPONENT)
        self.controller: Controller[Key] = Controller("statefulset", self._reconcile)
        self.controller.watch(context.store, COLLECTION, own_key)
        self.controller.watch(context.store, "pods", self._keys_of_pod)

    def _keys_of_pod(self, change: Change) -> Iterable[Key]:
        keys: set[Key] = set()
        namespace = change.object["metadata"]["namespace"]
        for each in (change.object, change.before):
            owner = None if each is None else controller_of(each)
            if owner is not None and owner["kind"] == _KIND:
                keys.add((namespace, owner["name"]))
        if may_be_adopted(change):
            labels = labels_of(change.object)
            for found in self._context.store.list(COLLECTION, namespace):
                if from_label_selector(found["spec"]["selector"]).matches(labels):
                    keys.add(key_of(found))
        return keys

    async def _reconcile(self, key: Key) -> None:
        found = self._context.store.get(COLLECTION, *key)
        if found is None:
            return
        pods = await claim(
            self._context,
            self._caller,
            found,
            "pods",
            self._pods,
            may_be_owned=lambda pod: ordinals.ordinal_of(found, pod) is not None,
        )
        refused: ApiError | None = None
        try:
            if not is_deleting(found):
                await self._advance(found, pods)
        except ApiError as error:
            refused = error
        await self._write(key, found)
        if refused is not None and not namespace_is_leaving(refused):
            raise refused

    async def _advance(self, stateful_set: Json, pods: list[Json]) -> None:
        revision = ordinals.revision_of(stateful_set)
        for step in ordinals.steps(stateful_set, pods, revision, self._context.now()):
            try:
                name = await self._take(stateful_set, step, revision)
            except ApiError as error:
                if error.reason != "AlreadyExists" and not namespace_is_leaving(error):
                    self._record(stateful_set, step, _name(stateful_set, step), error)
                raise
            self._record(stateful_set, step, name)
            await asyncio.sleep(0)

    async def _take(self, stateful_set: Json, step: Step, revision: str) -> str:
        """The name of the pod that was made, changed or ended."""
        api, namespace, name = self._context.api, stateful_set["metadata"]["namespace"], _name(stateful_set, step)
        if isinstance(step, Make):
            body = ordinals.pod_at(stateful_set, step.ordinal, revision)
            await api.create(self._context.target("pods", namespace), body, self._caller)
            return name
        await self._end(self._context.target("pods", namespace, name), step.pod["metadata"]["uid"])
        return name

    async def _end(self, target: Target, uid: str) -> None:
        try:
            await self._context.api.delete(target, DeleteOptions(uid=uid))
        except ApiError as error:
            if error.code != 404:  # somebody was faster
                raise

    def _record(self, stateful_set: Json, step: Step, pod: str, error: ApiError | None = None) -> None:
        verb = {Make: "Create", End: "Delete"}[type(step)]
        about = f"{verb} Pod {pod} in StatefulSet {stateful_set['metadata']['name']}"
        if error is None:
            self._recorder.record(stateful_set, "Normal", f"Successful{verb}", f"{about} successful", _COMPONENT)
        else:
            message = f"{about} failed error: {error.message}"
            self._recorder.record(stateful_set, "Warning", f"Failed{verb}", message, _COMPONENT)

    async def _write(self, key: Key, found: Json) -> None:
        """Write the status, of the pods as they are by now, if it is not so already."""
        present = self._context.store.get(COLLECTION, *key)
        if present is None or present["metadata"]["uid"] != found["metadata"]["uid"]:
            return
        pods = [pod for pod in self._pods.get(found["metadata"]["uid"]) if ordinals.ordinal_of(found, pod) is not None]
        status, next_s = ordinals.status_of(found, pods, ordinals.revision_of(found), self._context.now())
        if math.isfinite(next_s):
            self.controller.add_after(key, next_s)
        if status == present.get("status"):
            return
        target = self._context.target(COLLECTION, *key, "status")
        await self._context.api.update(target, {**present, "status": status}, self._caller)


def _name(stateful_set: Json, step: Step) -> str:
    if isinstance(step, Make):
        return f"{stateful_set['metadata']['name']}-{step.ordinal}"
    return str(step.pod["metadata"]["name"])
