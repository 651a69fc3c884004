"""The OpenAPI v3 documents of what is served: one for each group and version, and the index that names them.

kubectl reads them for `explain`, for the merge keys of `apply`, and to learn whether the server validates fields.
Schemas are Kubernetes' own, or a CRD's with Kubernetes' metadata.

Differs from Kubernetes: of paths only what kubectl looks for is said, their verbs, kinds and query parameters; there is
no form but JSON.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from kube_simulator.resources import Registry, Resource, by_group_version
from kube_simulator.schema import kubernetes
from kube_simulator.schema.node import REFERENCE_PREFIX
from kube_simulator.values import Json

_META: Final = kubernetes.META
_SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"
_MERGE_TYPES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_STRATEGIC: Final = "application/strategic-merge-patch+json"
# By verb: the method, and the query parameters that kubectl and others look for.
_WRITE: Final = ("dryRun", "fieldManager", "fieldValidation")
_COLLECTION: Final = {"list": ("get", ()), "create": ("post", _WRITE), "deletecollection": ("delete", ("dryRun",))}
_OBJECT: Final = {
    "get": ("get", ()),
    "update": ("put", _WRITE),
    "patch": ("patch", (*_WRITE, "force")),
    "delete": ("delete", ("dryRun",)),
}


class Documents:
    """The documents of a registry, made when they are asked for and again when what is served has changed."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._documents: dict[str, bytes] = {}
        registry.on_change(self._documents.clear)

    def index(self) -> Json:
        """The answer of `/openapi/v3`: where each document is, with a hash by which clients cache it."""
        return {"paths": {path: {"serverRelativeURL": self._url(path)} for path in self._paths()}}

    def document(self, group_version_path: str) -> bytes:
        """The document of `apis/apps/v1` or `api/v1`, as JSON; KeyError if nothing of that path is served."""
        if group_version_path not in self._documents:
            resources = self._paths()[group_version_path]
            self._documents[group_version_path] = orjson.dumps(_document(resources))
        return self._documents[group_version_path]

    def _paths(self) -> dict[str, list[Resource]]:
        groups = by_group_version(self._registry)
        return {resources[0].base_path.lstrip("/"): resources for resources in groups.values()}

    def _url(self, path: str) -> str:
        digest = hashlib.sha256(self.document(path)).hexdigest().upper()
        return f"/openapi/v3/{path}?hash={digest}"


def definition_name(resource: Resource) -> str:
    """The name of a kind's definition: `io.k8s.api.apps.v1.Deployment`, `com.example.cache.v1alpha1.Memcached`."""
    if not resource.custom:
        return resource.schema.ref
    reversed_group = ".".join(reversed(resource.group.split(".")))
    return f"{reversed_group}.{resource.version}.{resource.kind}"


def _document(resources: list[Resource]) -> Json:
    own: dict[str, Json] = {}
    for resource in resources:
        if resource.custom:
            own |= _custom_definitions(resource)
    roots = [*own.values(), *({"$ref": REFERENCE_PREFIX + name} for name in _built_in_roots(resources))]
    paths = {path: item for resource in resources for path, item in _path_items(resource)}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": kubernetes.version_info()["gitVersion"]},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted({**own, **_reached(roots, own.keys())}.items()))},
    }


def _built_in_roots(resources: Iterable[Resource]) -> Iterator[str]:
    yield from (_META + name for name in ("DeleteOptions", "ListMeta", "Patch", "Status"))
    for resource in resources:
        if not resource.custom:
            yield f"{_META}WatchEvent"
        if "scale" in resource.subresources:
            yield _SCALE
        for name in sorted(resource.subresources & {"token", "eviction"}):
            yield kubernetes.subresource_schema(resource.group, resource.version, f"{resource.plural}/{name}").ref
        if not resource.custom:
            yield resource.schema.ref
            if resource.list_kind:
                yield f"{resource.schema.ref}List"


def _custom_definitions(resource: Resource) -> dict[str, Json]:
    name = definition_name(resource)
    schema = _published(resource.schema.raw)
    schema.pop("x-kubernetes-embedded-resource", None)
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    listed = {
        "description": f"{resource.list_kind} is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **_identity("ListMeta"),
            "items": {
                "description": f"List of {resource.plural}.",
                "type": "array",
                "items": {"$ref": REFERENCE_PREFIX + name},
            },
        },
        "x-kubernetes-group-version-kind": [{**kind, "kind": resource.list_kind}],
    }
    shown = {
        **schema,
        "properties": {**schema["properties"], **_identity("ObjectMeta")},
        "x-kubernetes-group-version-kind": [kind],
    }
    return {name: shown, f"{name}List": listed}


