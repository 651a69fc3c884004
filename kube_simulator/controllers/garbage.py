"""The garbage collector: what belongs to a deleted object goes with it, before it, or is set free, as was asked.

Three rules, as a real one keeps them: an object all of whose owners are gone is deleted; one that has some owner left
loses the references to the others; an owner with the finalizer `foregroundDeletion` waits until nothing is left that
blocks its deletion, and one with `orphan` lets everything go first.

Differs from Kubernetes: it acts at once, and knows a new custom resource at once (there within half a minute). An owner
in another namespace counts as gone, as there; the event that Kubernetes makes of it is not made.
"""

from __future__ import annotations

from collections.abc import Iterable

from kube_simulator.controllers.controller import Context, Controller, controller_caller
from kube_simulator.controllers.object_fields import is_deleting, references_of
from kube_simulator.requests.types import DeleteOptions, Patch, Propagation
from kube_simulator.resources import Resource
from kube_simulator.store.store import Change
from kube_simulator.values import Json

Place = tuple[str, str, str]
"""Collection, namespace and name."""

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_HOLDS = frozenset({ORPHAN, FOREGROUND})
_NEVER_OWNED = frozenset({"events", "leases.coordination.k8s.io"})


class GarbageCollector:
    """Knows by uid what belongs to whom, from `start` to `stop`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._caller = controller_caller("generic-garbage-collector")
        self._dependents: dict[str, dict[Place, None]] = {}
        self._gone: set[str] = set()  # owners whose end was seen, of which something is left
        self._kinds: dict[tuple[str, str], Resource | None] = {}
        context.registry.on_change(self._forget_kinds)
        self.controller: Controller[Place] = Controller("garbage-collector", self._reconcile, workers=1)
        self.controller.watch(context.store, None, self._places)

    def start(self) -> None:
        """Learn what belongs to whom, and look at all that has owners or is on its way out."""
        store = self._context.store
        collections = {each.collection for each in self._context.registry if each.stored}
        for collection in sorted(collections):
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
        if change.collection in _NEVER_OWNED and not references_of(change.object):
            return ()
        found, before = change.object, change.before
        meta = found["metadata"]
        place = change.collection, meta.get("namespace", ""), meta["name"]
        deleted = change.type == "DELETED"
        references = [] if deleted else references_of(found)
        known = references_of(before) if before is not None else references_of(found) if deleted else []
        if references != known:
            self._record(place, known, references)
        if deleted:
            mine = self._dependents.get(meta["uid"], {})
            if mine:
                self._gone.add(meta["uid"])
            return [*mine, *self._waiting_owners(place, known)] if mine or known else ()
        if "deletionTimestamp" in meta and not _HOLDS.isdisjoint(_finalizers(found)):
            return [place, *self._waiting_owners(place, known)]
        if references != known and (before is not None or not all(self._is_there(place, each) for each in references)):
            return [place, *self._waiting_owners(place, known)]
        return ()

    def _record(self, place: Place, known: list[Json], references: list[Json]) -> None:
        for each in known:
            mine = self._dependents.get(each["uid"])
            if mine is not None:
                mine.pop(place, None)
                if not mine:
                    del self._dependents[each["uid"]]
                    self._gone.discard(each["uid"])
        for each in references:
            self._dependents.setdefault(each["uid"], {})[place] = None

    def _waiting_owners(self, place: Place, references: list[Json]) -> list[Place]:
        """Owners that may wait for this one to go."""
        owners = []
        for each in references:
            owner = self._owner(place, each)
            if owner is not None and FOREGROUND in _finalizers(owner[1]):
                owners.append(owner[0])
        return owners

    async def _reconcile(self, place: Place) -> None:
        found = self._context.store.get(*place)
        if found is None:
            return
        finalizers = _finalizers(found)
        if is_deleting(found):
            if ORPHAN in finalizers:
                await self._orphan(place, found)
            elif FOREGROUND in finalizers:
                await self._foreground(place, found)
            return
        await self._keep_or_delete(place, found)

    async def _keep_or_delete(self, place: Place, found: Json) -> None:
        references = references_of(found)
        gone: list[Json] = []
        waiting: list[Json] = []
        kept: list[Json] = []
        for each in references:
            owner = self._owner(place, each)
            if owner is None:
                (kept if self._is_beyond(place, each) else gone).append(each)
            elif is_deleting(owner[1]) and FOREGROUND in _finalizers(owner[1]):
                waiting.append(each)
            else:
                kept.append(each)
        if not gone and not waiting:
            return
        if kept:
            await self._patch(place, found, {"ownerReferences": kept})
            return
        finalizers = _finalizers(found)
        policy: Propagation = "Background"
        if waiting and found["metadata"]["uid"] in self._dependents:
            policy = "Foreground"
        elif ORPHAN in finalizers:
            policy = "Orphan"
        elif FOREGROUND in finalizers:
            policy = "Foreground"
        meta = found["metadata"]
        options = DeleteOptions(propagation=policy, uid=meta["uid"], resource_version=meta["resourceVersion"])
        await self._context.api.delete(self._context.target(*place), options)

    async def _foreground(self, place: Place, owner: Json) -> None:
        """Let the owner go once nothing blocks it; until then see that what it owns is deleted."""
        uid = owner["metadata"]["uid"]
        blocked = False
        for dependent in list(self._dependents.get(uid, ())):
            found = self._context.store.get(*dependent)
            if found is None:
                continue
            blocked = blocked or any(
                each["uid"] == uid and each.get("blockOwnerDeletion") for each in references_of(found)
            )
            if not is_deleting(found):
                self.controller.add(dependent)
        if not blocked:
            await self._unhold(place, owner, FOREGROUND)

    async def _orphan(self, place: Place, owner: Json) -> None:
        uid = owner["metadata"]["uid"]
        for dependent in list(self._dependents.get(uid, ())):
            found = self._context.store.get(*dependent)
            if found is not None:
                kept = [each for each in references_of(found) if each["uid"] != uid]
                await self._patch(dependent, found, {"ownerReferences": kept or None})
        await self._unhold(place, owner, ORPHAN)

    async def _unhold(self, place: Place, found: Json, finalizer: str) -> None:
        kept = [each for each in _finalizers(found) if each != finalizer]
        await self._patch(place, found, {"finalizers": kept or None})

    async def _patch(self, place: Place, found: Json, metadata: Json) -> None:
        guard = {key: found["metadata"][key] for key in ("uid", "resourceVersion")}
        body = {"metadata": {**metadata, **guard}}
        await self._context.api.patch(self._context.target(*place), Patch("merge", body), self._caller)

    def _is_there(self, place: Place, reference: Json) -> bool:
        owner = self._owner(place, reference)
        return owner is not None and not is_deleting(owner[1])

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

    def _forget_kinds(self) -> None:
        self._kinds.clear()


def _finalizers(found: Json) -> list[str]:
    return found["metadata"].get("finalizers") or []
