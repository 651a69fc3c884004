"""The document for clients that read OpenAPI v2, of which kubectl's own reader is tried in tests/conformance."""

from typing import Any

import pytest

from kube_simulator.resources import Registry
from kube_simulator.schema import custom, kubernetes, openapi_v2
from kube_simulator.schema.openapi import Documents
from kube_simulator.schema.wire_format import BYTES, VARINT, Expected, read
from tests.unit.kube_simulator.schema.schema_parts import EITHER, INTEGER, OPEN, TEXT, Json, an_object, crd

FIELDS: Json = {
    "plain": {**INTEGER, "minimum": 1, "maximum": 300, "default": 7, "description": "How many."},
    "text": {**TEXT, "enum": ["a", "b"], "pattern": "^a|b$", "maxLength": 300},
    "nullable": {**TEXT, "nullable": True},
    "either": EITHER,
    "list": {"type": "array", "items": {**TEXT, "oneOf": [{"minLength": 1}]}, "minItems": 1},
    "map": {"type": "object", "additionalProperties": {"type": "boolean"}},
    "open": {**OPEN, "type": "object"},
}


@pytest.fixture(scope="module")
def document() -> Json:
    registry = Registry()
    for resource in kubernetes.builtin_resources():
        registry.put(resource)
    schema = an_object({"spec": an_object(FIELDS, required=["plain"])})
    for resource in custom.resources_of(custom.defaulted(crd("things", schema))):
        registry.put(resource)
    return Documents(registry).v2()


def thing(document: Json) -> tuple[str, Json]:
    [found] = [(name, each) for name, each in document["definitions"].items() if name.endswith(".Thing")]
    return found


def message(data: bytes, **fields: int) -> dict[str, list[Any]]:
    """The length-delimited fields by name, and those whose name ends with `_` as numbers."""
    expected = {
        number: Expected(name, VARINT if name.endswith("_") else BYTES, True) for name, number in fields.items()
    }
    found = read("test", data, expected)
    return {name: found.get(number, []) for name, number in fields.items()}


def named(entries: list[bytes]) -> dict[str, bytes]:
    pairs = [message(each, name=1, value=2) for each in entries]
    return {each["name"][0].decode(): each["value"][0] for each in pairs}


def test_a_schema_loses_what_v2_has_no_word_for(document: Json) -> None:
    spec = thing(document)[1]["properties"]["spec"]
    fields = spec["properties"]
    assert spec["required"] == ["plain"]
    assert fields["plain"] == {**INTEGER, "minimum": 1, "maximum": 300, "description": "How many."}
    assert fields["nullable"] == {}
    assert fields["list"] == {"type": "array", "items": TEXT, "minItems": 1}
    assert fields["map"] == {"type": "object", "additionalProperties": {"type": "boolean"}}
    assert fields["either"] == {"x-kubernetes-int-or-string": True}


def test_every_reference_leads_somewhere(document: Json) -> None:
    def references(part: object) -> set[str]:
        if isinstance(part, dict):
            own = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
            return own.union(*(references(each) for each in part.values()))
        return set().union(*map(references, part)) if isinstance(part, list) else set()

    found = references(document)
    assert {each.removeprefix("#/definitions/") for each in found} <= document["definitions"].keys()
    assert document["definitions"]["io.k8s.api.core.v1.Pod"]["properties"]["spec"]["$ref"].endswith(".PodSpec")


def test_protobuf_says_the_same(document: Json) -> None:
    whole = message(openapi_v2.encoded(document), swagger=1, paths=8, definitions=9)
    assert whole["swagger"] == [b"2.0"]
    paths = named(message(whole["paths"][0], path=2)["path"])
    assert paths.keys() == document["paths"].keys()
    definitions = named(message(whole["definitions"][0], each=1)["each"])
    assert definitions.keys() == document["definitions"].keys()

    name, _ = thing(document)
    schema = message(definitions[name], properties=25, extensions=31)
    assert b'"kind": "Thing"' in named(schema["extensions"])["x-kubernetes-group-version-kind"]
    spec = message(named(message(schema["properties"][0], each=1)["each"])["spec"], properties=25, required=19)
    assert spec["required"] == [b"plain"]
    text = message(named(message(spec["properties"][0], each=1)["each"])["text"], type=22, pattern=13, max_=11, enum=20)
    assert message(text["type"][0], value=1) == {"value": [b"string"]}
    assert (text["pattern"], text["max_"]) == ([b"^a|b$"], [300])
    assert [message(each, yaml=2)["yaml"] for each in text["enum"]] == [[b'"a"'], [b'"b"']]

    [patch] = message(next(item for path, item in paths.items() if path.endswith("/things/{name}")), patch=8)["patch"]
    operation = message(patch, parameters=8, extensions=13)
    assert b'"kind": "Thing"' in named(operation["extensions"])["x-kubernetes-group-version-kind"]
    assert any(b"fieldValidation" in each for each in operation["parameters"])
