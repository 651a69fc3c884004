"""What Kubernetes' API reviewers ask of a kind, as far as it can be counted in its CustomResourceDefinition.

Source of the rules: kube-api-linter (sigs.k8s.io/kube-api-linter), which reads Go types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memcached_operator.api.crd import memcached_crd

Schema = dict[str, Any]
# Fields with two answers for ever; others are enums, so that a third can come.
BOOLEANS = {"spec.rollout.paused", "spec.warmRestart", "spec.discovery.autoDiscovery.inServers"}


def nodes(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Each field with what it holds: `[]` is an entry of a list, and `{}` a value of a map."""
    yield path, schema
    for name, each in schema.get("properties", {}).items():
        yield from nodes(each, f"{path}.{name}")
    for keyword, sign in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(keyword), dict):
            yield from nodes(schema[keyword], path + sign)


def fields() -> Iterator[tuple[str, Schema]]:
    crd: Any = memcached_crd()
    [version] = crd["spec"]["versions"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    for name in ("spec", "status"):
        yield from nodes(properties[name], name)


def is_text(schema: Schema) -> bool:
    return schema.get("type") == "string" or bool(schema.get("x-kubernetes-int-or-string"))


RULES: dict[str, Callable[[str, Schema], bool]] = {
    "a list has a bound and says how it is merged": lambda _, each: (
        each.get("type") != "array" or ("maxItems" in each and "x-kubernetes-list-type" in each)
    ),
    "a map has a bound": lambda _, each: "additionalProperties" not in each or "maxProperties" in each,
    "a text has a bound": lambda _, each: (
        not is_text(each) or bool(each.keys() & {"maxLength", "enum"}) or each.get("format") == "date-time"
    ),
    "a whole number has a format and a least": lambda _, each: (
        each.get("type") != "integer" or {"format", "minimum"} <= each.keys()
    ),
    "no number has a point": lambda _, each: each.get("type") != "number",
    "no boolean is new": lambda path, each: each.get("type") != "boolean" or path in BOOLEANS,
    "a field is described": lambda path, each: path.endswith(("[]", "{}")) or bool(each.get("description")),
    "a field's name begins small": lambda path, _: re.search(r"\.[^a-z][^.]*$", path) is None,
    "a duration says its unit": lambda path, _: re.search(r"(?i)(timeout|period|duration|interval)$", path) is None,
    "what is required has no default": lambda _, each: (
        not any("default" in each["properties"][name] for name in each.get("required", ()))
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_the_kind_keeps_to_the_conventions(rule: str) -> None:
    assert [path for path, each in fields() if not RULES[rule](path, each)] == []


def test_conditions_are_a_map_by_their_type() -> None:
    conditions = dict(fields())["status.conditions"]
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
