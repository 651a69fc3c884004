"""Resources that a CustomResourceDefinition defines, one for each served version, and what is wrong with one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from kube_simulator.errors import Cause, not_implemented
from kube_simulator.resources import Column, Resource, ScalePaths
from kube_simulator.schema import causes, kubernetes, validation_rules
from kube_simulator.schema.expressions import CompileError
from kube_simulator.schema.node import REFERENCE_PREFIX, Node
from kube_simulator.schema.validation import compiled_pattern
from kube_simulator.values import Json

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
    return kubernetes.definitions().node(_completed(schema, root=True))


def problems_of(crd: Json, old: Json | None = None) -> list[Cause]:
    """List what is refused of a CRD that `defaulted` has filled; `old` is what it replaces.

    Raises:
        ApiError: 501 for what Kubernetes may take and the simulator cannot do.
    """
    spec = crd.get("spec") or {}
    found = list(_problems(crd, spec, None if old is None else old["spec"]))
    if not found:
        if spec["conversion"]["strategy"] == "Webhook":
            raise not_implemented(f"the conversion of {crd['metadata']['name']} by a webhook")
        for version in spec["versions"]:
            _refuse_the_unknown(version["schema"]["openAPIV3Schema"], f"version {version['name']}")
    return found


def _problems(crd: Json, spec: Json, old: Json | None) -> Iterator[Cause]:
    names = spec.get("names") or {}
    required = {"group": spec.get("group"), "names.plural": names.get("plural"), "names.kind": names.get("kind")}
    yield from (causes.required(f"spec.{path}") for path, value in required.items() if not value)
    name, desired = (crd.get("metadata") or {}).get("name"), f"{names.get('plural')}.{spec.get('group')}"
    if name != desired:
        yield causes.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    versions: list[Json] = spec.get("versions") or []
    for index, version in enumerate(versions):
        at = f"spec.versions[{index}].schema.openAPIV3Schema"
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            yield causes.required(at)
        elif schema.get("type") != "object":
            yield causes.invalid(f"{at}.type", schema.get("type") or "", "must be object at the root")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield causes.invalid("spec.versions", None, "must have exactly one version marked as storage version")
    if old is not None:  # objects are stored by what may not change
        pairs: list[tuple[str, Any, Any]] = [(key, spec.get(key), old[key]) for key in ("scope", "group")]
        pairs += [(f"names.{key}", names.get(key), old["names"][key]) for key in ("kind", "plural")]
        yield from (causes.invalid(f"spec.{at}", new, causes.IMMUTABLE) for at, new, before in pairs if new != before)


def _refuse_the_unknown(schema: Json, path: str) -> None:
    """501 for patterns and rules that the simulator cannot check."""
    try:
        if pattern := schema.get("pattern"):
            compiled_pattern(pattern)
    except re.error as error:
        raise not_implemented(f"the pattern at {path}: {error}") from error
    for rule in schema.get("x-kubernetes-validations") or ():
        if "optionalOldSelf" in rule:
            raise not_implemented(f"a rule with optionalOldSelf at {path}")
        try:
            validation_rules.expression_of(rule["rule"])
        except CompileError as error:
            raise not_implemented(f"the rule {json.dumps(rule['rule'])} at {path}: {error}") from error
    children = [*(schema.get("properties") or {}).items()]
    children += [(key, schema[key]) for key in ("items", "additionalProperties", "not") if key in schema]
    children += [(key, each) for key in ("allOf", "anyOf", "oneOf") for each in schema.get(key) or ()]
    for name, child in children:
        if isinstance(child, dict):
            _refuse_the_unknown(child, f"{path}.{name}")


def _resource(spec: Json, version: Json) -> Resource:
    names, subresources = spec["names"], version.get("subresources") or {}
    columns = version.get("additionalPrinterColumns") or [_AGE_COLUMN]
    scale = subresources.get("scale")
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
        scale=scale
        and ScalePaths(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or ""),
        custom=True,
        list_kind=names["listKind"],
    )


def _column(column: Json) -> Column:
    defaults = {"format": "", "description": "", "priority": 0}
    given = {key: value for key, value in column.items() if key != "jsonPath" and value is not None}
    return Column({**defaults, **given}, column["jsonPath"])


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
        texts = {name: {"type": "string"} | properties.get(name, {}) for name in ("apiVersion", "kind")}
        new["properties"] = {**properties, **texts, "metadata": _metadata(properties.get("metadata", {}))}
    return new


def _metadata(schema: Json) -> Json:
    """ObjectMeta, with what the schema says besides of its fields, the name above all."""
    reference = {"$ref": REFERENCE_PREFIX + _OBJECT_META}
    if not schema.get("properties"):
        return reference
    own = kubernetes.schemas()[_OBJECT_META]["properties"]
    restricted = {name: {**own.get(name, {}), **rules} for name, rules in schema["properties"].items()}
    return {"allOf": [reference], "properties": {**own, **restricted}}
