import copy
from typing import Any

import pytest

from kube_simulator.patches import managed
from kube_simulator.patches.merge import merge_patch
from tests.unit.kube_simulator.patches.support import (
    BUILTIN,
    LATER,
    NOW,
    THINGS,
    Json,
    config_map,
    owners,
    thing,
    written,
)

APPLIED = {
    "manager": "m",
    "operation": "Apply",
    "apiVersion": "v1",
    "time": "2020-01-01T00:00:00Z",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:data": {"f:k": {}}},
}


@pytest.fixture
def made() -> Json:
    """A ConfigMap that somebody made."""
    return written(None, config_map({"k": "1", "l": "2"}, uid="u"), "maker")


def test_who_creates_an_object_owns_what_it_said(made: Json) -> None:
    [entry] = made["metadata"]["managedFields"]
    assert entry == {
        "manager": "maker",
        "operation": "Update",
        "apiVersion": "v1",
        "time": NOW,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {".": {}, "f:k": {}, "f:l": {}}},
    }


def test_nobody_owns_what_only_the_server_says() -> None:
    identity = dict.fromkeys(("uid", "namespace", "creationTimestamp", "resourceVersion", "selfLink"), "x")
    found = written(None, config_map(None, **identity, generation=1, labels={"a": "b"}))
    assert owners(found) == {("me", "Update"): {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}}}
    assert "managedFields" not in written(None, config_map(None, **identity))["metadata"]


def test_the_spec_of_a_custom_resource_is_a_field_and_that_of_a_built_in_kind_is_always_there() -> None:
    assert owners(written(None, thing({"size": 1})))["me", "Update"] == {"f:spec": {".": {}, "f:size": {}}}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "spec": {"replicas": 1}, "status": {}}
    assert owners(written(None, deployment))["me", "Update"] == {"f:spec": {"f:replicas": {}}}


def test_the_status_that_a_new_built_in_object_has_is_nobodys() -> None:
    pods = BUILTIN["pods"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "status": {"phase": "Pending"}}
    found = managed.after_update(None, pod, manager="m", api_version="v1", subresource="", node=pods.schema, now=NOW)
    assert owners(found) == {}


def test_the_last_writer_of_a_field_owns_it_alone(made: Json) -> None:
    found = written(made, merge_patch(made, {"data": {"k": "9", "m": "3"}}), "other", now=LATER)
    assert owners(found) == {
        ("maker", "Update"): {"f:data": {".": {}, "f:l": {}}},
        ("other", "Update"): {"f:data": {"f:k": {}, "f:m": {}}},
    }
    assert [entry["time"] for entry in found["metadata"]["managedFields"]] == [NOW, LATER]


def test_a_further_write_of_the_same_manager_joins_its_entry_and_renews_its_time(made: Json) -> None:
    found = written(made, merge_patch(made, {"data": {"m": "3"}}), "maker", now=LATER)
    [entry] = found["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:k": {}, "f:l": {}, "f:m": {}}}
    assert entry["time"] == LATER


def test_a_field_that_goes_has_no_owner_and_its_remover_gets_no_entry(made: Json) -> None:
    fewer = written(made, merge_patch(made, {"data": {"k": None}}), "remover", now=LATER)
    assert owners(fewer) == {("maker", "Update"): {"f:data": {".": {}, "f:l": {}}}}
    assert fewer["metadata"]["managedFields"][0]["time"] == NOW
    none = written(fewer, merge_patch(fewer, {"data": None}), "remover", now=LATER)
    assert "managedFields" not in none["metadata"]


def test_an_unchanged_object_is_given_back_itself_whoever_writes(made: Json) -> None:
    assert written(made, copy.deepcopy(made), "other", now=LATER) is made
    assert written(made, merge_patch(made, {"data": {"k": "1"}}), "other", now=LATER) is made
    unsaid = merge_patch(made, {"metadata": {"managedFields": None}})
    assert written(made, unsaid, "other", now=LATER) is made


def test_nothing_is_changed_in_place(made: Json) -> None:
    before = copy.deepcopy(made)
    written(made, merge_patch(made, {"data": {"k": "9"}}), "other")
    assert made == before


def test_another_order_of_elements_is_a_change_that_nobody_comes_to_own() -> None:
    made = written(None, thing({"set": ["a", "b"]}), "maker")
    turned = written(made, {**made, "spec": {"set": ["b", "a"]}}, "other", now=LATER)
    assert turned["spec"] == {"set": ["b", "a"]}
    assert turned["metadata"]["managedFields"] is made["metadata"]["managedFields"]


def test_a_change_of_the_generation_alone_is_a_change(made: Json) -> None:
    newer = written(made, merge_patch(made, {"metadata": {"generation": 2}}), "other")
    assert newer["metadata"]["generation"] == 2
    assert owners(newer) == owners(made)