def _published(schema: Json) -> Json:
    """A CRD's schema as it is shown: a field of two types says so in OpenAPI's words, too."""
    shown = dict(schema)
    if schema.get("x-kubernetes-int-or-string") is True:
        shown.setdefault("anyOf", [{"type": "integer"}, {"type": "string"}])
    if "properties" in schema:
        shown["properties"] = {name: _published(each) for name, each in schema["properties"].items()}
    for entries in ("items", "additionalProperties"):
        if isinstance(schema.get(entries), dict):
            shown[entries] = _published(schema[entries])
    return shown


def _identity(metadata: str) -> Json:
    """apiVersion, kind and metadata, described as in Kubernetes' own kinds."""
    own = kubernetes.schemas()["io.k8s.api.core.v1.ConfigMap"]["properties"]
    described = {"description": own["metadata"]["description"]} if metadata == "ObjectMeta" else {}
    reference = {"allOf": [{"$ref": REFERENCE_PREFIX + _META + metadata}]}
    return {"apiVersion": own["apiVersion"], "kind": own["kind"], "metadata": {**described, **reference}}


def _reached(roots: Iterable[Json], own: Iterable[str]) -> dict[str, Json]:
    """Kubernetes' definitions that are referred to, by others that are too."""
    known, reached = set(own), dict[str, Json]()
    ahead: list[Any] = list(roots)
    while ahead:
        part = ahead.pop()
        if isinstance(part, dict):
            name = part.get("$ref")
            if isinstance(name, str) and name.startswith(REFERENCE_PREFIX):
                name = name.removeprefix(REFERENCE_PREFIX)
                if name not in reached and name not in known:
                    reached[name] = kubernetes.schemas()[name]
                    ahead.append(reached[name])
            ahead.extend(part.values())
        elif isinstance(part, list):
            ahead.extend(part)
    return reached


def _path_items(resource: Resource) -> Iterator[tuple[str, Json]]:
    scope = "/namespaces/{namespace}" if resource.namespaced else ""
    collection = f"{resource.base_path}{scope}/{resource.plural}"
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    definition = definition_name(resource)
    if resource.namespaced and "list" in resource.verbs:
        every = f"{resource.base_path}/{resource.plural}"
        yield every, _operations(resource, {"list": _COLLECTION["list"]}, kind, definition)
    yield collection, _operations(resource, _COLLECTION, kind, definition)
    if "get" in resource.verbs:
        one = f"{collection}/{{name}}"
        yield one, _operations(resource, _OBJECT, kind, definition)
        for name in sorted(resource.subresources & {"status", "scale"}):
            scale = name == "scale"
            of = {"group": "autoscaling", "version": "v1", "kind": "Scale"} if scale else kind
            verbs = {verb: form for verb, form in _OBJECT.items() if verb != "delete"}
            yield f"{one}/{name}", _operations(resource, verbs, of, _SCALE if scale else definition)


def _operations(resource: Resource, verbs: dict[str, tuple[str, tuple[str, ...]]], kind: Json, definition: str) -> Json:
    reference = {"schema": {"$ref": REFERENCE_PREFIX + definition}}
    found: Json = {}
    for verb, (method, parameters) in verbs.items():
        if verb not in resource.verbs:
            continue
        answered = {"list": f"{definition}List", "delete": _META + "Status", "deletecollection": _META + "Status"}
        content = {"application/json": {"schema": {"$ref": REFERENCE_PREFIX + answered.get(verb, definition)}}}
        found[method] = {
            "parameters": [
                {"name": name, "in": "query", "schema": {"type": "boolean" if name == "force" else "string"}}
                for name in parameters
            ],
            "responses": {"200": {"description": "OK", "content": content}},
            "x-kubernetes-action": verb,
            "x-kubernetes-group-version-kind": kind,
        }
        if method in ("post", "put"):
            found[method]["requestBody"] = {"content": {"*/*": reference}, "required": True}
        elif method == "patch":
            types = _MERGE_TYPES if resource.custom else (*_MERGE_TYPES, _STRATEGIC)
            patch = {"schema": {"$ref": f"{REFERENCE_PREFIX}{_META}Patch"}}
            found[method]["requestBody"] = {"content": dict.fromkeys(types, patch), "required": True}
    return found
