"""Nodes of schemas: references resolved, recursion borne, extensions read."""

import pytest

from kube_simulator.schema.node import MISSING, Definitions, Node, of_schema
from kube_simulator.values import Json

DOCUMENT: dict[str, Json] = {
    "Pod": {
        "type": "object",
        "description": "A pod.",
        "properties": {
            "spec": {"allOf": [{"$ref": "#/components/schemas/Spec"}], "default": {}, "description": "What is wanted."},
            "bare": {"$ref": "#/components/schemas/Spec"},
            "labels": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
            "port": {"$ref": "#/components/schemas/IntOrString"},
            "cpu": {"$ref": "#/components/schemas/Quantity"},
            "raw": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.runtime.RawExtension"},
            "any": {"$ref": "#/components/schemas/Any"},
        },
    },
    "Spec": {
        "type": "object",
        "description": "A spec.",
        "properties": {
            "inner": {"$ref": "#/components/schemas/Spec"},
            "list": {
                "type": "array",
                "items": {"allOf": [{"$ref": "#/components/schemas/Spec"}], "default": {}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a", "b"],
                "x-kubernetes-patch-strategy": "merge,retainKeys",
                "x-kubernetes-patch-merge-key": "a",
            },
        },
    },
    "IntOrString": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "Any": {"description": "Whatever."},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"},
}


@pytest.fixture
def pod() -> Node:
    return Definitions(DOCUMENT).named("Pod")


def at(node: Node, *names: str) -> Node:
    for name in names:
        found = node.field(name)
        assert found is not None, name
        node = found
    return node


def test_what_stands_beside_a_reference_comes_before_what_the_definition_says(pod: Node) -> None:
    spec = at(pod, "spec")
    assert (spec.raw["description"], spec.default, spec.type, spec.ref) == ("What is wanted.", {}, "object", "Spec")
    assert not {"allOf", "$ref"} & spec.raw.keys()
    bare = at(pod, "bare")
    assert (bare.raw["description"], bare.default, bare.ref) == ("A spec.", MISSING, "Spec")


def test_a_recursive_definition_is_one_node_however_deep(pod: Node) -> None:
    assert at(pod, "bare", "inner", "inner", "inner") is at(pod, "bare")
    assert at(pod, "spec").properties is at(pod, "bare").properties, "made once, although the words beside differ"


def test_asking_again_gives_the_same_node(pod: Node) -> None:
    assert at(pod, "labels") is at(pod, "labels")
    assert at(pod, "bare", "list").items() is at(pod, "spec", "list").items()


def test_a_map_has_the_same_node_for_every_name_and_an_object_knows_only_its_own(pod: Node) -> None:
    assert at(pod, "labels", "x") is at(pod, "labels", "y")
    assert at(pod, "labels", "x").type == "string"
    assert pod.field("unknown") is None
    assert at(pod, "labels").items() is None


def test_extensions_say_how_lists_are_merged(pod: Node) -> None:
    merged = at(pod, "spec", "list")
    assert (merged.list_type, merged.list_keys, merged.patch_merge_key) == ("map", ("a", "b"), "a")
    assert merged.patch_strategy == {"merge", "retainKeys"}
    element = merged.items()
    assert element is not None
    assert (element.ref, element.list_type, element.patch_strategy) == ("Spec", "atomic", frozenset())


def test_opaque_values_keep_what_they_have_and_scalars_of_several_types_are_not_opaque(pod: Node) -> None:
    opaque = {name: at(pod, name).preserve_unknown for name in ("raw", "any", "port", "cpu", "spec", "labels")}
    assert opaque == {"raw": True, "any": True, "port": False, "cpu": False, "spec": False, "labels": False}
    assert at(pod, "port").int_or_string
    assert not at(pod, "cpu").int_or_string


def test_the_schema_of_a_crd_needs_no_document() -> None:
    node = of_schema(
        {
            "type": "object",
            "properties": {
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "port": {"x-kubernetes-int-or-string": True},
                "whole": {"type": "object", "x-kubernetes-embedded-resource": True, "nullable": True},
                "size": {"type": "integer", "format": "int32", "default": 1},
                "one": {"type": "object", "x-kubernetes-map-type": "atomic"},
                "any": {"type": "object", "additionalProperties": True},
                "none": {"type": "object", "additionalProperties": False},
            },
        }
    )
    assert at(node, "free").preserve_unknown
    assert at(node, "port").int_or_string
    assert not at(node, "port").preserve_unknown
    assert (at(node, "whole").embedded, at(node, "whole").nullable) == (True, True)
    assert (at(node, "size").default, at(node, "size").format) == (1, "int32")
    assert (at(node, "one").map_type, at(node, "size").map_type) == ("atomic", "granular")
    assert at(node, "any", "x").preserve_unknown
    assert at(node, "none").field("x") is None


def test_a_crd_s_schema_may_refer_to_kubernetes_definitions() -> None:
    schema: Json = {"type": "object", "properties": {"metadata": {"$ref": "#/components/schemas/Spec"}}}
    assert at(Definitions(DOCUMENT).node(schema), "metadata", "list").list_type == "map"


def test_missing_is_false_and_not_null() -> None:
    assert not MISSING
    assert of_schema({"default": None}).default is None
    assert repr(of_schema({}).default) == "MISSING"
