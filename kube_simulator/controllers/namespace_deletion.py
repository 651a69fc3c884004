"""Namespaces on their way out: everything in them is deleted, and then they are let go.

Differs from Kubernetes: it begins at once, where a real one lets a namespace stand for 5 s; conditions are written only
where something remains, as the namespace is gone otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kube_simulator.controllers.controller import Context, Controller, controller_caller
from kube_simulator.controllers.object_fields import condition_of, is_deleting, stamp
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import DeleteOptions
from kube_simulator.resources import Resource
from kube_simulator.store.store import Change
from kube_simulator.values import Json

_NAMESPACES = "namespaces"
_FINALIZER = "kubernetes"
_FINE = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""Conditions in the order in which Kubernetes writes them, and what they say when all is well (status False)."""


class Namespaces:
    """The namespace controller."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._caller = controller_caller("namespace-controller")
        self._leaving: set[str] = set()
        self.controller: Controller[str] = Controller("namespace", self._reconcile)
        self.controller.watch(context.store, _NAMESPACES, self._leaving_names)
        self.controller.watch(context.store, None, self._emptied)

    def _leaving_names(self, change: Change) -> Iterable[str]:
        name = change.object["metadata"]["name"]
        if change.type == "DELETED" or not is_deleting(change.object):
            self._leaving.discard(name)
            return ()
        self._leaving.add(name)
        return (name,)

    def _emptied(self, change: Change) -> Iterable[str]:
        """Check again whether a namespace that is being deleted is empty, as an object in it is gone."""
        if not self._leaving or change.type != "DELETED":
            return ()
        namespace = change.object["metadata"].get("namespace")
        return (namespace,) if namespace in self._leaving else ()

    async def _reconcile(self, name: str) -> None:
        found = self._context.store.get(_NAMESPACES, "", name)
        if found is None or not is_deleting(found) or _FINALIZER not in found["spec"].get("finalizers", ()):
            return
        failed: list[ApiError] = []
        for resource, each in self._content(name):
            if is_deleting(each):
                continue
            target = self._context.target(resource.collection, name, each["metadata"]["name"])
            try:
                await self._context.api.delete(target, DeleteOptions(propagation="Background"))
            except ApiError as error:
                if error.code != 404:
                    failed.append(error)
        left = self._content(name)
        if left:
            await self._report(name, left, failed)
            if failed:
                raise failed[0]
            return
        await self._let_go(name)

    def _content(self, namespace: str) -> list[tuple[Resource, Json]]:
        resources = {
            each.collection: each
            for each in self._context.registry
            if each.namespaced and each.stored and "delete" in each.verbs
        }
        return [
            (resource, found)
            for collection, resource in sorted(resources.items())
            for found in self._context.store.list(collection, namespace)
        ]

    async def _report(self, name: str, left: list[tuple[Resource, Json]], failed: list[ApiError]) -> None:
        found = self._context.store.get(_NAMESPACES, "", name)
        if found is None:
            return
        conditions = [self._condition(found, kind, *words) for kind, words in remaining(left, failed).items()]
        status = {"phase": "Terminating", "conditions": conditions}
        if status != found.get("status"):
            target = self._context.target(_NAMESPACES, "", name, "status")
            await self._context.api.update(target, {**found, "status": status}, self._caller)

    def _condition(self, found: Json, kind: str, status: str, reason: str, message: str) -> Json:
        known = condition_of(found, kind)
        same = known is not None and (known["status"], known["reason"]) == (status, reason)
        return {
            "type": kind,
            "status": status,
            "lastTransitionTime": known["lastTransitionTime"] if same and known else stamp(self._context.now()),
            "reason": reason,
            "message": message,
        }

    async def _let_go(self, name: str) -> None:
        found = self._context.store.get(_NAMESPACES, "", name)
        if found is None:
            return
        kept = [each for each in found["spec"]["finalizers"] if each != _FINALIZER]
        target = self._context.target(_NAMESPACES, "", name, "finalize")
        await self._context.api.update(target, {**found, "spec": {**found["spec"], "finalizers": kept}}, self._caller)


def remaining(left: list[tuple[Resource, Json]], failed: list[ApiError]) -> dict[str, tuple[str, str, str]]:
    """The conditions of a namespace in which something remains: status, reason and message by type."""
    resources = Counter(f"{resource.plural}.{resource.group}" for resource, _ in left)
    finalizers = Counter(name for _, each in left for name in each["metadata"].get("finalizers") or ())
    conditions = {kind: ("False", *words) for kind, words in _FINE.items()}
    if failed:
        words = f"Failed to delete all resource types, {len(failed)} remaining: {failed[0].message}"
        conditions["NamespaceDeletionContentFailure"] = "True", "ContentDeletionFailed", words
    if resources:
        counts = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(resources.items()))
        words = f"Some resources are remaining: {counts}"
        conditions["NamespaceContentRemaining"] = "True", "SomeResourcesRemain", words
    if finalizers:
        counts = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
        words = f"Some content in the namespace has finalizers remaining: {counts}"
        conditions["NamespaceFinalizersRemaining"] = "True", "SomeFinalizersRemain", words
    return conditions
