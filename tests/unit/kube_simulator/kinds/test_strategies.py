"""Custom resources, CRDs, and kinds of which nothing particular is known."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from kube_simulator.kinds.strategies import strategy_of
from kube_simulator.resources import Resource
from kube_simulator.schema.custom import node_of
from kube_simulator.schema.kubernetes import builtin_resources
from kube_simulator.values import Json
from tests.unit.kube_simulator.kinds.kinds_support import an, created, resource, updated

SPEC = {"type": "object", "default": {}, "properties": {"size": {"type": "integer", "default": 1}}}
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SCHEMA = {"type": "object", "properties": {"spec": SPEC, "status": FREE, "other": FREE}}
PLAIN = Resource(
    "example.com", "v1", "widgets", "Widget", "widget", namespaced=True, schema=node_of(SCHEMA), custom=True
)
DIVIDED = replace(PLAIN, subresources=frozenset({"status"}))
CRDS = resource("customresourcedefinitions.apiextensions.k8s.io")


def generation(kind: Resource, old: Json, change: Json, subresource: str = "") -> int:
    found = updated(kind, old, change, subresource)["metadata"]["generation"]
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize("kind", [PLAIN, DIVIDED], ids=["plain", "divided"])
def test_a_custom_resource_begins_at_generation_1_with_its_defaults(kind: Resource) -> None:
    body = an(kind)
    body["metadata"]["generation"] = 7
    stored = created(kind, body)
    assert (stored["metadata"]["generation"], stored["spec"]) == (1, {"size": 1})


def test_a_status_that_has_a_path_of_its_own_is_dropped_at_first() -> None:
    body = an(PLAIN, status={"a": 1})
    assert "status" not in created(DIVIDED, body)
    assert created(PLAIN, body)["status"] == {"a": 1}


def test_the_generation_counts_changes_of_all_but_metadata_and_of_a_divided_one_s_status() -> None:
    for kind in (PLAIN, DIVIDED):
        stored = created(kind, an(kind))
        step = partial(generation, kind, stored)
        assert step({"metadata": {**stored["metadata"], "labels": {"a": "b"}}}) == 1
        assert step({"spec": {}}) == 1, "the default is no change"
        assert step({"spec": {"size": 2}}) == 2
        assert step({"other": {"x": 1}}) == 2
        assert step({"status": {"x": 1}}) == (2 if kind is PLAIN else 1)


def test_each_path_of_a_divided_one_leaves_the_other_s_part_alone() -> None:
    old = updated(DIVIDED, created(DIVIDED, an(DIVIDED)), {"status": {"a": 1}}, "status")
    assert old["status"] == {"a": 1}
    assert updated(DIVIDED, old, {"status": {"a": 2}}) == old
    foreign = {**old["metadata"], "labels": {"a": "b"}, "finalizers": ["a/b"], "managedFields": [{"manager": "m"}]}
    new = updated(DIVIDED, old, {"status": {"a": 3}, "spec": {"size": 9}, "metadata": foreign}, "status")
    assert (new["status"], new["spec"]) == ({"a": 3}, old["spec"])
    assert new["metadata"] == {**old["metadata"], "managedFields": [{"manager": "m"}]}
    body = {key: value for key, value in old.items() if key != "status"}
    assert "status" not in strategy_of(DIVIDED).prepare_update(body, old, "status")


def test_a_scale_is_a_write_to_the_object_itself() -> None:
    old = created(DIVIDED, an(DIVIDED))
    assert generation(DIVIDED, old, {"spec": {"size": 5}}, "scale") == 2


def test_nothing_that_was_stored_is_changed_in_place() -> None:
    body = an(DIVIDED, status={"a": 1})
    created(DIVIDED, body)
    assert body == an(DIVIDED, status={"a": 1})


@pytest.mark.parametrize("kind", [each for each in builtin_resources() if each.stored], ids=lambda each: each.full_name)
def test_every_served_kind_can_be_written_and_keeps_its_defaults(kind: Resource) -> None:
    """The smallest object comes out the same however often it is written."""
    body = an(kind, **({"involvedObject": {}} if kind.full_name == "events" else {}))
    stored = created(kind, body)
    strategy = strategy_of(kind)
    assert strategy.complete(strategy.default(stored), stored) == stored
    assert updated(kind, stored, {}) == stored
    assert updated(kind, stored, {"metadata": {**stored["metadata"], "labels": {}, "finalizers": None}}) == stored


def test_a_kind_without_a_strategy_keeps_what_it_is_given_and_is_not_empty() -> None:
    endpoints = resource("endpoints")
    body = an(endpoints, subsets=[{"addresses": [{"ip": "1.2.3.4"}]}])
    assert created(endpoints, body) == body
    assert created(endpoints, {**body, "subsets": []}) == an(endpoints)


def crd(*storing: str) -> Json:
    names = {"kind": "Widget", "plural": "widgets"}
    versions = [
        {"name": name, "served": True, "storage": name in storing, "schema": {"openAPIV3Schema": FREE}}
        for name in ("v1", "v2")
    ]
    return {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}


def test_a_crd_says_at_first_what_it_stores_and_that_nobody_looked_at_its_names() -> None:
    stored = created(CRDS, an(CRDS, "widgets.example.com", spec=crd("v1"), status={"storedVersions": ["v9"]}))
    assert stored["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }
    assert stored["spec"]["names"]["listKind"] == "WidgetList"
    assert stored["metadata"]["generation"] == 1


def test_a_crd_remembers_what_it_once_stored() -> None:
    old = created(CRDS, an(CRDS, "widgets.example.com", spec=crd("v1")))
    new = updated(CRDS, old, {"spec": crd("v2")})
    assert new["status"]["storedVersions"] == ["v1", "v2"]
    assert new["metadata"]["generation"] == 2
    assert updated(CRDS, new, {"spec": crd("v2")})["status"] == new["status"]
    cleaned = updated(CRDS, new, {"status": {**new["status"], "storedVersions": ["v2"]}}, "status")
    assert cleaned["status"]["storedVersions"] == ["v2"]
