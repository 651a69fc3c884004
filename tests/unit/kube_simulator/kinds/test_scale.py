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

FREE = node_of({"type": "object", "x-kubernetes-preserve-unknown-fields": True})
WIDGETS = Resource(
    *("example.com", "v1", "widgets", "Widget", "widget"),
    namespaced=True,
    schema=FREE,
    custom=True,
    scale=ScalePaths(".spec.a.size", ".status.reps", ".status.selector"),
)
METADATA = {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7", "creationTimestamp": "t", "labels": {}}


def widget(spec: object = None, **status: Any) -> Json:
    return {"metadata": METADATA, "spec": spec, "status": status}


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
    assert error.value.code == 500
    assert 'the spec replicas field ".spec.a.size" does not exist' in error.value.message
