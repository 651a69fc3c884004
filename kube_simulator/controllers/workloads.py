"""Steps that the controllers of Deployments, ReplicaSets and StatefulSets share: they claim what is theirs, take the
next step, and write the status of what there is then.

A controller adopts what matches its selector and has no controller, and releases what does not. Source of the rules:
Kubernetes' design of controllerRef, and what a real controller-manager does.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Literal

from kube_simulator.controllers.controller import (
    Context,
    Controller,
    Key,
    Owned,
    controller_caller,
    key_of,
    namespace_is_leaving,
    own_key,
)
from kube_simulator.controllers.event_recorder import Recorder
from kube_simulator.controllers.object_fields import (
    controller_of,
    controller_reference,
    is_deleting,
    labels_of,
    references_of,
)
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import DeleteOptions, Patch
from kube_simulator.store.selection import from_label_selector
from kube_simulator.store.store import Change
from kube_simulator.values import Json


class Workload(ABC):
    """A controller of one kind, whose objects own those of one collection."""

    KIND: ClassVar[str]
    COLLECTION: ClassVar[str]
    OWNED: ClassVar[str]
    """The collection of what it makes."""

    def __init__(self, context: Context, recorder: Recorder, owned: Owned) -> None:
        self.context = context
        self.component = f"{self.KIND.lower()}-controller"
        self.caller = controller_caller(self.component)
        self.owned = owned
        self._recorder = recorder
        self.controller: Controller[Key] = Controller(self.KIND.lower(), self._reconcile)
        self.controller.watch(context.store, self.COLLECTION, own_key)
        self.controller.watch(context.store, self.OWNED, self._keys_of_owned)

    @abstractmethod
    async def advance(self, found: Json, owned: list[Json]) -> None:
        """Take the next step of an object that is not being deleted."""

    @abstractmethod
    def written(self, present: Json, owned: list[Json], refused: ApiError | None) -> tuple[Json, float]:
        """The object with the status of what it owns by now, and in how many seconds to look again, or infinity."""

    def may_own(self, owner: Json, found: Json) -> bool:
        """Report whether what the selector matches may be the owner's."""
        return True

    def record(self, about: Json, reason: str, message: str, type: Literal["Normal", "Warning"] = "Normal") -> None:
        """Record an event."""
        self._recorder.record(about, type, reason, message, self.component)

    async def create(self, owner: Json, body: Json) -> Json:
        """Make what it shall own. Of a refusal that people can do something about, an event is made."""
        try:
            target = self.context.target(self.OWNED, owner["metadata"]["namespace"])
            return (await self.context.api.create(target, body, self.caller)).object
        except ApiError as error:
            if error.reason != "AlreadyExists" and not namespace_is_leaving(error):
                self.record(owner, self.refusal, f"Error creating: {error.message}", "Warning")
            raise

    refusal: ClassVar[str] = "FailedCreate"

    async def delete(self, owned: Json) -> None:
        """Delete what it owns; somebody else may have been faster."""
        try:
            options = DeleteOptions(uid=owned["metadata"]["uid"])
            await self.context.api.delete(self.context.target(self.OWNED, *key_of(owned)), options)
        except ApiError as error:
            if error.code != 404:
                raise

    def _keys_of_owned(self, change: Change) -> Iterable[Key]:
        """The owners before and after, and those that may adopt an object that has none."""
        namespace = change.object["metadata"]["namespace"]
        owners = [controller_of(each) for each in (change.object, change.before)]
        keys = {(namespace, each["name"]) for each in owners if each is not None and each["kind"] == self.KIND}
        if owners[0] is None and change.type != "DELETED":
            labels = labels_of(change.object)
            for found in self.context.store.list(self.COLLECTION, namespace):
                if from_label_selector(found["spec"]["selector"]).matches(labels):
                    keys.add(key_of(found))
        return keys

    async def _reconcile(self, key: Key) -> None:
        found = self.context.store.get(self.COLLECTION, *key)
        if found is None:
            return
        owned, refused = await self._claim(found), None
        try:
            if not is_deleting(found):
                await self.advance(found, owned)
        except ApiError as error:
            refused = error
        present, uid = self.context.store.get(self.COLLECTION, *key), found["metadata"]["uid"]
        if present is not None and present["metadata"]["uid"] == uid:
            owned = [each for each in self.owned.by(uid) if self.may_own(found, each)]
            changed, next_s = self.written(present, owned, refused)
            if math.isfinite(next_s):
                self.controller.add_after(key, next_s)
            if changed != present:
                target = self.context.target(self.COLLECTION, *key, "status")
                await self.context.api.update(target, changed, self.caller)
        if refused is not None and not namespace_is_leaving(refused):
            raise refused

    async def _claim(self, owner: Json) -> list[Json]:
        """The objects that belong to the owner, after adopting and letting go.

        An owner that is being deleted keeps what it has, takes nothing and lets nothing go.
        """
        selector, uid = from_label_selector(owner["spec"]["selector"]), owner["metadata"]["uid"]
        leaving, claimed = is_deleting(owner), []
        orphans = [] if leaving else self.owned.orphans(owner["metadata"]["namespace"])
        for found in (*self.owned.by(uid), *orphans):
            mine = controller_of(found) is not None
            fits = selector.matches(labels_of(found)) and self.may_own(owner, found)
            if fits and mine:
                claimed.append(found)
            elif fits and not is_deleting(found):
                claimed += await self._own(found, [*references_of(found), controller_reference(owner)])
            elif mine and not leaving and not fits:
                await self._own(found, [each for each in references_of(found) if each["uid"] != uid])
        return claimed

    async def _own(self, found: Json, references: list[Json]) -> list[Json]:
        """Write the owner references; nothing if the object has vanished meanwhile."""
        body = {"metadata": {"uid": found["metadata"]["uid"], "ownerReferences": references or None}}
        try:
            target = self.context.target(self.OWNED, *key_of(found))
            return [(await self.context.api.patch(target, Patch("merge", body), self.caller)).object]
        except ApiError as error:
            if error.code == 404:
                return []
            raise


def pod_of(owner: Json) -> Json:
    """The body of a new pod of what has a template."""
    template, namespace = owner["spec"]["template"], owner["metadata"]["namespace"]
    meta = template.get("metadata") or {}
    copied = {field: meta[field] for field in ("labels", "annotations", "finalizers") if meta.get(field)}
    own = {"generateName": f"{owner['metadata']['name']}-", "namespace": namespace}
    metadata = {**copied, **own, "ownerReferences": [controller_reference(owner)]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
