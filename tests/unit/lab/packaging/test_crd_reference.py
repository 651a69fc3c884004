"""A CRD as Markdown."""

from __future__ import annotations

from typing import Any

import pytest

from lab.packaging.crd_reference import FieldOfKind, crd_reference, fields

STRING = {"type": "string"}
KEPT = {"x-kubernetes-preserve-unknown-fields": True}


def crd(**properties: Any) -> dict[str, object]:
    names = {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing", "shortNames": ["tg"]}
    version = {
        "name": "v1",
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n"}},
        "additionalPrinterColumns": [
            {"name": "Size", "jsonPath": ".spec.n", "description": "How many.", "priority": 1}
        ],
    }
    spec = {"group": "things.example.com", "scope": "Namespaced", "names": names | {"categories": ["all"]}}
    return {"spec": spec | {"versions": [version]}}


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer", "format": "int32"}, "integer (int32)"),
        ({"type": "array", "items": {"type": "object"}}, "list of objects"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "map of strings"),
        ({"type": "array", "items": {"type": "object", "additionalProperties": STRING}}, "list of maps of strings"),
        ({"type": "object", "additionalProperties": {"type": "array", "items": STRING}}, "map of lists of strings"),
        ({"x-kubernetes-int-or-string": True}, "integer or string"),
        ({"type": "array", "items": {"x-kubernetes-int-or-string": True}}, "list of integers or strings"),
        (KEPT, "anything"),
        ({"type": "array", "items": KEPT}, "list of values of any type"),
    ],
)
def test_a_type_is_said_in_words(schema: dict[str, Any], type_: str) -> None:
    assert FieldOfKind("x", schema).type == type_


@pytest.mark.parametrize(
    ("schema", "rules"),
    [
        ({"type": "string"}, []),
        ({"type": "integer", "minimum": 0, "maximum": 9}, ["0 to 9"]),
        ({"type": "integer", "minimum": 1}, ["at least 1"]),
        ({"type": "integer", "maximum": 9}, ["at most 9"]),
        ({"type": "integer", "minimum": 0, "format": "int32"}, ["0 to 2147483647"]),
        ({"type": "integer", "format": "int32"}, []),
        ({"type": "string", "minLength": 1, "maxLength": 520}, ["1 to 520 characters"]),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 3}, ["at most 3 entries"]),
        (
            {"x-kubernetes-int-or-string": True, "minimum": 0, "maximum": 9, "pattern": "^a$"},
            ["an integer: 0 to 9", "a string: matches `^a$`"],
        ),
        ({"type": "object", **KEPT}, ["fields of any name are kept"]),
        ({"type": "array", "items": {"type": "object", **KEPT}}, ["in its entries, fields of any name are kept"]),
        (KEPT, []),
        ({"type": "string", "pattern": "^a|b$"}, ["matches `^a|b$`"]),
        ({"type": "string", "enum": ["a", "b"], "nullable": True}, ["one of `a`, `b`", "may be `null`"]),
        (
            {"type": "array", "items": {}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
            ["one entry for each `type`"],
        ),
        (
            {"type": "object", "x-kubernetes-validations": [{"rule": "self.a < 1", "message": "too large"}]},
            ["`self.a < 1` (too large)"],
        ),
    ],
)
def test_each_rule_of_a_schema_is_told(schema: dict[str, Any], rules: list[str]) -> None:
    assert list(FieldOfKind("x", schema).rules()) == rules
    assert list(FieldOfKind("x", schema, required=True).rules()) == ["required", *rules]


def test_fields_inside_objects_lists_and_maps_are_found_in_their_order() -> None:
    item = {"type": "object", "required": ["b"], "properties": {"b": STRING, "c": KEPT}}
    spec = {"type": "object", "properties": {"list": {"type": "array", "items": item}, "n": {"type": "integer"}}}
    ports = {"type": "object", "additionalProperties": item}
    found = fields(crd(kind=STRING, spec=spec, ports=ports))
    inside = ["spec", "spec.list", "spec.list[].b", "spec.list[].c", "spec.n"]
    assert [field.path for field in found] == [*inside, "ports", "ports[].b", "ports[].c"]
    assert [field.path for field in found if field.required] == ["spec.list[].b", "ports[].b"]


def test_the_page_has_a_part_for_each_field_that_is_described() -> None:
    number = {"type": "integer", "default": 1, "description": "How many."}
    spec = {"type": "object", "properties": {"n": number, "silent": STRING, "told": STRING}}
    page = crd_reference(crd(spec=spec), descriptions={"spec.told": "By the caller."})
    assert "| [`spec.n`](#specn) | integer | `1` |" in page
    assert "### `spec.n`\n\nHow many.\n\n- Type: integer\n- Default: `1`\n" in page
    assert "### `spec.told`\n\nBy the caller.\n" in page
    assert "silent" not in page


def test_the_page_tells_names_columns_and_subresources() -> None:
    page = crd_reference(crd(), descriptions={})
    assert "- `apiVersion`: `things.example.com/v1`\n" in page
    assert "`things`, `thing`, `tg`" in page
    assert "| SIZE (`-o wide`) | `.spec.n` | How many. |" in page
    assert "- `/scale`: specReplicasPath `.spec.n`\n- `/status`\n" in page
