"""Comparison of a cluster's CustomResourceDefinition of Memcached with this release's; the differences, in words."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from memcached_operator.api import names
from memcached_operator.api.names import API_VERSION, VERSION
from memcached_operator.check.findings import Finding, Verdict
from memcached_operator.check.installing import definition_command

Json = Mapping[str, Any]

NAME: Final = f"{names.PLURAL}.{names.GROUP}"

# Longer values are cut in messages.
_SHOWN_LENGTH = 80
# Defaults that the API server fills in.
_DEFAULTS: Final[Json] = {"conversion": {"strategy": "None"}, "preserveUnknownFields": False}
# The parts of a schema that hold other schemas under names, or are for people alone.
_WALKED: Final = frozenset({"properties", "description"})
# What the API server also publishes of a field that it takes as either, which is the same again.
_EITHER: Final[Json] = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}


def absent(watched: tuple[str, ...]) -> Finding:
    """Report that the cluster has no such definition; `watched` are the operator's namespaces, () for all."""
    return Finding("crd", Verdict.MISSING, f"{NAME} is not installed", definition_command(watched, force=False))


def judge_definition(live: Json, expected: Json, watched: tuple[str, ...]) -> Finding:
    """Compare the definition that the cluster has with this release's.

    Args:
        live: the object as the API server gives it.
        expected: the body that this release would apply.
    """
    if (live.get("metadata") or {}).get("deletionTimestamp"):
        return Finding(
            "crd",
            Verdict.WRONG,
            f"{NAME} is being deleted, and every Memcached with it",
            f"wait until it is gone; then {definition_command(watched, force=False)}",
        )
    conditions = {each["type"]: each for each in (live.get("status") or {}).get("conditions") or ()}
    for needed in ("NamesAccepted", "Established"):
        condition = conditions.get(needed) or {}
        if condition.get("status") != "True":
            why = condition.get("message") or condition.get("reason") or "no reason is reported yet"
            remedy = f"kubectl describe crd {NAME}; another definition may use the same names"
            return Finding("crd", Verdict.WRONG, f"{NAME} is not served ({needed}): {why}", remedy)
    found = tuple(crd_differences(live.get("spec") or {}, expected["spec"]))
    if found:
        return differing_fields(found, watched)
    return Finding("crd", Verdict.OK, f"{NAME} is established and equal to this release's")


def differing_fields(found: tuple[str, ...], watched: tuple[str, ...]) -> Finding:
    """Report that the definition is served, and differs in these points."""
    return Finding(
        "crd",
        Verdict.WRONG,
        f"{NAME} is established, but differs from this release's",
        f"{definition_command(watched, force=True)} (unless a newer release of the operator put it there)",
        details=found,
    )


def crd_differences(live: Json, expected: Json) -> Iterator[str]:
    """Yield the differences between two definitions' `spec`, a sentence each."""
    special = {"names", "versions"}
    for key in sorted((live.keys() | expected.keys()) - special):
        yield from _compared(key, live.get(key, _DEFAULTS.get(key)), expected.get(key, _DEFAULTS.get(key)))
    live_names, expected_names = live.get("names") or {}, expected["names"]
    yield from _all_compared("names.", live_names, expected_names)
    live_versions = _by_name(live.get("versions") or ())
    for name, desired in _by_name(expected["versions"]).items():
        if name not in live_versions:
            yield f"version {name} is missing"
        else:
            yield from _version_differences(live_versions[name], desired)
    for name in sorted(live_versions.keys() - _by_name(expected["versions"]).keys()):
        yield f"version {name} is unknown to this release"


