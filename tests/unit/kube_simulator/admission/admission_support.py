"""What the tests of admission share: a store with a namespace, and the requests that are put to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from kube_simulator.admission.chain import Admission
from kube_simulator.admission.request import AdmissionRequest, Operation
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import Target
from kube_simulator.resources import Registry, Resource
from kube_simulator.schema.kubernetes import builtin_resources
from kube_simulator.schema.node import of_schema
from kube_simulator.store.store import Store
from kube_simulator.values import Json

RESOURCES = {resource.full_name: resource for resource in builtin_resources()}
NAMESPACE = "shop"
WIDGETS = Resource("example.com", "v1", "widgets", "Widget", "widget", True, of_schema({"type": "object"}), custom=True)
CRDS = "customresourcedefinitions.apiextensions.k8s.io"


@dataclass(frozen=True, slots=True)
class World:
    """A store with the namespace `shop`, and admission in front of it."""

    store: Store
    registry: Registry
    admission: Admission

    def put(self, collection: str, name: str, **fields: Any) -> Json:
        """Store an object, past admission."""
        return self.store.put(collection, named(collection, name, **fields))

    def admit(self, request: AdmissionRequest) -> None:
        """As the Api asks."""
        self.admission.admit(request.operation, request.target, request.new, request.old)

    def refusal(self, request: AdmissionRequest) -> ApiError:
        """What is said to somebody who is not let in."""
        with pytest.raises(ApiError) as refused:
            self.admit(request)
        return refused.value


def new_world() -> World:
    store, registry = Store(), Registry()
    for resource in RESOURCES.values():
        registry.put(resource)
    registry.put(WIDGETS)
    admission = Admission(store)
    world = World(store, registry, admission)
    world.put("namespaces", NAMESPACE)
    world.put("serviceaccounts", "default")
    return world


def resource_of(collection: str) -> Resource:
    return WIDGETS if collection == WIDGETS.full_name else RESOURCES[collection]


def named(collection: str, name: str, *, labels: Json | None = None, meta: Json | None = None, **fields: Any) -> Json:
    resource = resource_of(collection)
    where = {"namespace": NAMESPACE} if resource.namespaced else {}
    labelled = {} if labels is None else {"labels": labels}
    metadata = {"name": name, "uid": f"uid-of-{name}", **where, **labelled, **(meta or {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **fields}


def request(
    operation: Operation,
    collection: str,
    new: Json | None = None,
    old: Json | None = None,
    *,
    subresource: str = "",
) -> AdmissionRequest:
    found = new or old
    assert found is not None
    resource = resource_of(collection)
    namespace = found["metadata"].get("namespace", "")
    target = Target(resource, namespace, found["metadata"]["name"], subresource)
    return AdmissionRequest(operation, target, new, old)


def creation(collection: str, name: str = "new", **fields: Any) -> AdmissionRequest:
    return request("CREATE", collection, named(collection, name, **fields))


def elsewhere(asked: AdmissionRequest, namespace: str) -> AdmissionRequest:
    """The same request for another namespace."""
    return replace(asked, target=replace(asked.target, namespace=namespace))


def pod(name: str = "p", **spec: Any) -> Json:
    return named("pods", name, spec={"containers": [{"name": "x", "image": "i"}], **spec})
