"""Problems of a CustomResourceDefinition, as far as the simulator could not serve its objects otherwise.

Differs from Kubernetes: the rest is taken as it stands: labels, columns, whether a schema is structural, whether its
defaults fit it. What the simulator cannot do is answered with 501: a conversion by webhook, and patterns and rules that
it cannot read, whether or not they are good.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from kube_simulator.errors import Cause, not_implemented
from kube_simulator.schema import causes, patterns, validation_rules
from kube_simulator.schema.expressions import CompileError
from kube_simulator.values import Json

_SCOPES: Final = ("Cluster", "Namespaced")


def problems_of(crd: Json, old: Json | None = None) -> list[Cause]:
    """List what is refused of a CRD that `custom.defaulted` has filled; `old` is what it replaces.

    Raises:
        ApiError: 501 for what Kubernetes may take and the simulator cannot do.
    """
    spec = crd.get("spec") or {}
    found = list(_spec_problems(crd, spec))
    if old is not None:
        found += _changed(spec, old["spec"])
    if not found:
        if spec["conversion"]["strategy"] == "Webhook":
            raise not_implemented(f"the conversion of {crd['metadata']['name']} by a webhook")
        for version in spec["versions"]:
            _refuse_the_unknown(version["schema"]["openAPIV3Schema"], f"version {version['name']}")
    return found


def _spec_problems(crd: Json, spec: Json) -> Iterator[Cause]:
    names = spec.get("names") or {}
    required = {"group": spec.get("group"), "names.plural": names.get("plural"), "names.kind": names.get("kind")}
    yield from (causes.required(f"spec.{path}") for path, value in required.items() if not value)
    name, desired = (crd.get("metadata") or {}).get("name"), f"{names.get('plural')}.{spec.get('group')}"
    if name != desired:
        yield causes.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if spec.get("scope") not in _SCOPES:
        yield causes.not_supported("spec.scope", spec.get("scope") or "", _SCOPES)
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
    for index, stored in enumerate((crd.get("status") or {}).get("storedVersions") or ()):
        if stored not in [version.get("name") for version in versions]:
            yield causes.invalid(f"status.storedVersions[{index}]", stored, "missing from spec.versions")


def _changed(spec: Json, old: Json) -> Iterator[Cause]:
    """Yield what may not change: objects are stored by it."""
    names, old_names = spec.get("names") or {}, old["names"]
    pairs: list[tuple[str, Any, Any]] = [(key, spec.get(key), old[key]) for key in ("scope", "group")]
    pairs += [(f"names.{key}", names.get(key), old_names[key]) for key in ("kind", "plural")]
    yield from (causes.invalid(f"spec.{path}", new, causes.IMMUTABLE) for path, new, before in pairs if new != before)


def _refuse_the_unknown(schema: Json, path: str) -> None:
    """501 for patterns and rules that the simulator cannot check."""
    if pattern := schema.get("pattern"):
        try:
            patterns.compiled(pattern)
        except patterns.UnknownPattern as error:
            raise not_implemented(f"the pattern at {path}: {error}") from error
    for rule in schema.get("x-kubernetes-validations") or ():
        for text in filter(None, (rule.get("rule"), rule.get("messageExpression"))):
            try:
                validation_rules.expression_of(text)
            except CompileError as error:
                raise not_implemented(f"the rule {json.dumps(text)} at {path}: {error}") from error
    for name, child in _children(schema):
        _refuse_the_unknown(child, f"{path}.{name}")


def _children(schema: Json) -> Iterator[tuple[str, Json]]:
    yield from (schema.get("properties") or {}).items()
    for key in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(key), dict):
            yield key, schema[key]
    for key in ("allOf", "anyOf", "oneOf"):
        yield from ((key, each) for each in schema.get(key) or ())
