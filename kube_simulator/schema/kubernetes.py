"""Data of a real Kubernetes: version, groups, resources and schemas of the built-in kinds.

It stands in `kubernetes.json.gz`, made by `./dev simulator-schemas` from an API server (see NOTICE). What an API server
does not tell, the field selectors, is said here; an integration test asks a real one whether all of it is so.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from importlib import resources as files
from typing import Final, cast

from kube_simulator.resources import Resource
from kube_simulator.schema.node import Definitions, Node
from kube_simulator.values import Json

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
"""What the names of common definitions begin with: `ObjectMeta`, `Status`, `DeleteOptions`, ..."""

_REFERENCE_FIELDS: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_SELECTABLE: Final = {
    "pods": (
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork"),
        *("status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"),
    ),
    "events": (
        *(f"involvedObject.{name}" for name in _REFERENCE_FIELDS),
        *("reason", "reportingComponent", "source", "type"),
    ),
    "events.events.k8s.io": (
        *(f"regarding.{name}" for name in _REFERENCE_FIELDS),
        *("reason", "reportingController", "type"),
    ),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
}
"""Kubernetes' field label conversions, besides metadata.name and metadata.namespace."""


def builtin_resources() -> list[Resource]:
    """The built-in resources that the simulator serves, in the order of discovery."""
    return [_resource(*key) for key in _resources() if "/" not in key[2]]


def version_info() -> Json:
    """The answer of `/version`."""
    return cast(Json, _data()["version"])


def groups() -> list[Json]:
    """`metav1.APIGroup` of each built-in group that is served, in the order in which `/apis` lists them."""
    return cast(list[Json], _data()["groups"])


def discovery_entry(group: str, version: str, name: str) -> Json | None:
    """The `metav1.APIResource` of a built-in resource or subresource (`deployments/scale`), as discovery shows it."""
    found = _resources().get((group, version, name))
    return None if found is None else cast(Json, found["entry"])


def subresource_schema(group: str, version: str, name: str) -> Node:
    """The node of what a subresource (`serviceaccounts/token`) takes; KeyError if it is not served."""
    return definitions().named(_resources()[group, version, name]["definition"])


@cache
def definitions() -> Definitions:
    """Return all definitions, for schemas that refer to them, as those of custom resources do to ObjectMeta."""
    return Definitions(schemas())


def schemas() -> dict[str, Json]:
    """The definitions as they stand in Kubernetes' OpenAPI documents, by name."""
    return cast(dict[str, Json], _data()["definitions"])


def is_known(group: str, version: str, plural: str) -> bool:
    """Report whether Kubernetes serves this resource or subresource (`pods/log`), and the simulator does not."""
    return [group, version, plural] in _data()["others"]


@cache
def _data() -> Json:
    packed = files.files(__package__).joinpath("kubernetes.json.gz").read_bytes()
    return cast(Json, json.loads(gzip.decompress(packed)))


@cache
def _resources() -> dict[tuple[str, str, str], Json]:
    return {(each["group"], each["version"], each["entry"]["name"]): each for each in _data()["resources"]}


def _resource(group: str, version: str, plural: str) -> Resource:
    found = _resources()[group, version, plural]
    entry = found["entry"]
    full_name = f"{plural}.{group}" if group else plural
    stored = "list" in entry["verbs"]
    names = [name for *at, name in _resources() if at == [group, version]]
    beneath = [name.removeprefix(f"{plural}/") for name in names if name.startswith(f"{plural}/")]
    return Resource(
        group=group,
        version=version,
        plural=plural,
        kind=entry["kind"],
        singular=entry["singularName"],
        namespaced=entry["namespaced"],
        schema=definitions().named(found["definition"]),
        verbs=frozenset(entry["verbs"]),
        short_names=tuple(entry.get("shortNames", ())),
        categories=tuple(entry.get("categories", ())),
        subresources=frozenset(beneath),
        selectable_fields=_SELECTABLE.get(full_name, ()),
        list_kind=f"{entry['kind']}List" if stored else "",
        stored=stored,
        stored_as="events" if full_name == "events.events.k8s.io" else "",
    )
