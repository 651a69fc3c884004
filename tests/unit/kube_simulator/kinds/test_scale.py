"""How many, as the scale subresource shows and takes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.kinds import scale
from kube_simulator.resources import Resource, ScalePaths
from kube_simulator.schema.custom import node_of
from kube_simulator.values import Json
from tests.unit.kube_simulator.kinds.kinds_support import resource

DEPLOYMENTS = resource("deployments.apps")
FREE = node_of({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
WIDGETS = Resource(
    *("example.com", "v1", "widgets", "Widget", "widget"),
    namespaced=True,
    schema=FREE,
    custom=True,
    scale=ScalePaths(".spec.a.size", ".status.reps", ".status.selector"),
)
METADATA = {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7", "creationTimestamp": "t", "labels": {}}


def deployment(wanted: int = 2, **status: Any) -> Json:
    selector = {"matchLabels": {"a": "b"}}
    return {"metadata": METADATA, "spec": {"replicas": wanted, "selector": selector}, "status": status}


def widget(spec: object = None, **status: Any) -> Json:
    return {"metadata": METADATA, "spec": spec, "status": status}


def refused(kind: Resource, old: Json, wanted: object) -> ApiError:
    with pytest.raises(ApiError) as error:
        scale.written(kind, old, wanted)
    return error.value


def test_a_deployment_s_scale_is_a_view_of_it() -> None:
    assert scale.read(DEPLOYMENTS, deployment()) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: METADATA[key] for key in METADATA if key != "labels"},
        "spec": {"replicas": 2},
        "status": {"replicas": 0, "selector": "a=b"},
    }
    none = scale.read(DEPLOYMENTS, deployment(0))
    assert none["spec"] == {}, "0 is left out"
    assert scale.read(DEPLOYMENTS, deployment(0, replicas=3))["status"]["replicas"] == 3


def test_a_custom_resource_says_where_its_numbers_are() -> None:
    found = scale.read(WIDGETS, widget({"a": {"size": 4}}, reps=3, selector="a=b"))
    assert (found["spec"], found["status"]) == ({"replicas": 4}, {"replicas": 3, "selector": "a=b"})
    bare = scale.read(WIDGETS, widget({"a": {"size": 0}}))
    assert (bare["spec"], bare["status"]) == ({}, {"replicas": 0})
    silent = replace(WIDGETS, scale=ScalePaths(".spec.a.size", ".status.reps"))
    assert scale.read(silent, widget({"a": {"size": 1}}, selector="a=b"))["status"] == {"replicas": 0}


@pytest.mark.parametrize("spec", [None, {}, {"a": None}, {"a": {}}])
def test_a_custom_resource_that_does_not_say_how_many_has_no_scale(spec: object) -> None:
    with pytest.raises(ApiError) as error:
        scale.read(WIDGETS, widget(spec))
    assert (error.value.code, error.value.reason) == (500, "InternalError")
    assert error.value.message == 'Internal error occurred: the spec replicas field ".spec.a.size" does not exist'


@pytest.mark.parametrize(
    "wanted",
    [{"spec": {"replicas": 3}}, {"kind": "Scale", "metadata": {"name": "a", "uid": "u"}, "spec": {"replicas": 3}}],
)
def test_a_scale_changes_the_number_and_nothing_else(wanted: Json) -> None:
    old = deployment()
    new = scale.written(DEPLOYMENTS, old, wanted)
    assert new == {**old, "spec": {**old["spec"], "replicas": 3}}
    assert old["spec"]["replicas"] == 2
    made = scale.written(WIDGETS, {**widget({"b": 1}), "x": 1}, wanted)
    assert (made["spec"], made["x"]) == ({"b": 1, "a": {"size": 3}}, 1)
    assert scale.written(WIDGETS, widget(None), wanted)["spec"] == {"a": {"size": 3}}


@pytest.mark.parametrize("wanted", [{}, {"spec": None}, {"spec": {}}, {"spec": {"replicas": None}}])
def test_what_is_left_out_is_0(wanted: Json) -> None:
    assert scale.written(DEPLOYMENTS, deployment(), wanted)["spec"]["replicas"] == 0


def test_a_negative_number_is_422_in_each_kind_s_words() -> None:
    wanted = {"spec": {"replicas": -1}}
    error = refused(DEPLOYMENTS, deployment(), wanted)
    why = "Invalid value: -1: must be greater than or equal to 0"
    assert (error.code, error.message) == (422, f'Scale.autoscaling "a" is invalid: spec.replicas: {why}')
    cause = {"reason": "FieldValueInvalid", "message": why, "field": "spec.replicas"}
    assert error.details == {"name": "a", "group": "autoscaling", "kind": "Scale", "causes": [cause]}
    custom = refused(WIDGETS, widget(), wanted)
    assert custom.message == (
        'Widget.example.com "a" is invalid: .spec.a.size: Invalid value: -1: should be a non-negative integer'
    )


@pytest.mark.parametrize(
    ("wanted", "code", "said"),
    [
        (["x"], 400, "a Scale is a JSON object"),
        (
            {"kind": "Deployment", "apiVersion": "apps/v1"},
            400,
            'Deployment in version "v1" cannot be handled as a Scale',
        ),
        ({"metadata": {"name": "b"}}, 400, "the name of the object (b) does not match the name on the URL (a)"),
        (
            {"spec": {"replicas": "x"}},
            400,
            "json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32",
        ),
        ({"spec": {"replicas": 1.5}}, 400, "cannot unmarshal number 1.5 into"),
        ({"spec": {"replicas": 2**31}}, 400, "cannot unmarshal number 2147483648 into"),
        ({"spec": "x"}, 400, "cannot unmarshal string into"),
        ({"metadata": {"uid": "other"}}, 409, "Precondition failed: UID in precondition: other, UID in object meta: u"),
    ],
)
def test_what_is_no_scale_of_the_object_is_refused(wanted: object, code: int, said: str) -> None:
    error = refused(DEPLOYMENTS, deployment(), wanted)
    assert error.code == code
    assert said in error.message


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (None, None),
        ({"a": None}, None),
        ({"a": {"size": 0}}, None),
        ({"a": {"size": 2**31 - 1}}, None),
        ({"a": {"size": -1}}, "-1: should be a non-negative integer"),
        ({"a": {"size": 2**31}}, "2147483648: should be less than or equal to 2147483647"),
        ({"a": {"size": "x"}}, "0: .spec.a.size accessor error: x is of the type string, expected int64"),
        ({"a": {"size": True}}, "0: .spec.a.size accessor error: true is of the type bool, expected int64"),
        ({"a": {"size": None}}, "0: .spec.a.size accessor error: <nil> is of the type <nil>, expected int64"),
        ({"a": {"size": 1.5}}, "0: .spec.a.size accessor error: 1.5 is of the type float64, expected int64"),
        ({"a": {"size": 3.0}}, "0: .spec.a.size accessor error: 3 is of the type float64, expected int64"),
        ({"a": 7}, "0: .spec.a.size accessor error: 7 is of the type int64, expected map[string]interface{}"),
    ],
)
def test_numbers_that_a_scale_cannot_show_are_refused_with_the_object(spec: object, message: str | None) -> None:
    found = [(cause.field, cause.message) for cause in scale.problems(WIDGETS, widget(spec))]
    assert found == ([] if message is None else [(".spec.a.size", f"Invalid value: {message}")])


def test_the_status_is_held_to_it_too_and_kinds_without_a_scale_are_not() -> None:
    [cause] = scale.problems(WIDGETS, widget({}, reps=-5))
    assert scale.problems(WIDGETS, widget({"a": {"size": -1}}), "status") == []
    assert scale.problems(WIDGETS, widget({}, reps=-5), "status") == [cause]
    assert (cause.field, cause.message) == (".status.reps", "Invalid value: -5: should be a non-negative integer")
    assert scale.problems(replace(WIDGETS, scale=None), widget({"a": {"size": -1}})) == []
