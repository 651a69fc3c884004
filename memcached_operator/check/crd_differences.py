"""Comparison of a cluster's CustomResourceDefinition of Memcached with this release's; the differences, in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

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
# Steps of a path that say nothing to people.
_UNSAID: Final = re.compile(r"\.(schema|openAPIV3Schema|properties)(?=\.)")
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
    spec, own = ({**_DEFAULTS, **(each.get("spec") or {})} for each in (live, expected))
    if found := tuple(value_differences(spec, own, "spec")):
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


def value_differences(live: object, expected: object, path: str) -> Iterator[str]:
    """Yield the differences between two values as JSON has them, a sentence each; `path` is where both stand."""
    if isinstance(live, dict) and isinstance(expected, dict):
        if _EITHER.items() <= live.items():
            live = {keyword: value for keyword, value in live.items() if keyword != "anyOf"}
        for key in sorted(live.keys() | expected.keys()):
            yield from value_differences(live.get(key), expected.get(key), f"{path}.{key}".removeprefix("."))
        return
    if (live_items := _by_name(live)) and (expected_items := _by_name(expected)):
        yield from value_differences(live_items, expected_items, path)
        if live_items.keys() == expected_items.keys() and list(live_items) != list(expected_items):
            yield f"{path}: the order is {', '.join(live_items)}, this release's is {', '.join(expected_items)}"
        return
    if live == expected and isinstance(live, bool) == isinstance(expected, bool):
        return
    what = _UNSAID.sub("", path)
    if live is None:
        yield f"{what} is missing, this release has {_shown(expected)}"
    elif expected is None:
        yield f"{what} is {_shown(live)}, this release has none"
    else:
        yield f"{what} is {_shown(live)}, this release's is {_shown(expected)}"


def published_differences(document: Json, expected: Json) -> Iterator[str] | None:
    """The same by the OpenAPI document of the group, which every client may read: of spec and status alone.

    None if the document does not have the kind.
    """
    schemas: Json = (document.get("components") or {}).get("schemas") or {}
    group, _, version = API_VERSION.partition("/")
    kind = {"group": group, "version": version, "kind": expected["spec"]["names"]["kind"]}
    for schema in schemas.values():
        if kind in (schema.get("x-kubernetes-group-version-kind") or ()):
            desired = _by_name(expected["spec"]["versions"])[VERSION]["schema"]["openAPIV3Schema"]
            live, own = (
                {part: each["properties"].get(part) for part in ("spec", "status")}
                for each in ({"properties": {}, **schema}, desired)
            )
            return value_differences(live, own, "")
    return None


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}…"


def _by_name(items: object) -> dict[str, Any]:
    """The items of a list by their names; nothing where they have none."""
    named = isinstance(items, list) and all(isinstance(each, dict) and "name" in each for each in items)
    return {each["name"]: each for each in cast("Sequence[Json]", items)} if named else {}
