"""What metadata may be, and in which words it is refused."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from kube_simulator.kinds.metadata import generated_name, metadata_problems
from kube_simulator.resources import Resource
from kube_simulator.values import Json
from tests.unit.kube_simulator.kinds.kinds_support import (
    LABEL,
    LABEL_VALUE,
    NAME_PART,
    SUBDOMAIN,
    an,
    created,
    resource,
)

CONFIG_MAPS = resource("configmaps")
LEASES = resource("leases.coordination.k8s.io")
STANDARD = "name is neither a standard finalizer name nor is it fully qualified"


def wrong(metadata: Json, kind: Resource = CONFIG_MAPS, old: Json | None = None) -> list[str]:
    new = {"metadata": {"name": "a", **metadata}}
    before = None if old is None else {"metadata": {"name": "a", **old}}
    return [f"{cause.field}: {cause.message}" for cause in metadata_problems(kind, new, before)]


def reference(name: str, **fields: Any) -> Json:
    return {"uid": name, "name": name, "kind": "ConfigMap", "apiVersion": "v1", **fields}


@pytest.mark.parametrize(
    ("plural", "name", "why"),
    [
        ("configmaps", "Upper", SUBDOMAIN),
        ("deployments.apps", "a" * 254, "must be no more than 253 characters"),
        ("namespaces", "a.b", "must not contain dots"),
        ("namespaces", "A b", LABEL),
        ("services", "a" * 64, "must be no more than 63 characters"),
        ("roles.rbac.authorization.k8s.io", "a/b", "may not contain '/'"),
    ],
)
def test_each_kind_has_its_rule_of_names(plural: str, name: str, why: str) -> None:
    assert wrong({"name": name}, resource(plural)) == [f'metadata.name: Invalid value: "{name}": {why}']


def test_what_one_kind_may_be_called_another_may_not() -> None:
    assert wrong({"name": "system:x"}, resource("clusterroles.rbac.authorization.k8s.io")) == []
    assert wrong({"name": "a.b"}) == []
    assert wrong({"name": "1a"}, resource("services")) == []


def test_an_object_needs_a_name_or_the_beginning_of_one() -> None:
    assert wrong({"name": ""}) == ["metadata.name: Required value: name or generateName is required"]
    assert wrong({"name": "a.x2b4k", "generateName": "a."}) == [
        f'metadata.generateName: Invalid value: "a.": {SUBDOMAIN}'
    ]
    assert wrong({"name": "a-x2b4k", "generateName": "a-"}) == []


def test_the_name_of_an_old_object_is_not_looked_at_again() -> None:
    assert wrong({"name": "Upper"}, old={"name": "Upper"}) == []


def test_a_generated_name_adds_five_characters_and_stays_below_the_limit() -> None:
    chance = random.Random(1)
    made = {generated_name("web-", chance) for _ in range(50)}
    assert len(made) == 50
    assert all(re.fullmatch("web-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in made)
    assert re.fullmatch("a{58}[a-z0-9]{5}", generated_name("a" * 250, chance))
    assert generated_name("", chance) == ""


def test_labels_have_good_keys_and_values() -> None:
    assert wrong({"labels": {"a": "", "example.com/a": "B_1", "b": "v" * 63}}) == []
    assert wrong({"labels": {"-": "b", "c": "x y", "d": "v" * 64}}) == [
        f'metadata.labels: Invalid value: "-": {NAME_PART}',
        f'metadata.labels: Invalid value: "x y": {LABEL_VALUE}',
        f'metadata.labels: Invalid value: "{"v" * 64}": must be no more than 63 bytes',
    ]


def test_annotations_have_good_keys_of_either_case_and_a_limit_for_all_together() -> None:
    assert wrong({"annotations": {"UP.example.com/A": "any thing\n"}}) == []
    assert wrong({"annotations": {"B/A b": ""}}) == [f'metadata.annotations: Invalid value: "B/A b": {NAME_PART}']
    assert wrong({"annotations": {"a": "x" * (2**18 - 1)}}) == []
    too_long = ["metadata.annotations: Too long: may not be more than 262144 bytes"]
    assert wrong({"annotations": {"a": "x" * 2**18}}) == too_long
    assert wrong({"annotations": {"a": "é" * 2**17}}) == too_long, "bytes, not characters"


def test_finalizers_are_qualified_where_kubernetes_is_strict() -> None:
    assert wrong({"finalizers": ["kubernetes", "example.com/a"]}) == []
    assert wrong({"finalizers": ["b/c", "a"]}) == [f'metadata.finalizers[1]: Invalid value: "a": {STANDARD}']
    assert wrong({"finalizers": ["a"]}, LEASES) == []
    assert wrong({"finalizers": ["-"]}, LEASES) == [f'metadata.finalizers: Invalid value: "-": {NAME_PART}']


def test_nobody_can_be_orphaned_and_collected_first() -> None:
    both = ["orphan", "foregroundDeletion"]
    assert wrong({"finalizers": both}) == [
        'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: '
        "finalizer orphan and foregroundDeletion cannot be both set"
    ]


def test_no_finalizer_comes_to_an_object_that_is_being_deleted() -> None:
    old = {"finalizers": ["a/b"], "deletionTimestamp": "2026-11-21T15:00:00Z"}
    assert wrong({"finalizers": ["a/b"]}, old=old) == []
    assert wrong({}, old=old) == []
    assert wrong({"finalizers": ["a/d", "a/b", "a/c"]}, old=old) == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"a/c", "a/d"}'
    ]
    assert wrong({"finalizers": ["a/b", "a/c"]}, old={"finalizers": ["a/b"]}) == []


def test_an_owner_reference_is_complete() -> None:
    field = "metadata.ownerReferences"
    assert wrong({"ownerReferences": [reference("a", controller=True), reference("b", controller=False)]}) == []
    assert wrong({"ownerReferences": [{}]}) == [
        f'{field}.apiVersion: Invalid value: "": version must not be empty',
        *(f'{field}.{key}: Invalid value: "": must not be empty' for key in ("kind", "name", "uid")),
    ]
    assert wrong({"ownerReferences": [reference("a", apiVersion="a/b/c")]}) == [
        f'{field}.apiVersion: Invalid value: "a/b/c": version must not be empty'
    ]
    assert wrong({"ownerReferences": [reference("a", kind="Event")]}) == [
        f'{field}: Invalid value: {{"apiVersion":"v1","kind":"Event","name":"a","uid":"a"}}: '
        "/v1, Kind=Event is disallowed from being an owner"
    ]


def test_an_object_has_one_controller_and_the_message_names_both() -> None:
    [message] = wrong({"ownerReferences": [reference(name, controller=True) for name in "ab"]})
    assert message == (
        "metadata.ownerReferences: Invalid value: "
        '[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"a","controller":true},'
        '{"apiVersion":"v1","kind":"ConfigMap","name":"b","uid":"b","controller":true}]: '
        'Only one reference can have Controller set to true. Found "true" in references for ConfigMap/a and ConfigMap/b'
    )
    three = wrong({"ownerReferences": [reference(name, controller=True) for name in "abc"]})
    assert [message.rpartition(" for ")[2] for message in three] == [
        "ConfigMap/a and ConfigMap/b",
        "ConfigMap/a and ConfigMap/c",
    ]


def test_a_generation_is_not_negative() -> None:
    assert wrong({"generation": -1}) == ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"]


def test_what_is_empty_in_metadata_is_left_out() -> None:
    body = an(CONFIG_MAPS)
    body["metadata"] |= {"labels": {}, "annotations": None, "finalizers": [], "ownerReferences": [], "generation": 0}
    assert created(CONFIG_MAPS, body)["metadata"] == {"name": "a", "namespace": "ns"}


def test_the_same_owner_twice_is_one() -> None:
    body = an(CONFIG_MAPS)
    body["metadata"]["ownerReferences"] = [reference("a"), reference("b"), reference("a")]
    assert created(CONFIG_MAPS, body)["metadata"]["ownerReferences"] == [reference("a"), reference("b")]
