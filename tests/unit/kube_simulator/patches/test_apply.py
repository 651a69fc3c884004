from typing import Any

import pytest
from hypothesis import given, strategies as st

from kube_simulator.errors import ApiError
from kube_simulator.patches.fields import read
from kube_simulator.patches.merge import merge_patch
from tests.unit.kube_simulator.patches.support import (
    EXAMPLES,
    LATER,
    Json,
    applied,
    config_map,
    owners,
    thing,
    written,
)


def refusal(live: Json | None, body: Json, manager: str = "me", **more: Any) -> ApiError:
    with pytest.raises(ApiError) as raised:
        applied(live, body, manager, **more)
    return raised.value


def deployment(*containers: Json, **spec: Any) -> Json:
    template = {"spec": {"containers": list(containers)}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": template, **spec},
    }


def containers(found: Json) -> list[str]:
    return [container["name"] for container in found["spec"]["template"]["spec"]["containers"]]


def test_several_conflicts_are_listed_by_manager() -> None:
    live = applied(None, config_map({"k": "1"}), "one")
    live = applied(live, config_map({"k": "1"}), "two")
    live = written(live, merge_patch(live, {"data": {"l": "1", "m": "1"}}), "upd")
    refused = refusal(live, config_map({"k": "9", "l": "9", "m": "9"}))
    assert str(refused).startswith('Apply failed with 4 conflicts: conflict with "one": .data.k; conflict with "two": ')
    assert [cause["field"] for cause in refused.details["causes"]] == [".data.k", ".data.k", ".data.l", ".data.m"]


def test_elements_are_merged_by_key_the_live_ones_first_and_the_shared_ones_in_the_applied_order() -> None:
    live = applied(None, deployment({"name": "a", "image": "1"}, {"name": "b", "image": "1"}), "one")
    more = applied(
        live, deployment({"name": "c", "image": "1"}, {"name": "b", "image": "1"}, {"name": "d", "image": "1"})
    )
    assert containers(more) == ["a", "c", "b", "d"]
    turned = applied(more, deployment({"name": "b", "image": "1"}, {"name": "c", "image": "1"}))
    assert containers(turned) == ["a", "b", "c"]
    assert containers(applied(turned, deployment({"name": "c", "image": "1"}))) == ["a", "b", "c"]


def test_an_object_whose_owners_are_forgotten_belongs_to_before_first_apply() -> None:
    live = config_map({"k": "1", "l": "1"}, uid="u")
    found = applied(live, config_map({"k": "1"}))
    assert owners(found) == {
        ("me", "Apply"): {"f:data": {"f:k": {}}},
        ("before-first-apply", "Update"): {"f:data": {".": {}, "f:k": {}, "f:l": {}}},
    }
    assert 'conflict with "before-first-apply" using v1: .data.l' in str(refusal(live, config_map({"l": "2"})))


def test_an_endpoint_s_writer_owns_only_what_the_endpoint_changes() -> None:
    both = thing({"size": 1}, labels={"a": "b"}) | {"status": {"ready": 1}}
    live = applied(None, both)
    assert owners(live)["me", "Apply"].keys() == {"f:metadata", "f:spec"}
    assert "status" not in live
    ready = applied(live, both | {"spec": {"size": 9}}, subresource="status")
    assert (ready["spec"], ready["status"]) == ({"size": 1}, {"ready": 1})
    entry = next(entry for entry in ready["metadata"]["managedFields"] if entry.get("subresource") == "status")
    assert entry["fieldsV1"] == {"f:status": {"f:ready": {}}}
    assert applied(ready, both, subresource="status", now=LATER) is ready


NAMES = st.sampled_from(["a", "b", "c"])
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(1, 3),
        "list": st.lists(NAMES, max_size=2),
        "set": st.lists(NAMES, unique=True, min_size=1, max_size=3),
        "map": st.dictionaries(NAMES, NAMES, max_size=2),
        "mapmap": st.dictionaries(NAMES, st.fixed_dictionaries({}, optional={"a": NAMES, "b": NAMES}), max_size=2),
        "ports": st.lists(
            st.fixed_dictionaries({"port": st.integers(1, 4)}, optional={"name": NAMES}),
            unique_by=lambda each: each["port"],
            min_size=1,
            max_size=3,
        ),
    },
)


@given(SPECS, SPECS)
@EXAMPLES
def test_an_apply_twice_changes_nothing_the_second_time(others: Json, mine: Json) -> None:
    live = applied(applied(None, thing(others), "other"), thing(mine), force=True)
    assert applied(live, thing(mine), now=LATER) is live


@given(SPECS, SPECS)
@EXAMPLES
def test_after_a_forced_apply_nobody_else_owns_a_field_that_it_changed(others: Json, mine: Json) -> None:
    live = applied(None, thing(others), "other")
    try:
        applied(live, thing(mine))
    except ApiError as refused:
        lost = len(refused.details["causes"])
    else:
        lost = 0
    after = applied(live, thing(mine), force=True)
    before_count = len(read(owners(live).get(("other", "Apply"), {})))
    assert len(read(owners(after).get(("other", "Apply"), {}))) == before_count - lost
