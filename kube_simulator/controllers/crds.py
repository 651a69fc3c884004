"""The life of a CustomResourceDefinition: its resource is served, and in the end all its objects are deleted before it
goes.

It belongs to the API server, and goes on when the controllers are stopped.

Differs from Kubernetes: a CRD is served at once, and so is a change, even under names that another one has;
`Terminating` is said a moment after the deletion and not with it; watches end when the CRD changes or is gone, and not
a second later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from kube_simulator.access.identities import MASTERS
from kube_simulator.controllers.controller import Context, Controller
from kube_simulator.controllers.object_fields import (
    conditions_of,
    is_deleting,
    stamp,
    with_metadata,
)
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import Caller, DeleteOptions, Target, User
from kube_simulator.resources import Registry, Resource
from kube_simulator.schema.custom import resources_of, storage_version
from kube_simulator.store.store import Change, Store
from kube_simulator.store.watches import Watches
from kube_simulator.values import Json

if TYPE_CHECKING:
    from kube_simulator.requests.api import Api

COLLECTION = "customresourcedefinitions.apiextensions.k8s.io"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_CALLER = Caller(User("system:apiserver", frozenset({MASTERS})), "kube-apiserver")


class CustomResources:
    """Serves what the CRDs in the store say, from `start` to `stop`.

    A CRD bears the name under which the objects of its resource are stored.
    """

    def __init__(
        self, api: Api, store: Store, registry: Registry, watches: Watches, now: Callable[[], datetime]
    ) -> None:
        """`now` is the present time, in UTC."""
        self._context = Context(api, store, registry, now)
        self._watches = watches
        self._served: dict[str, Json] = {}
        self._terminating: set[str] = set()
        self._leave: Callable[[], None] = lambda: None
        self._controller: Controller[str] = Controller("customresourcedefinition", self._reconcile, workers=1)
        self._controller.watch(store, COLLECTION, _name)
        self._controller.watch(store, None, self._awaited)

    def start(self) -> None:
        """Serve the CRDs that there are, and those to come."""
        self._leave = self._context.store.subscribe(self._changed, COLLECTION)
        for name in [name for name in self._served if self._context.store.get(COLLECTION, "", name) is None]:
            self._forget(name)
        self._controller.start()

    async def stop(self) -> None:
        """Follow no more; what is served stays so. Can be called twice."""
        self._leave()
        await self._controller.stop()

    def _changed(self, change: Change) -> None:
        """Stop serving what is gone at once: it may come back soon, and is another one then."""
        if change.type == "DELETED":
            self._forget(change.object["metadata"]["name"])

    def _awaited(self, change: Change) -> Iterable[str]:
        """The CRD that waits for an object to go. In the path of every write, so be quick."""
        return (change.collection,) if change.type == "DELETED" and change.collection in self._terminating else ()

    async def _reconcile(self, name: str) -> None:
        crd = self._context.store.get(COLLECTION, "", name)
        if crd is None:
            return
        if is_deleting(crd):
            await self._terminate(name, crd)
        else:
            await self._establish(name, crd)

    async def _establish(self, name: str, crd: Json) -> None:
        crd = await self._write_status(crd, _status(crd, stamp(self._context.now())))
        self._serve(name, crd["spec"])

    def _serve(self, name: str, spec: Json) -> None:
        """Serve a resource as its CRD now says. Whoever watches it has to begin again: its objects may look new."""
        if self._served.get(name) == spec:
            return
        self._served[name] = spec
        registry = self._context.registry
        registry.remove(spec["group"], spec["names"]["plural"])
        for resource in resources_of({"spec": spec}):
            registry.put(resource)
        self._watches.begin_serving(name)
        self._watches.end_all(lambda stream: stream.resource.collection == name)

    def _forget(self, name: str) -> None:
        self._terminating.discard(name)
        if self._served.pop(name, None) is not None:
            plural, _, group = name.partition(".")
            self._context.registry.remove(group, plural)
            self._watches.end_all(lambda stream: stream.resource.collection == name)

    async def _terminate(self, name: str, crd: Json) -> None:
        self._terminating.add(name)
        condition = _condition(
            "Terminating", True, "InstanceDeletionInProgress", "CustomResource deletion is in progress"
        )
        crd = await self._write_status(crd, _with_conditions(crd, [condition], stamp(self._context.now())))
        resource = self._resource(name, crd)
        for found in self._context.store.list(name):
            if not is_deleting(found):
                await self._delete(resource, found)
        finalizers = crd["metadata"].get("finalizers") or []
        if not self._context.store.list(name) and FINALIZER in finalizers:
            left = [each for each in finalizers if each != FINALIZER]
            freed = with_metadata(crd, finalizers=left or None)
            await self._context.api.update(self._context.target(COLLECTION, "", name), freed, _CALLER)

    async def _delete(self, resource: Resource, found: Json) -> None:
        meta = found["metadata"]
        target = Target(resource, meta.get("namespace", ""), meta["name"])
        try:
            await self._context.api.delete(target, DeleteOptions(uid=meta["uid"]))
        except ApiError as error:
            if error.code not in (404, 409):  # somebody else was faster
                raise

    def _resource(self, name: str, crd: Json) -> Resource:
        """The resource, also if no version of it is served."""
        plural, _, group = name.partition(".")
        served = self._context.registry.of(group, plural)
        if served is not None:
            return served
        versions = [{**each, "served": True} for each in crd["spec"]["versions"]]
        return resources_of({"spec": {**crd["spec"], "versions": versions}})[0]

    async def _write_status(self, crd: Json, status: Json) -> Json:
        if status == crd.get("status"):
            return crd
        target = self._context.target(COLLECTION, "", crd["metadata"]["name"], "status")
        return (await self._context.api.update(target, {**crd, "status": status}, _CALLER)).object


def _name(change: Change) -> Iterable[str]:
    return (change.object["metadata"]["name"],)


def _status(crd: Json, now: str) -> Json:
    conditions = [
        _condition("NamesAccepted", True, "NoConflicts", "no conflicts found"),
        _condition("Established", True, "InitialNamesAccepted", "the initial names have been accepted"),
    ]
    status = {**_with_conditions(crd, conditions, now), "acceptedNames": crd["spec"]["names"]}
    stored, current = status.get("storedVersions") or [], storage_version(crd)
    return {**status, "storedVersions": stored if current in stored else [*stored, current]}


def _condition(kind: str, status: bool, reason: str, message: str) -> Json:
    return {"type": kind, "status": str(status), "reason": reason, "message": message}


def _with_conditions(crd: Json, changed: list[Json], now: str) -> Json:
    """The status with these conditions, each with the time since when it is so."""
    found = {each["type"]: each for each in conditions_of(crd)}
    for new in changed:
        before = found.get(new["type"])
        same = before is not None and before["status"] == new["status"]
        found[new["type"]] = {**new, "lastTransitionTime": before["lastTransitionTime"] if before and same else now}
    return {**(crd.get("status") or {}), "conditions": list(found.values())}
