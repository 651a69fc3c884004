"""What is wrong with a CustomResourceDefinition, in the words of Kubernetes: its names, versions and columns.

The schemas in it are `schemas`' affair.

Differs from Kubernetes: values are shown as they were sent, where Kubernetes shows its own form of them; conversion by
webhook is answered with 501.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from kube_simulator.errors import Cause, not_implemented
from kube_simulator.schema import causes
from kube_simulator.schema.node import Node, of_schema
from kube_simulator.schema.schemas import schema_problems
from kube_simulator.values import Json

_LABEL: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_WORDS: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    f"and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '{_LABEL}')"
)
_SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SUBDOMAIN_WORDS: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_LIMIT: Final = 8  # Kubernetes' MaxSelectableFields
_APPROVAL: Final = "api-approved.kubernetes.io"
_PROTECTED: Final = (".k8s.io", ".kubernetes.io")


def problems_of(crd: Json, old: Json | None = None) -> list[Cause]:
    """What Kubernetes refuses in a CRD that `custom.defaulted` has filled; `old` is what it replaces.

    Raises:
        ApiError: 501 for what Kubernetes takes and the simulator cannot do: a conversion by webhook, a format or a rule
            that it does not have.
    """
    spec = crd.get("spec") or {}
    found = [*_name_problems(crd, spec), *_spec_problems(spec)]
    if old is not None:
        found += _changed(spec, old["spec"], established=_is_established(old))
    found += _stored_problems(crd, spec)
    found += _approval_problems(crd, spec)
    if not found and spec["conversion"]["strategy"] == "Webhook":
        raise not_implemented(f"the conversion of {crd['metadata']['name']} by a webhook")
    return found


def _name_problems(crd: Json, spec: Json) -> Iterator[Cause]:
    name = (crd.get("metadata") or {}).get("name") or ""
    wanted = f"{(spec.get('names') or {}).get('plural') or ''}.{spec.get('group') or ''}"
    if name and name != wanted:
        yield causes.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _spec_problems(spec: Json) -> Iterator[Cause]:
    group = spec.get("group") or ""
    if not group:
        yield causes.required("spec.group")
    elif not re.fullmatch(_SUBDOMAIN, group):
        yield causes.invalid("spec.group", group, _SUBDOMAIN_WORDS)
    elif "." not in group:
        yield causes.invalid("spec.group", group, "should be a domain with at least one dot")
    scopes = ("Cluster", "Namespaced")
    if not spec.get("scope"):
        yield causes.required("spec.scope")
    elif spec["scope"] not in scopes:
        yield causes.not_supported("spec.scope", spec["scope"], scopes)
    if spec.get("preserveUnknownFields"):
        why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        yield causes.invalid("spec.preserveUnknownFields", True, why)
    yield from _versions_problems(spec)
    yield from _names_problems(spec.get("names") or {})
    yield from _conversion_problems(spec.get("conversion") or {})


def _versions_problems(spec: Json) -> Iterator[Cause]:
    versions: list[Json] = spec.get("versions") or []
    shown = versions if "versions" in spec else None
    for index, version in enumerate(versions):
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            yield causes.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    for index, version in enumerate(versions):
        at = f"spec.versions[{index}]"
        name = version.get("name") or ""
        if problem := _label_problem(f"{at}.name", name, required=False):
            yield problem
            if index == 0 and name:  # Kubernetes still has a field for the version of the times when there was one
                yield replace(problem, field="spec.version")
        warning = version.get("deprecationWarning")
        if warning is not None and not version.get("deprecated"):
            yield causes.invalid(f"{at}.deprecationWarning", warning, "can only be set for deprecated versions")
    yield from _parts_problems(versions)
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        yield causes.invalid("spec.versions", versions, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        yield causes.invalid("spec.versions", shown, why)


def _parts_problems(versions: list[Json]) -> Iterator[Cause]:
    """Of schemas, subresources, columns, selectable fields: of what all versions share Kubernetes speaks once."""
    for key, shared, problems in (
        ("schema", "validation", _schema_problems),
        ("subresources", "subresources", _subresource_problems),
        ("additionalPrinterColumns", "additionalPrinterColumns", _column_problems),
        ("selectableFields", "selectableFields", _selectable_problems),
    ):
        if versions and all(version.get(key) and version[key] == versions[0].get(key) for version in versions):
            yield from problems(versions[0], f"spec.{shared}")
        else:
            for index, version in enumerate(versions):
                if version.get(key):
                    yield from problems(version, f"spec.versions[{index}].{key}")


def _schema_problems(version: Json, path: str) -> Iterator[Cause]:
    schema = version["schema"].get("openAPIV3Schema")
    if schema is not None:
        has_status = (version.get("subresources") or {}).get("status") is not None
        yield from schema_problems(schema, f"{path}.openAPIV3Schema", has_status=has_status)


def _subresource_problems(version: Json, path: str) -> Iterator[Cause]:
    scale = version["subresources"].get("scale")
    if scale is None:
        return
    for key, roots, words in (
        ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
        ("statusReplicasPath", (".status.",), "should be a json path under .status"),
        ("labelSelectorPath", (".spec.", ".status."), "should be a json path under either .spec or .status"),
    ):
        value, at = scale.get(key) or "", f"{path}.scale.{key}"
        if not value:
            if key != "labelSelectorPath":
                yield causes.required(at)
        elif not value.startswith("."):
            yield causes.invalid(at, value, "must be a simple json path starting with .")
        elif not value.startswith(roots):
            yield causes.invalid(at, value, words)


def _column_problems(version: Json, path: str) -> Iterator[Cause]:
    for index, column in enumerate(version["additionalPrinterColumns"]):
        at = f"{path}[{index}]"
        if not column.get("name"):
            yield causes.required(f"{at}.name")
        words = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not column.get("type"):
            yield causes.required(f"{at}.type", words)
        elif column["type"] not in _COLUMN_TYPES:
            yield causes.invalid(f"{at}.type", column["type"], words)
        if column.get("format") and column["format"] not in _COLUMN_FORMATS:
            words = f"must be one of {','.join(_COLUMN_FORMATS)}"
            yield causes.invalid(f"{at}.format", column["format"], words)
        if not column.get("jsonPath"):
            yield causes.required(f"{at}.JSONPath")
        elif not column["jsonPath"].startswith("."):
            words = "must be a simple json path starting with ."
            yield causes.invalid(f"{at}.JSONPath", column["jsonPath"], words)


def _selectable_problems(version: Json, path: str) -> Iterator[Cause]:
    root = of_schema((version.get("schema") or {}).get("openAPIV3Schema") or {})
    seen: set[str] = set()
    for index, field in enumerate(version["selectableFields"]):
        at, text = f"{path}[{index}].jsonPath", field.get("jsonPath") or ""
        if not text:
            yield causes.required(at)
            continue
        node: Node | None = root
        for name in text.removeprefix(".").split("."):
            node = node.field(name) if node is not None and name else None
        if not text.startswith("."):
            got = re.split(r"[.\[]", text)[0]
            yield causes.invalid(at, text, f"is an invalid path: expected [ or . but got: {got}")
            continue
        if node is None:
            yield causes.invalid(at, text, "is an invalid path: does not refer to a valid field")
            continue
        if text.startswith(".metadata."):
            yield causes.invalid(at, text, "must not point to fields in metadata")
        if node.type not in ("string", "boolean", "integer"):
            why = "must point to a field of type string, boolean or integer. "
            yield causes.invalid(at, text, f"{why}Enum string fields and strings with formats are allowed.")
        if text in seen:
            yield causes.duplicate(at, text)
        seen.add(text)
    if len(seen) > _SELECTABLE_LIMIT:
        yield causes.too_many(path, len(seen), _SELECTABLE_LIMIT)


def _names_problems(names: Json) -> Iterator[Cause]:
    for key in ("plural", "singular", "kind", "listKind"):
        if not names.get(key):
            yield causes.required(f"spec.names.{key}")
    for key in ("plural", "singular"):
        if problem := _label_problem(f"spec.names.{key}", names.get(key) or ""):
            yield problem
    for key in ("kind", "listKind"):
        name = names.get(key) or ""
        if name and not _is_label(name.lower()):
            why = f"may have mixed case, but should otherwise match: {_LABEL_WORDS}"
            yield causes.invalid(f"spec.names.{key}", name, why)
    for index, name in enumerate(names.get("shortNames") or ()):
        if problem := _label_problem(f"spec.names.shortNames[{index}]", name, required=False):
            yield problem
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield causes.invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")
    for index, name in enumerate(names.get("categories") or ()):
        if problem := _label_problem(f"spec.names.categories[{index}]", name, required=False):
            yield problem


def _conversion_problems(conversion: Json) -> Iterator[Cause]:
    strategy, known = conversion.get("strategy") or "", ("None", "Webhook")
    if not strategy:
        yield causes.required("spec.conversion.strategy")
    elif strategy not in known:
        yield causes.not_supported("spec.conversion.strategy", strategy, known)
    if strategy != "Webhook" and conversion.get("webhook") is not None:
        why = "should not be set when strategy is not set to Webhook"
        yield causes.forbidden("spec.conversion.webhookClientConfig", why)


def _changed(spec: Json, old: Json, *, established: bool) -> Iterator[Cause]:
    """What may not change: the group and the plural never, the scope and the kind once objects may be stored."""
    names, old_names = spec.get("names") or {}, old["names"]
    pairs: list[tuple[str, Any, Any]] = []
    if established:
        pairs += [("scope", spec.get("scope"), old["scope"]), ("names.kind", names.get("kind"), old_names["kind"])]
    pairs += [("group", spec.get("group"), old["group"]), ("names.plural", names.get("plural"), old_names["plural"])]
    for path, new, before in pairs:
        if new != before:
            yield causes.invalid(f"spec.{path}", new, "field is immutable")


def _stored_problems(crd: Json, spec: Json) -> Iterator[Cause]:
    stored: list[str] = (crd.get("status") or {}).get("storedVersions") or []
    names = [version.get("name") for version in spec.get("versions") or ()]
    storing = [version.get("name") for version in spec.get("versions") or () if version.get("storage")]
    at = "status.storedVersions"
    if not stored:
        yield Cause("FieldValueInvalid", "Invalid value: null: must have at least one stored version", at)
        return
    for name in storing:
        if name not in stored:
            yield causes.invalid(at, stored, f"must have the storage version {name}")
    for index, name in enumerate(stored):
        if name not in names:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            yield causes.invalid(f"{at}[{index}]", name, why)


def _approval_problems(crd: Json, spec: Json) -> Iterator[Cause]:
    group = spec.get("group") or ""
    if not (group.endswith(_PROTECTED) or group in ("k8s.io", "kubernetes.io")):
        return
    said = ((crd.get("metadata") or {}).get("annotations") or {}).get(_APPROVAL) or ""
    at = f"metadata.annotations[{_APPROVAL}]"
    link = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not said:
        yield causes.required(at, f'protected groups must have approval annotation "{_APPROVAL}", {link}')
    elif not said.startswith(("https://", "http://", "unapproved")):
        why = f'protected groups must have approval annotation "{_APPROVAL}" with either a URL or a reason starting'
        yield causes.invalid(at, said, f'{why} with "unapproved", {link}')


def _is_established(crd: Json) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _is_label(text: str) -> bool:
    return len(text) <= 63 and re.fullmatch(_LABEL, text) is not None


def _label_problem(path: str, text: str, *, required: bool = True) -> Cause | None:
    """What is wrong with a name; nothing where there is none and that is told elsewhere."""
    if _is_label(text) or (not text and required):
        return None
    return causes.invalid(path, text, _LABEL_WORDS if len(text) <= 63 else "must be no more than 63 bytes")