def test_entries_are_apart_by_subresource_and_by_operation() -> None:
    made = written(None, thing({"size": 1}), "m")
    ready = written(made, {**made, "status": {"ready": 1}}, "m", subresource="status", now=LATER)
    assert [(entry["manager"], entry.get("subresource")) for entry in ready["metadata"]["managedFields"]] == [
        ("m", None),
        ("m", "status"),
    ]
    scaled = written(ready, {**ready, "spec": {"size": 2}}, "m", subresource="scale")
    first = scaled["metadata"]["managedFields"][0]
    assert (first["subresource"], first["fieldsV1"], "time" in first) == ("scale", {"f:spec": {"f:size": {}}}, False)


def test_entries_are_in_the_order_of_kubernetes() -> None:
    made = written(None, config_map({"a": "1"}, managedFields=[APPLIED]), "z", now=LATER)
    found = written(made, merge_patch(made, {"data": {"b": "1"}}), "y", now=LATER)
    found = written(found, merge_patch(found, {"data": {"c": "1"}}), "x", now="2026-01-01T00:00:08Z")
    assert [entry["manager"] for entry in found["metadata"]["managedFields"]] == ["m", "y", "z", "x"]


def test_entries_that_a_client_sends_are_taken_over(made: Json) -> None:
    sent = merge_patch(made, {"metadata": {"managedFields": [APPLIED]}})
    assert written(made, sent, "other")["metadata"]["managedFields"] == [APPLIED]
    changed = merge_patch(sent, {"data": {"k": "9"}})
    assert owners(written(made, changed, "other")) == {("other", "Update"): {"f:data": {"f:k": {}}}}
    twice = merge_patch(made, {"metadata": {"managedFields": [APPLIED, APPLIED]}})
    assert written(made, twice, "other")["metadata"]["managedFields"] == [APPLIED]


def test_an_empty_list_of_entries_or_an_empty_entry_forgets_the_owners_until_somebody_applies(made: Json) -> None:
    sent: list[list[Json]] = [[], [{}]]
    for empty in sent:
        forgotten = written(
            made, merge_patch(made, {"metadata": {"managedFields": empty}, "data": {"k": "9"}}), "other"
        )
        assert "managedFields" not in forgotten["metadata"]
        later = written(forgotten, merge_patch(forgotten, {"data": {"m": "1"}}), "other")
        assert "managedFields" not in later["metadata"]
        assert written(later, copy.deepcopy(later), "other") is later


@pytest.mark.parametrize(
    "unreadable",
    [
        [{}, {}],
        [{"manager": "m"}],
        [{**APPLIED, "operation": "X"}],
        [{**APPLIED, "fieldsType": "X"}],
        [{**APPLIED, "apiVersion": ""}],
        [{**APPLIED, "fieldsV1": 5}],
        [{**APPLIED, "fieldsV1": {"f:data": 5}}],
        [{**APPLIED, "fieldsV1": {"f:data": {"v:x": {}}}}],
        ["x"],
    ],
)
def test_entries_that_cannot_be_read_are_passed_over(made: Json, unreadable: Any) -> None:
    assert written(made, {**made, "metadata": {**made["metadata"], "managedFields": unreadable}}, "other") is made


def test_a_sent_entry_of_no_fields_vanishes(made: Json) -> None:
    sent = merge_patch(made, {"metadata": {"managedFields": [{**APPLIED, "fieldsV1": {}}]}})
    assert "managedFields" not in written(made, sent, "other")["metadata"]


def test_entries_sent_to_a_subresource_are_not_looked_at() -> None:
    made = written(None, thing({"size": 1}), "m")
    sent = {**made, "metadata": {**made["metadata"], "managedFields": []}, "status": {"ready": 1}}
    assert owners(written(made, sent, "n", subresource="status")).keys() == {("m", "Update"), ("n", "Update")}


def test_the_oldest_of_more_than_ten_updates_are_thrown_together(made: Json) -> None:
    found = made
    for number in range(12):
        body = merge_patch(found, {"data": {f"k{number}": "1"}})
        found = written(found, body, f"m{number:02}", now=f"2026-01-01T00:01:{number:02}Z")
    entries = found["metadata"]["managedFields"]
    assert [entry["manager"] for entry in entries] == ["ancient-changes", *(f"m{number:02}" for number in range(3, 12))]
    assert entries[0]["fieldsV1"]["f:data"].keys() == {".", "f:k", "f:l", "f:k0", "f:k1", "f:k2"}
    assert entries[0]["time"] == "2026-01-01T00:01:02Z"


def test_a_difference_in_times_alone_is_none(made: Json) -> None:
    [entry] = made["metadata"]["managedFields"]
    renewed = managed.with_entries(made, [{**entry, "time": LATER}])
    assert managed.unless_only_times(made, renewed) is made
    other = managed.with_entries(made, [{**entry, "manager": "other"}])
    assert managed.unless_only_times(made, other) == other
    changed = {**renewed, "data": {}}
    assert managed.unless_only_times(made, changed)["data"] == {}


def test_a_write_without_a_manager_is_by_unknown() -> None:
    assert owners(written(None, config_map({"k": "1"}), "")).keys() == {("unknown", "Update")}


def test_the_version_of_an_entry_is_that_of_the_write() -> None:
    [entry] = written(None, thing({"size": 1}))["metadata"]["managedFields"]
    assert entry["apiVersion"] == THINGS.api_version
