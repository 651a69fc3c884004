"""The garbage collector: what belongs to a deleted object goes with it, before it, or is set free, as was asked.

Three rules, as a real one keeps them: an object all of whose owners are gone is deleted; one that has some owner left
loses the references to the others; an owner with the finalizer `foregroundDeletion` waits until nothing is left that
blocks its deletion, and one with `orphan` lets everything go first.
"""

from __future__ import annotations

from collections.abc import Iterable

from kube_simulator.controllers.controller import Context, Controller, controller_caller
from kube_simulator.controllers.object_fields import finalizers_of, is_deleting, references_of
from kube_simulator.requests.types import DeleteOptions, Patch, Propagation
from kube_simulator.resources import Resource
from kube_simulator.store.store import Change
from kube_simulator.values import Json

Place = tuple[str, str, str]
"""Collection, namespace and name."""

_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"
_NEVER_OWNED = frozenset({"events", "leases.coordination.k8s.io"})


class GarbageCollector:
    """Knows by uid what belongs to whom, from `start` to `stop`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._caller = controller_caller("generic-garbage-collector")
        self._dependents: dict[str, dict[Place, None]] = {}
        self._gone: set[str] = set()  # owners whose end was seen
        self._kinds: dict[tuple[str, str], Resource | None] = {}
        context.registry.on_change(self._kinds.clear)
        self.controller: Controller[Place] = Controller("garbage-collector", self._reconcile, workers=1)
        self.controller.watch(context.store, None, self._places)

    def start(self) -> None:
        """Learn what belongs to whom, and look at all that has owners or is on its way out."""
        store = self._context.store
        for collection in sorted({each.collection for each in self._context.registry if each.stored}):
            for found in store.list(collection):
                for place in self._places(Change("ADDED", collection, store.revision, found, None)):
                    self.controller.add(place)
        self.controller.start()

    async def stop(self) -> None:
        """Stop; can be called twice."""
        await self.controller.stop()
        self._dependents.clear()
        self._gone.clear()

    def _places(self, change: Change) -> Iterable[Place]:
        """Return the places to reconcile after a change; index owners. In the path of every write, so be quick."""
        found, before, deleted = change.object, change.before, change.type == "DELETED"
        present, past = references_of(found), references_of(before) if before is not None else []
        if not present and not past and (change.collection in _NEVER_OWNED or not (deleted or is_deleting(found))):
            return ()
        meta = found["metadata"]
        place = change.collection, meta.get("namespace", ""), meta["name"]
        for each in past:
            left = self._dependents.get(each["uid"], {})
            left.pop(place, None)
            if not left:
                self._dependents.pop(each["uid"], None)
                self._gone.discard(each["uid"])
        for each in present if not deleted else ():
            self._dependents.setdefault(each["uid"], {})[place] = None
        owners = [owner for each in (*past, *present) if (owner := self._owner(place, each)) is not None]
        waiting = [at for at, owner in owners if _FOREGROUND in finalizers_of(owner)]
        if not deleted:
            return [place, *waiting]
        mine = self._dependents.get(meta["uid"], {})
        if mine:
            self._gone.add(meta["uid"])
        return [*mine, *waiting]

    async def _reconcile(self, place: Place) -> None:
        found = self._context.store.get(*place)
        if found is None:
            return
        finalizers = finalizers_of(found)
        if not is_deleting(found):
            await self._keep_or_delete(place, found)
        elif _ORPHAN in finalizers:
            await self._orphan(place, found)
        elif _FOREGROUND in finalizers:
            await self._foreground(place, found)

    async def _keep_or_delete(self, place: Place, found: Json) -> None:
        waiting: list[Json] = []
        kept: list[Json] = []
        for each in references_of(found):
            owner = self._owner(place, each)
            if owner is not None and is_deleting(owner[1]) and _FOREGROUND in finalizers_of(owner[1]):
                waiting.append(each)
            elif owner is not None or self._is_beyond(place, each):
                kept.append(each)
        if len(kept) == len(references_of(found)):
            return
        if kept:
            await self._patch(place, found, {"ownerReferences": kept})
            return
        meta, finalizers = found["metadata"], finalizers_of(found)
        policy: Propagation = "Background"
        if _FOREGROUND in finalizers or (waiting and self._dependents.get(meta["uid"])):
            policy = "Foreground"
        elif _ORPHAN in finalizers:
            policy = "Orphan"
        options = DeleteOptions(propagation=policy, uid=meta["uid"], resource_version=meta["resourceVersion"])
        await self._context.api.delete(self._context.target(*place), options)

    def _owned(self, owner: Json) -> list[tuple[Place, Json]]:
        places = self._dependents.get(owner["metadata"]["uid"], ())
        return [(place, found) for place in places if (found := self._context.store.get(*place)) is not None]

    async def _foreground(self, place: Place, owner: Json) -> None:
        """Let the owner go once nothing blocks it; until then see that what it owns is deleted."""
        blocked = False
        for dependent, found in self._owned(owner):
            references = [each for each in references_of(found) if each["uid"] == owner["metadata"]["uid"]]
            blocked = blocked or any(each.get("blockOwnerDeletion") for each in references)
            if not is_deleting(found):
                self.controller.add(dependent)
        if not blocked:
            await self._unhold(place, owner, _FOREGROUND)

    async def _orphan(self, place: Place, owner: Json) -> None:
        for dependent, found in self._owned(owner):
            kept = [each for each in references_of(found) if each["uid"] != owner["metadata"]["uid"]]
            await self._patch(dependent, found, {"ownerReferences": kept or None})
        await self._unhold(place, owner, _ORPHAN)

    async def _unhold(self, place: Place, found: Json, finalizer: str) -> None:
        kept = [each for each in finalizers_of(found) if each != finalizer]
        await self._patch(place, found, {"finalizers": kept or None})

    async def _patch(self, place: Place, found: Json, metadata: Json) -> None:
        guard = {key: found["metadata"][key] for key in ("uid", "resourceVersion")}
        body = {"metadata": {**metadata, **guard}}
        await self._context.api.patch(self._context.target(*place), Patch("merge", body), self._caller)

    def _owner(self, place: Place, reference: Json) -> tuple[Place, Json] | None:
        """The owner that a reference names, in the same namespace or in none; None if it is not found."""
        resource = self._kind(reference)
        if resource is None:
            return None
        at = resource.collection, place[1] if resource.namespaced else "", reference["name"]
        found = self._context.store.get(*at)
        return None if found is None or found["metadata"]["uid"] != reference["uid"] else (at, found)

    def _is_beyond(self, place: Place, reference: Json) -> bool:
        """Report whether nobody can say that this owner exists, so that it counts as there.

        Its kind is not served, or it is in some namespace while what it owns is in none.
        """
        resource = self._kind(reference)
        return reference["uid"] not in self._gone and (resource is None or (resource.namespaced and not place[1]))

    def _kind(self, reference: Json) -> Resource | None:
        key = reference["apiVersion"], reference["kind"]
        if key not in self._kinds:
            self._kinds[key] = self._context.registry.of_kind(*key)
        return self._kinds[key]
