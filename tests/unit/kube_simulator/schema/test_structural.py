"""What a schema does to an object, where a real server cannot be asked: what is shared, what is not changed."""

import copy
from typing import Any

import pytest

from kube_simulator.schema import custom, kubernetes
from kube_simulator.schema.node import of_schema
from kube_simulator.schema.structural import decode_problems, default, prune, validate
from tests.unit.kube_simulator.schema.schema_parts import INTEGER, TEXT, Json, a_list, an_object, by_keys

SCHEMA = an_object(
    {
        "spec": an_object(
            {
                "size": {**INTEGER, "default": 1},
                "labels": an_object(additionalProperties=TEXT),
                "ports": a_list(an_object({"name": TEXT, "at": INTEGER}, required=["name"]), **by_keys("name")),
                "list": {**a_list(INTEGER), "default": [1]},
            },
        )
    }
)
NODE = custom.node_of(SCHEMA)


def sent(**spec: Any) -> Json:
    return {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a"}, "spec": spec}


def test_what_has_nothing_to_drop_is_the_very_object_that_was_sent() -> None:
    whole = sent(size=2, list=[], labels={"a": "b"}, ports=[{"name": "x"}])
    kept, unknown = prune(NODE, whole)
    assert kept is whole
    assert unknown == []
    assert default(NODE, whole) is whole


def test_what_is_dropped_or_filled_in_leaves_the_object_that_was_sent_as_it_was() -> None:
    whole = sent(siez=2, ports=[{"name": "x", "nmae": "y"}], labels={"a": None})
    before = copy.deepcopy(whole)
    kept, unknown = prune(NODE, whole)
    filled = default(NODE, kept)
    assert whole == before
    assert unknown == ["spec.ports[0].nmae", "spec.siez"]
    assert filled["spec"] == {"ports": [{"name": "x"}], "labels": {}, "size": 1, "list": [1]}
    assert filled["metadata"] is whole["metadata"], "untouched parts are shared"


def test_a_default_is_not_shared_by_the_objects_that_have_it() -> None:
    one, other = default(NODE, sent()), default(NODE, sent())
    one["spec"]["list"].append(2)
    assert other["spec"]["list"] == [1]
    assert default(NODE, sent())["spec"]["list"] == [1]


def test_unknown_fields_of_a_custom_resource_are_told_as_kubernetes_sorts_them() -> None:
    body = {**sent(z=1, a=1), "foo": 1, "metadata": {"name": "a", "zz": 1, "aa": 1, "ownerReferences": [{"b": 1}]}}
    assert prune(NODE, body)[1] == [
        *("metadata.zz", "metadata.aa", "metadata.ownerReferences[0].b"),
        *("foo", "spec.a", "spec.z"),
    ]


def test_the_metadata_of_a_custom_resource_has_no_defaults_and_keeps_its_nulls_for_others_to_judge() -> None:
    body = {**sent(), "metadata": {"name": "a", "labels": None}}
    assert default(NODE, body)["metadata"] == {"name": "a", "labels": None}


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"name": 1}, "json: cannot unmarshal number into field metadata.name of type string"),
        ({"labels": {"a": 1}}, "json: cannot unmarshal number into field metadata.labels.a of type string"),
        ([], "json: cannot unmarshal array into field metadata of type object"),
        (None, None),
        ({"name": "a", "labels": {"a": "b"}}, None),
    ],
)
def test_of_a_custom_resource_the_metadata_alone_is_decoded(metadata: Any, problem: str | None) -> None:
    """The rest is the schema's affair."""
    assert decode_problems(NODE, {**sent(size="x"), "metadata": metadata}) == problem


def test_names_are_held_to_the_schema_and_other_metadata_is_not() -> None:
    name = {**TEXT, "maxLength": 3, "pattern": "^[a-z]+$"}
    node = custom.node_of(an_object({"metadata": an_object({"name": name})}))
    body = {**sent(), "metadata": {"name": "A234", "labels": {"a": 1}}}
    assert [(cause.reason, cause.field) for cause in validate(node, body)] == [("FieldValueTooLong", "metadata.name")]
    body["metadata"]["name"] = "A"
    [cause] = validate(node, body)
    assert cause.message == "Invalid value: \"A\": metadata.name in body should match '^[a-z]+$'"
    assert validate(node, body, old=body) == [], "older than the rule"


def test_a_part_can_be_judged_at_its_place() -> None:
    spec = NODE.field("spec")
    assert spec is not None
    assert [cause.field for cause in validate(spec, {"size": "x"}, "spec")] == ["spec.size"]


def test_what_was_twice_before_may_stay_twice() -> None:
    twice = sent(ports=[{"name": "x"}, {"name": "x"}])
    [cause] = validate(NODE, twice)
    assert (cause.reason, cause.field) == ("FieldValueDuplicate", "spec.ports[1]")
    assert validate(NODE, sent(ports=[{"name": "x"}, {"name": "x", "at": 1}]), old=twice) == []
    assert len(validate(NODE, twice, old=sent(ports=[{"name": "x"}]))) == 1


def test_true_is_not_one_and_one_is_not_a_float_when_old_and_new_are_compared() -> None:
    node = of_schema(an_object({"a": {"type": "string"}}))
    assert validate(node, {"a": True}, old={"a": True}) == []
    assert len(validate(node, {"a": True}, old={"a": 1})) == 1
    assert len(validate(node, {"a": 1}, old={"a": 1.0})) == 1


def test_a_built_in_object_loses_what_kubernetes_does_not_know_and_nothing_opaque() -> None:
    [pods] = [each for each in kubernetes.builtin_resources() if each.plural == "pods"]
    managed = [{"fieldsV1": {"f:spec": {"f:any": {}}}, "manager": "m"}]
    kept, unknown = prune(pods.schema, {"metadata": {"managedFields": managed, "x": 1}, "spec": {"containers": []}})
    assert kept == {"metadata": {"managedFields": managed}, "spec": {"containers": []}}
    assert unknown == ["metadata.x"]
