"""Problems of a CustomResourceDefinition, as far as the simulator could not serve its objects otherwise.

Differs from Kubernetes: the rest is taken as it stands: labels, columns, whether a schema is structural, whether its
defaults fit it. What the simulator cannot do is answered with 501: a conversion by webhook, and formats, patterns and
rules that it cannot read, whether or not they are good.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from kube_simulator.errors import Cause, not_implemented
from kube_simulator.schema import formats, patterns, schema_causes, validation_rules
from kube_simulator.values import Json

_SCOPES: Final = ("Cluster", "Namespaced")
_JUNCTORS: Final = ("allOf", "anyOf", "oneOf")


def problems_of(crd: Json, old: Json | None = None) -> list[Cause]:
    """List what is refused of a CRD that `custom.defaulted` has filled; `old` is what it replaces.

    Raises:
        ApiError: 501 for what Kubernetes may take and the simulator cannot do.
    """
    spec = crd.get("spec") or {}
    found = [*_spec_problems(crd, spec), *_stored_problems(crd, spec)]
    if old is not None:
        found += _changed(spec, old["spec"], established=_is_established(old))
    if not found:
        if spec["conversion"]["strategy"] == "Webhook":
            raise not_implemented(f"the conversion of {crd['metadata']['name']} by a webhook")
        for version in spec["versions"]:
            _refuse_the_unknown(version["schema"]["openAPIV3Schema"], f"version {version['name']}")
    return found


def _spec_problems(crd: Json, spec: Json) -> Iterator[Cause]:
    names = spec.get("names") or {}
    required = {"group": spec.get("group"), "names.plural": names.get("plural"), "names.kind": names.get("kind")}
    yield from (schema_causes.required(f"spec.{path}") for path, value in required.items() if not value)
    name, desired = (crd.get("metadata") or {}).get("name"), f"{names.get('plural')}.{spec.get('group')}"
    if name != desired:
        yield schema_causes.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if spec.get("scope") not in _SCOPES:
        yield schema_causes.not_supported("spec.scope", spec.get("scope") or "", _SCOPES)
    versions: list[Json] = spec.get("versions") or []
    for index, version in enumerate(versions):
        at = f"spec.versions[{index}].schema.openAPIV3Schema"
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            yield schema_causes.required(at)
        elif schema.get("type") != "object":
            yield schema_causes.invalid(f"{at}.type", schema.get("type") or "", "must be object at the root")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        yield schema_causes.invalid("spec.versions", versions or None, why)


def _changed(spec: Json, old: Json, *, established: bool) -> Iterator[Cause]:
    """Yield what may not change: the group and the plural never, the scope and the kind once objects may be stored."""
    names, old_names = spec.get("names") or {}, old["names"]
    pairs: list[tuple[str, Any, Any]] = []
    if established:
        pairs += [("scope", spec.get("scope"), old["scope"]), ("names.kind", names.get("kind"), old_names["kind"])]
    pairs += [("group", spec.get("group"), old["group"]), ("names.plural", names.get("plural"), old_names["plural"])]
    for path, new, before in pairs:
        if new != before:
            yield schema_causes.invalid(f"spec.{path}", new, "field is immutable")


def _stored_problems(crd: Json, spec: Json) -> Iterator[Cause]:
    """Versions in which objects may be stored."""
    stored: list[str] = (crd.get("status") or {}).get("storedVersions") or []
    names = [version.get("name") for version in spec.get("versions") or ()]
    for index, name in enumerate(stored):
        if name not in names:
            yield schema_causes.invalid(f"status.storedVersions[{index}]", name, "missing from spec.versions")


def _is_established(crd: Json) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _refuse_the_unknown(schema: Json, path: str) -> None:
    """501 for formats, patterns and rules that the simulator cannot check."""
    if schema.get("type", "string") == "string" and (schema.get("format") or "").replace("-", "") in formats.UNCHECKED:
        raise not_implemented(f"the format {schema['format']} at {path}")
    if pattern := schema.get("pattern"):
        try:
            patterns.compiled(pattern)
        except patterns.UnknownPattern as error:
            raise not_implemented(f"the pattern at {path}: {error}") from error
    for rule in schema.get("x-kubernetes-validations") or ():
        for text in filter(None, (rule.get("rule"), rule.get("messageExpression"))):
            try:
                validation_rules.expression_of(text)
            except validation_rules.CompileError as error:
                raise not_implemented(f"the rule {json.dumps(text)} at {path}: {error}") from error
    for name, child in _children(schema):
        _refuse_the_unknown(child, f"{path}.{name}")


def _children(schema: Json) -> Iterator[tuple[str, Json]]:
    yield from (schema.get("properties") or {}).items()
    for key in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(key), dict):
            yield key, schema[key]
    for key in _JUNCTORS:
        yield from ((key, each) for each in schema.get(key) or ())
