"""The resources and objects that the tests of the store speak of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kube_simulator.resources import Resource
from kube_simulator.schema.node import Definitions
from kube_simulator.store.store import Store
from kube_simulator.values import Json


def _resource(group: str, plural: str, kind: str, *, namespaced: bool = True, **more: Any) -> Resource:
    return Resource(
        group, "v1", plural, kind, kind.lower(), namespaced, Definitions({}).node({"type": "object"}), **more
    )


LEASES = _resource("coordination.k8s.io", "leases", "Lease")
PODS = _resource("", "pods", "Pod", selectable_fields=("status.phase", "spec.nodeName", "spec.hostNetwork"))
NAMESPACES = _resource("", "namespaces", "Namespace", namespaced=False, selectable_fields=("status.phase",))


def lease(name: str, namespace: str = "ns", labels: dict[str, str] | None = None, **spec: Any) -> Json:
    """An object as a writer hands it over, without a version."""
    metadata = {"name": name, "namespace": namespace, **({} if labels is None else {"labels": labels})}
    return {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata, "spec": spec}


def put(store: Store, name: str, namespace: str = "ns", labels: dict[str, str] | None = None, **spec: Any) -> Json:
    """Store a Lease."""
    return store.put(LEASES.collection, lease(name, namespace, labels, **spec))


def names(objects: Iterable[Json]) -> list[str]:
    return [object["metadata"]["name"] for object in objects]


def version(object: Json) -> int:
    return int(object["metadata"]["resourceVersion"])
