"""Namespaces on their way out: everything in them is deleted, and then they are let go.

Differs from Kubernetes: it begins at once, where a real one lets a namespace stand for 5 s; no conditions say what
remains.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kube_simulator.controllers.controller import Context, Controller, controller_caller
from kube_simulator.controllers.object_fields import is_deleting
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import DeleteOptions
from kube_simulator.resources import Resource
from kube_simulator.store.store import Change
from kube_simulator.values import Json

_NAMESPACES: Final = "namespaces"
_FINALIZER: Final = "kubernetes"


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
        namespace = change.object["metadata"].get("namespace")
        return (namespace,) if change.type == "DELETED" and namespace in self._leaving else ()

    async def _reconcile(self, name: str) -> None:
        found = self._context.store.get(_NAMESPACES, "", name)
        if found is None or not is_deleting(found) or _FINALIZER not in found["spec"].get("finalizers", ()):
            return
        for resource, each in self._content(name):
            if not is_deleting(each):
                await self._delete(resource, each)
        if not self._content(name):
            kept = [each for each in found["spec"]["finalizers"] if each != _FINALIZER]
            target = self._context.target(_NAMESPACES, "", name, "finalize")
            spec = {**found["spec"], "finalizers": kept}
            await self._context.api.update(target, {**found, "spec": spec}, self._caller)

    async def _delete(self, resource: Resource, found: Json) -> None:
        meta = found["metadata"]
        target = self._context.target(resource.collection, meta["namespace"], meta["name"])
        try:
            await self._context.api.delete(target, DeleteOptions(propagation="Background"))
        except ApiError as error:
            if error.code != 404:
                raise

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