def schema_differences(live: Json, expected: Json, path: str = "") -> Iterator[str]:
    """Yield the differences between two schemas, named by the field that they concern; `path` is where both stand."""
    if _EITHER.items() <= live.items():
        live = {keyword: value for keyword, value in live.items() if keyword != "anyOf"}
    place = path or "a Memcached"
    of_each = [
        (name, end)
        for name, end in (("items", "[]"), ("additionalProperties", "[*]"))
        if isinstance(live.get(name), dict) and isinstance(expected.get(name), dict)
    ]
    yield from _all_compared(f"{place}: ", live, expected, _WALKED | {name for name, _ in of_each})
    if live.get("description") != expected.get("description"):
        yield f"{place}: the description differs"
    live_fields, expected_fields = live.get("properties") or {}, expected.get("properties") or {}
    for name in sorted(live_fields.keys() | expected_fields.keys()):
        inner = f"{path}.{name}" if path else name
        if name not in live_fields:
            yield f"{inner} is missing"
        elif name not in expected_fields:
            yield f"{inner} is unknown to this release"
        else:
            yield from schema_differences(live_fields[name], expected_fields[name], inner)
    for name, end in of_each:
        yield from schema_differences(live[name], expected[name], path + end)


def published_differences(document: Json, expected: Json) -> Iterator[str] | None:
    """The same by the OpenAPI document of the group, which every client may read: of spec and status alone.

    None if the document does not have the kind.
    """
    schemas: Json = (document.get("components") or {}).get("schemas") or {}
    group, _, version = API_VERSION.partition("/")
    desired = {"group": group, "version": version, "kind": expected["spec"]["names"]["kind"]}
    for schema in schemas.values():
        if desired in (schema.get("x-kubernetes-group-version-kind") or ()):
            return _fields_differ(schema.get("properties") or {}, _by_name(expected["spec"]["versions"])[VERSION])
    return None


def _fields_differ(published: Json, expected: Json) -> Iterator[str]:
    desired = expected["schema"]["openAPIV3Schema"]["properties"]
    for field in ("spec", "status"):
        yield from schema_differences(published.get(field) or {}, desired[field], field)


def _version_differences(live: Json, expected: Json) -> Iterator[str]:
    name = expected["name"]
    special = {"name", "schema", "additionalPrinterColumns", "subresources"}
    yield from _all_compared(f"version {name}: ", live, expected, special)
    live_subresources, expected_subresources = live.get("subresources") or {}, expected.get("subresources") or {}
    yield from _all_compared("subresource ", live_subresources, expected_subresources)
    yield from _column_differences(
        live.get("additionalPrinterColumns") or (), expected.get("additionalPrinterColumns") or ()
    )
    live_schema = (live.get("schema") or {}).get("openAPIV3Schema") or {}
    yield from schema_differences(live_schema, expected["schema"]["openAPIV3Schema"])


def _column_differences(live: Sequence[Json], expected: Sequence[Json]) -> Iterator[str]:
    live_columns, expected_columns = _by_name(live), _by_name(expected)
    for name, desired in expected_columns.items():
        if name not in live_columns:
            yield f"column {name} is missing"
        else:
            yield from _all_compared(f"column {name}: ", live_columns[name], desired)
    for name in live_columns.keys() - expected_columns.keys():
        yield f"column {name} is unknown to this release"
    if live_columns.keys() == expected_columns.keys() and list(live_columns) != list(expected_columns):
        yield f"columns: their order is {', '.join(live_columns)}, this release's is {', '.join(expected_columns)}"


def _all_compared(prefix: str, live: Json, expected: Json, without: Collection[str] = ()) -> Iterator[str]:
    for key in sorted((live.keys() | expected.keys()) - set(without)):
        yield from _compared(f"{prefix}{key}", live.get(key), expected.get(key))


def _compared(what: str, live: object, expected: object) -> Iterator[str]:
    if live == expected and isinstance(live, bool) == isinstance(expected, bool):
        return
    if live is None:
        yield f"{what} is missing, this release has {_shown(expected)}"
    elif expected is None:
        yield f"{what} is {_shown(live)}, this release has none"
    else:
        yield f"{what} is {_shown(live)}, this release's is {_shown(expected)}"


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}…"


def _by_name(items: Sequence[Json]) -> dict[str, Json]:
    return {each["name"]: each for each in items}
