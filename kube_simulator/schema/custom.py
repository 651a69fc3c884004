"""Resources that a CustomResourceDefinition defines, one for each version that is served.

Differs from Kubernetes: a conversion by webhook is refused; the versions of a kind have the same objects, as under the
conversion strategy None.
"""

from __future__ import annotations

from typing import Any, Final

from kube_simulator.resources import Column, Resource, ScalePaths
from kube_simulator.schema import kubernetes
from kube_simulator.schema.definition_validation import problems_of
from kube_simulator.schema.node import REFERENCE_PREFIX, Node
from kube_simulator.values import Json

__all__ = ["defaulted", "node_of", "problems_of", "resources_of", "storage_version"]

_OBJECT_META: Final = kubernetes.META + "ObjectMeta"
_NAME_COLUMN: Final = {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}
_AGE_COLUMN: Final = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def resources_of(crd: Json) -> list[Resource]:
    """The resources of a CRD that `problems_of` finds nothing wrong with and `defaulted` has filled."""
    return [_resource(crd["spec"], version) for version in crd["spec"]["versions"] if version["served"]]


def storage_version(crd: Json) -> str:
    """The version in which the objects are stored, served or not."""
    return next(str(version["name"]) for version in crd["spec"]["versions"] if version["storage"])


def defaulted(crd: Json) -> Json:
    """The CRD with what Kubernetes fills in: singular, listKind, the conversion strategy, the first stored version."""
    spec = crd.get("spec") or {}
    names = spec.get("names") or {}
    kind = names.get("kind") or ""
    singular = names.get("singular") or kind.lower()
    list_kind = names.get("listKind") or (f"{kind}List" if kind else "")
    named = {**names, **({"singular": singular} if singular else {}), **({"listKind": list_kind} if list_kind else {})}
    new = {**crd, "spec": {**spec, "names": named, "conversion": spec.get("conversion") or {"strategy": "None"}}}
    status = crd.get("status") or {}
    stored = [each["name"] for each in spec.get("versions") or () if each.get("storage") and each.get("name")]
    if stored and not status.get("storedVersions"):
        new["status"] = {**status, "storedVersions": stored[:1]}
    return new


def node_of(schema: Json) -> Node:
    """The node of a custom resource by the schema of one of its versions: with Kubernetes' own metadata."""
    return kubernetes.nodes().node(_completed(schema, root=True))


def _resource(spec: Json, version: Json) -> Resource:
    names = spec["names"]
    subresources = version.get("subresources") or {}
    columns = version.get("additionalPrinterColumns") or [_AGE_COLUMN]
    return Resource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        singular=names["singular"],
        namespaced=spec["scope"] == "Namespaced",
        schema=node_of(version["schema"]["openAPIV3Schema"]),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        columns=(Column(_NAME_COLUMN), *map(_column, columns)),
        subresources=frozenset(name for name in ("status", "scale") if subresources.get(name) is not None),
        scale=_scale(subresources.get("scale")),
        custom=True,
        list_kind=names["listKind"],
    )


def _column(column: Json) -> Column:
    path = column["jsonPath"]
    definition = {
        "name": column["name"],
        "type": column["type"],
        "format": column.get("format", ""),
        "description": column.get("description") or "",
        "priority": column.get("priority", 0),
    }
    return Column(definition, path)


def _scale(scale: Json | None) -> ScalePaths | None:
    if scale is None:
        return None
    return ScalePaths(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or "")


def _completed(schema: Json, *, root: bool = False) -> Json:
    """Add Kubernetes' own fields wherever the schema stands for a whole object, the root included."""
    new: dict[str, Any] = dict(schema)
    if "properties" in schema:
        new["properties"] = {name: _completed(each) for name, each in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            new[key] = _completed(schema[key])
    if root or schema.get("x-kubernetes-embedded-resource") is True:
        properties = new.get("properties", {})
        new["x-kubernetes-embedded-resource"] = True
        text = {"type": "string"}
        new["properties"] = {
            **properties,
            "apiVersion": text | properties.get("apiVersion", {}),
            "kind": text | properties.get("kind", {}),
            "metadata": _metadata(properties.get("metadata", {})),
        }
    return new


def _metadata(schema: Json) -> Json:
    """ObjectMeta, with what the schema says besides of its fields, the name above all."""
    reference = {"$ref": REFERENCE_PREFIX + _OBJECT_META}
    if not schema.get("properties"):
        return reference
    own = kubernetes.schemas()[_OBJECT_META]["properties"]
    restricted = {name: {**own.get(name, {}), **rules} for name, rules in schema["properties"].items()}
    return {"allOf": [reference], "properties": {**own, **restricted}}
