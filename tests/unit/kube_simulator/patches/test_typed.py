"""The words are those of a kube-apiserver v1.36.3 about the same objects."""

from typing import Any

import pytest

from kube_simulator.patches.typed import owned, problem
from tests.unit.kube_simulator.patches.support import CONFIG_MAP, DEPLOYMENT, THING, Json, config_map


def of_thing(spec: Any) -> str:
    return problem({"spec": spec}, THING)


def of_containers(*containers: Any) -> str:
    return problem({"spec": {"template": {"spec": {"containers": list(containers)}}}}, DEPLOYMENT)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (config_map() | {"dat": {}}, ".dat: field not declared in schema"),
        (config_map(foo=1), ".metadata.foo: field not declared in schema"),
        (config_map() | {"data": "x"}, ".data: expected map, got &{x}"),
        (config_map() | {"data": [1]}, ".data: expected map, got &{[1]}"),
        (config_map({"a": 1}), ".data.a: expected string, got &value.valueUnstructured{Value:1}"),
        (config_map() | {"immutable": "x"}, ".immutable: expected boolean, got &{x}"),
        (config_map() | {"immutable": 1.5}, ".immutable: expected boolean, got &{1.5}"),
        (
            config_map(labels={"x": {}}),
            ".metadata.labels.x: expected string, got &value.valueUnstructured{Value:map[string]interface {}{}}",
        ),
        (config_map(finalizers="x"), ".metadata.finalizers: expected list, got &{x}"),
        (config_map(finalizers=["a", "a"]), '.metadata.finalizers: duplicate entries for key [="a"]'),
        (
            config_map(finalizers=[1]),
            ".metadata.finalizers[=1]: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (config_map(generation="x"), ".metadata.generation: expected numeric (int or float), got string"),
        (config_map(generation=True), ".metadata.generation: expected numeric (int or float), got bool"),
        (config_map() | {"metadata": []}, ".metadata: expected map, got &{[]}"),
    ],
)
def test_a_config_map_that_does_not_fit_its_schema_is_told_why(body: Json, said: str) -> None:
    assert problem(body, CONFIG_MAP) == said


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("x", ".spec: expected map, got &{x}"),
        ({"list": [1]}, ".spec.list[0]: expected string, got &value.valueUnstructured{Value:1}"),
        ({"set": [None]}, ".spec.set: element 0: associative list without keys has an element that's an explicit null"),
        ({"set": [["x"]]}, ".spec.set: element 0: not supported: associative list with lists as elements"),
        ({"set": [{"a": 1}]}, ".spec.set: element 0: associative list without keys has an element that's a map type"),
        ({"ports": [1]}, ".spec.ports: element 0: associative list with keys may not have non-map elements"),
        ({"ports": [None]}, ".spec.ports: element 0: associative list with keys may not have a null element"),
        (
            {"ports": [{"port": 1}, {"port": 1, "proto": "TCP"}]},
            '.spec.ports: duplicate entries for key [port=1,proto="TCP"]',
        ),
        ({"any": {"known": "x"}}, ".spec.any.known: expected list, got &{x}"),
        ({"any": {"obj": {"p": 1}}}, ".spec.any.obj.p: expected string, got &value.valueUnstructured{Value:1}"),
        (
            {"emb": {"metadata": {"name": 1}}},
            ".spec.emb.metadata.name: expected string, got &value.valueUnstructured{Value:1}",
        ),
        ({"nope": 1, "zope": 2}, ".spec.nope: field not declared in schema"),
        ({"size": {"a": "b"}}, ".spec.size: expected numeric (int or float), got map[string]interface {}"),
    ],
)
def test_a_custom_resource_that_does_not_fit_its_schema_is_told_why(spec: Any, said: str) -> None:
    assert of_thing(spec) == said


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {"size": 1.5, "s": None},
        {"ios": "3"},
        {"ios": [1]},
        {"bare": {"x": 1}},
        {"anything": {"a": [1]}},
        {"any": {"free": {"a": [1]}, "obj": {"p": "1", "q": 2}}},
        {"ports": [{"port": 1}, {"port": 1, "proto": "UDP"}, {"name": "x"}]},
    ],
)
def test_what_the_schema_leaves_open_fits(spec: Any) -> None:
    assert of_thing(spec) == ""


def test_problems_in_containers_name_the_container() -> None:
    web = '.spec.template.spec.containers[name="web"]'
    assert of_containers({"name": "web", "nope": 1}) == f"{web}.nope: field not declared in schema"
    limits = {"cpu": 1.5, "memory": [1]}
    assert (
        of_containers({"name": "web", "resources": {"limits": limits}})
        == f"{web}.resources.limits.memory: expected any scalar, got &{{[1]}}"
    )
    twice = '.spec.template.spec.containers: duplicate entries for key [name="a"]'
    assert of_containers(*[{"name": "a"}] * 3) == f"errors:\n  {twice}\n  {twice}"


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"size": 1, "s": None}, {"f:size": {}, "f:s": {}}),
        ({"obj": {"a": "1", "deep": {}}}, {"f:obj": {"f:a": {}, "f:deep": {}}}),
        ({"mapmap": {"x": {"a": "1"}, "e": {}}}, {"f:mapmap": {"f:e": {}, "f:x": {".": {}, "f:a": {}}}}),
        ({"set": ["b", "a"]}, {"f:set": {'v:"b"': {}, 'v:"a"': {}}}),
        ({"atom": {"k": "v"}, "list": ["a"]}, {"f:atom": {}, "f:list": {}}),
        (
            {"ports": [{"port": 80, "sub": {"a": "1"}}]},
            {"f:ports": {'k:{"port":80,"proto":"TCP"}': {".": {}, "f:port": {}, "f:sub": {"f:a": {}}}}},
        ),
        ({"any": {"m": {"n": [1]}, "z": None}}, {"f:any": {"f:m": {".": {}, "f:n": {}}, "f:z": {}}}),
        ({"emb": {"kind": "X", "spec": {"l": [1]}}}, {"f:emb": {"f:kind": {}, "f:spec": {".": {}, "f:l": {}}}}),
        ({"list": [], "map": {}, "obj": {}}, {"f:list": {}, "f:map": {}, "f:obj": {}}),
    ],
)
def test_an_applier_owns_leaves_elements_and_keys_that_the_schema_does_not_name(spec: Json, fields: Json) -> None:
    assert owned({"spec": spec}, THING) == {"f:spec": fields}


def test_an_empty_list_whose_elements_would_be_owned_is_owned_by_nobody() -> None:
    assert owned({"spec": {"set": [], "ports": []}}, THING) == {}


def test_a_reference_to_an_owner_is_one_field() -> None:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u-1"}
    assert owned(thing_of(ownerReferences=[reference]), THING) == {
        "f:metadata": {"f:ownerReferences": {'k:{"uid":"u-1"}': {}}}
    }


def thing_of(**metadata: Any) -> Json:
    return {"metadata": metadata}
