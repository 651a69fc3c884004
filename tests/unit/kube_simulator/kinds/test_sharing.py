"""What has not changed is the same dict or list as before, so that it is in memory once and compared at no cost."""

from __future__ import annotations

import copy

import pytest

from kube_simulator.kinds.sharing import completed, mapped, shared
from kube_simulator.values import Json
from tests.unit.kube_simulator.kinds.kinds_support import an, created, resource, updated

FIELD = {"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}
POD_SPEC: Json = {
    "serviceAccountName": "robot",
    "containers": [
        {
            "name": "a",
            "image": "b",
            "command": [],
            "ports": [{"containerPort": 80}],
            "env": [{"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "livenessProbe": {"httpGet": {"port": 80}},
            "readinessProbe": {"grpc": {"port": 1}},
            "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
            "resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}},
        }
    ],
    "volumes": [
        {"name": "e"},
        {"name": "s", "secret": {"secretName": "x"}},
        {"name": "h", "hostPath": {"path": "/x"}},
        {"name": "d", "downwardAPI": {"items": [FIELD]}},
        {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}, {"downwardAPI": {}}]}},
    ],
}
TEMPLATE: Json = {"metadata": {"labels": {"a": "b"}}, "spec": POD_SPEC}
WORKLOAD: Json = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}


@pytest.mark.parametrize(
    ("kind", "spec"), [("deployments.apps", WORKLOAD), ("replicasets.apps", WORKLOAD), ("pods", POD_SPEC)]
)
def test_a_write_to_the_status_keeps_the_spec_that_is_stored(kind: str, spec: Json) -> None:
    given = copy.deepcopy(spec)
    stored = created(resource(kind), an(resource(kind), spec=spec))
    after = updated(resource(kind), stored, {"status": {"observedGeneration": 2}}, "status")
    assert after["status"] != stored["status"]
    assert after["spec"] is stored["spec"]
    assert spec == given


def test_a_write_to_the_spec_keeps_the_parts_that_it_leaves_alone() -> None:
    kind = resource("deployments.apps")
    stored = created(kind, an(kind, spec=WORKLOAD))
    after = updated(kind, stored, {"spec": {**stored["spec"], "replicas": 7}})
    assert after["spec"]["replicas"] == 7
    assert after["spec"]["template"] is stored["spec"]["template"]


@pytest.mark.parametrize(
    ("new", "is_old"), [({"a": 1}, True), ({"a": 2}, False), ({}, False), ({"a": 1, "b": 1}, False), ({"b": 1}, False)]
)
def test_only_an_object_of_the_very_same_values_is_the_old_one(new: Json, is_old: bool) -> None:
    old = {"a": 1}
    assert shared(new, old) is (old if is_old else new)


def test_equal_values_that_are_not_the_same_are_not_mistaken() -> None:
    old = {"a": True}
    assert shared({"a": 1}, old) is not old


def test_a_list_is_itself_as_long_as_all_its_elements_are() -> None:
    values = ["a", "b"]
    assert mapped(lambda each: each, values) is values
    assert mapped(str.upper, values) == ["A", "B"]
    assert values == ["a", "b"]


def test_what_is_given_goes_before_defaults() -> None:
    given = {"a": 1}
    assert completed(given, {"a": 2}) is given
    assert completed(given, {"a": 2, "b": 3}) == {"a": 1, "b": 3}
