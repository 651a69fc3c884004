"""The life of a CustomResourceDefinition: its resource is served, and in the end all its objects are deleted before it
goes.

It belongs to the API server, and goes on when the controllers are stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kube_simulator.access.users import MASTERS
from kube_simulator.controllers.controller import Context, Controller
from kube_simulator.controllers.object_fields import (
    conditions_of,
    finalizers_of,
    is_deleting,
    stamp,
    status_of,
    with_metadata,
)
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import Caller, DeleteOptions, Target, User
from kube_simulator.schema.custom import resources_of, storage_version
from kube_simulator.store.store import Change
from kube_simulator.store.watches import Watches
from kube_simulator.values import Json

COLLECTION = "customresourcedefinitions.apiextensions.k8s.io"
_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_CALLER = Caller(User("system:apiserver", frozenset({MASTERS})), "kube-apiserver")
# Reason and message of each condition.
_WORDS = {
    "NamesAccepted": ("NoConflicts", "no conflicts found"),
    "Established": ("InitialNamesAccepted", "the initial names have been accepted"),
    "Terminating": ("InstanceDeletionInProgress", "CustomResource deletion is in progress"),
}


class CustomResources:
    """Serves what the CRDs in the store say, from `start` to `stop`.

    A CRD bears the name under which the objects of its resource are stored.
    """

    def __init__(self, context: Context, watches: Watches) -> None:
        self._context = context
        self._watches = watches
        self._served: dict[str, Json] = {}
        self._leave: Callable[[], None] = lambda: None
        self._controller: Controller[str] = Controller("customresourcedefinition", self._reconcile, workers=1)
        self._controller.watch(context.store, COLLECTION, lambda change: (change.object["metadata"]["name"],))
        self._controller.watch(context.store, None, self._awaited)

    def start(self) -> None:
        """Serve the CRDs that there are, and those to come."""
        self._leave = self._context.store.subscribe(self._changed, COLLECTION)
        self._controller.start()

    async def stop(self) -> None:
        """Follow no more; what is served stays so. Can be called twice."""
        self._leave()
        await self._controller.stop()

    def _changed(self, change: Change) -> None:
        """Stop serving what is gone at once: it may come back soon, and is another one then."""
        name = change.object["metadata"]["name"]
        if change.type == "DELETED" and self._served.pop(name, None) is not None:
            plural, _, group = name.partition(".")
            self._context.registry.remove(group, plural)
            self._watches.end_all(name)

    def _awaited(self, change: Change) -> Iterable[str]:
        """The CRD that may wait for an object to go."""
        return (change.collection,) if change.type == "DELETED" and change.collection in self._served else ()

    async def _reconcile(self, name: str) -> None:
        crd = self._context.store.get(COLLECTION, "", name)
        if crd is None:
            return
        if is_deleting(crd):
            await self._terminate(name, await self._write_status(crd, "Terminating"))
            return
        crd = await self._write_status(crd, "NamesAccepted", "Established")
        spec, registry = crd["spec"], self._context.registry
        if self._served.get(name) != spec:
            # Whoever watches it has to begin again: its objects may look new.
            self._served[name] = spec
            registry.remove(spec["group"], spec["names"]["plural"])
            for resource in resources_of(crd):
                registry.put(resource)
            self._watches.begin_serving(name)
            self._watches.end_all(name)

    async def _terminate(self, name: str, crd: Json) -> None:
        store, api = self._context.store, self._context.api
        versions = [{**each, "served": True} for each in crd["spec"]["versions"]]  # also if none is served
        resource = resources_of({"spec": {**crd["spec"], "versions": versions}})[0]
        for found in store.list(name):
            meta = found["metadata"]
            if not is_deleting(found):
                try:
                    target = Target(resource, meta.get("namespace", ""), meta["name"])
                    await api.delete(target, DeleteOptions(uid=meta["uid"]))
                except ApiError as error:
                    if error.code not in (404, 409):  # somebody else was faster
                        raise
        left = [each for each in finalizers_of(crd) if each != _FINALIZER]
        if not store.list(name) and len(left) < len(finalizers_of(crd)):
            freed = with_metadata(crd, finalizers=left or None)
            await api.update(self._context.target(COLLECTION, "", name), freed, _CALLER)

    async def _write_status(self, crd: Json, *kinds: str) -> Json:
        """Set conditions, each with the time since when it is so, and the names and versions that are served."""
        conditions = {each["type"]: each for each in conditions_of(crd)}
        for kind in kinds:
            if conditions.get(kind, {}).get("status") != "True":
                reason, message = _WORDS[kind]
                at = {"lastTransitionTime": stamp(self._context.now())}
                conditions[kind] = {"type": kind, "status": "True", "reason": reason, "message": message, **at}
        status = {**status_of(crd), "conditions": list(conditions.values()), "acceptedNames": crd["spec"]["names"]}
        stored, current = status.get("storedVersions") or [], storage_version(crd)
        status["storedVersions"] = stored if current in stored else [*stored, current]
        if status == crd.get("status"):
            return crd
        target = self._context.target(COLLECTION, "", crd["metadata"]["name"], "status")
        return (await self._context.api.update(target, {**crd, "status": status}, _CALLER)).object
