import copy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from kube_simulator.patches.compare import compare, unborn
from kube_simulator.patches.fieldsets import paths, text
from kube_simulator.schema.node import of_schema
from tests.unit.kube_simulator.patches.support import BUILTIN, CONFIG_MAPS, DEPLOYMENTS, EXAMPLES, THING, Json

PORT = 'k:{"port":80,"proto":"TCP"}'


def changes(before: Any, after: Any) -> tuple[Json, Json]:
    """Of a spec of a Thing."""
    found = compare({"spec": before}, {"spec": after}, THING)
    return found.changed.get("f:spec", {}), found.removed.get("f:spec", {})


@pytest.mark.parametrize(
    ("before", "after", "changed", "removed"),
    [
        ({"size": 1}, {"size": 2}, {"f:size": {}}, {}),
        ({"size": 1}, {}, {}, {"f:size": {}}),
        ({}, {"obj": {"a": "1"}}, {"f:obj": {".": {}, "f:a": {}}}, {}),
        ({"obj": {}}, {"obj": {"a": "1"}}, {"f:obj": {"f:a": {}}}, {}),
        ({"obj": {"a": "1"}}, {"obj": {}}, {}, {"f:obj": {"f:a": {}}}),
        ({"obj": {}}, {}, {}, {"f:obj": {}}),
        ({}, {"obj": {}}, {"f:obj": {}}, {}),
        ({"atom": {"a": "1"}}, {"atom": {"a": "1", "b": "2"}}, {"f:atom": {}}, {}),
        ({"list": ["a"]}, {"list": ["a", "b"]}, {"f:list": {}}, {}),
        ({"set": ["a", "b"]}, {"set": ["b", "c"]}, {"f:set": {'v:"c"': {}}}, {"f:set": {'v:"a"': {}}}),
        ({"set": ["a", "b"]}, {"set": ["b", "a"]}, {}, {}),
        ({"set": []}, {"set": ["a"]}, {"f:set": {'v:"a"': {}}}, {}),
        ({"ns": None}, {"ns": "x"}, {"f:ns": {}}, {}),
        ({"map": {"a": "1"}}, {"map": {"a": "2", "b": "1"}}, {"f:map": {"f:a": {}, "f:b": {}}}, {}),
    ],
)
def test_a_change_is_found_where_it_is(before: Json, after: Json, changed: Json, removed: Json) -> None:
    assert changes(before, after) == (changed, removed)


def test_elements_of_a_list_are_known_by_their_keys_and_the_keys_defaults() -> None:
    before = {"ports": [{"port": 80, "name": "a"}, {"port": 80, "proto": "UDP"}]}
    after = {"ports": [{"port": 80, "proto": "UDP"}, {"port": 80, "proto": "TCP", "name": "b"}]}
    assert changes(before, after) == ({"f:ports": {PORT: {"f:name": {}, "f:proto": {}}}}, {})
    assert changes(before, {"ports": after["ports"][:1]}) == (
        {},
        {"f:ports": {PORT: {".": {}, "f:name": {}, "f:port": {}}}},
    )


def test_elements_that_share_a_key_are_one_field() -> None:
    twice = [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]
    assert changes({"ports": []}, {"ports": twice}) == ({"f:ports": {PORT: {}}}, {})
    assert changes({"ports": twice}, {"ports": [*twice, {"port": 81}]})[0]["f:ports"].keys() == {
        'k:{"port":81,"proto":"TCP"}'
    }
    assert changes({"ports": twice}, {"ports": [twice[0], {"port": 80, "name": "c"}]}) == ({"f:ports": {PORT: {}}}, {})
    assert changes({"ports": twice}, {"ports": twice[:1]}) == ({"f:ports": {PORT: {}}}, {})
    assert changes({"ports": twice}, {"ports": []}) == ({}, {"f:ports": {PORT: {}}})


def test_where_no_schema_says_objects_are_maps_and_lists_are_atomic() -> None:
    before = {"any": {"free": {"a": 1, "l": [1]}, "known": ["x"]}}
    after = {"any": {"free": {"a": True, "l": [1, 2]}, "known": ["y"]}}
    assert changes(before, after) == (
        {"f:any": {"f:free": {"f:a": {}, "f:l": {}}, "f:known": {'v:"y"': {}}}},
        {"f:any": {"f:known": {'v:"x"': {}}}},
    )


def test_a_value_that_becomes_an_object_or_ceases_to_be_one_has_changed_itself() -> None:
    assert changes({"any": {"m": 1}}, {"any": {"m": {"n": 1}}}) == ({"f:any": {"f:m": {".": {}, "f:n": {}}}}, {})
    assert changes({"any": {"m": {"n": 1}}}, {"any": {"m": 1}}) == (
        {"f:any": {"f:m": {}}},
        {"f:any": {"f:m": {"f:n": {}}}},
    )
    assert changes({"any": {"m": None}}, {"any": {"m": {"n": 1}}}) == ({"f:any": {"f:m": {"f:n": {}}}}, {})


NAMES = st.sampled_from(["a", "b"])
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 2),
        "set": st.lists(NAMES, unique=True),
        "map": st.dictionaries(NAMES, NAMES),
        "ports": st.lists(
            st.builds(lambda port, name: {"port": port, "name": name}, st.integers(1, 3), NAMES),
            unique_by=lambda each: each["port"],
            max_size=3,
        ),
        "any": st.dictionaries(NAMES, st.none() | st.booleans() | st.integers(0, 1) | st.lists(NAMES, max_size=2)),
    },
)


@given(SPECS, SPECS)
@EXAMPLES
def test_what_was_added_one_way_was_removed_the_other_way(one: Json, other: Json) -> None:
    there, back = compare({"spec": one}, {"spec": other}, THING), compare({"spec": other}, {"spec": one}, THING)
    assert set(paths(there.removed)) <= set(paths(back.changed))
    assert set(paths(back.removed)) <= set(paths(there.changed))
    in_both = set(paths(there.changed)) - set(paths(back.removed))
    assert in_both == set(paths(back.changed)) - set(paths(there.removed))


@given(SPECS)
@EXAMPLES
def test_an_equal_object_has_no_changes_whether_it_is_shared_or_not(spec: Json) -> None:
    assert compare({"spec": spec}, {"spec": copy.deepcopy(spec)}, THING) == ({}, {})


def test_an_unborn_object_of_a_built_in_kind_has_the_structs_that_go_always_has() -> None:
    born = unborn(DEPLOYMENTS.schema)
    assert born["spec"]["selector"] is None
    assert born["spec"]["template"]["spec"] == {"containers": None}
    assert (born["spec"]["strategy"], born["status"]) == ({}, {})
    assert "replicas" not in born["spec"]
    assert "data" not in unborn(CONFIG_MAPS.schema)


def test_an_unborn_event_has_the_nulls_and_empty_texts_that_events_show() -> None:
    event = unborn(BUILTIN["events"].schema)
    assert {key: event[key] for key in ("firstTimestamp", "eventTime", "reportingComponent", "source")} == {
        "firstTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "source": {},
    }


def test_an_unborn_custom_resource_has_nothing() -> None:
    assert unborn(THING.node) == {}
    assert unborn(of_schema({"type": "object", "properties": {"spec": {"type": "object", "default": {}}}})) == {}


def test_paths_of_changes_can_be_said() -> None:
    found = compare({"spec": {}}, {"spec": {"ports": [{"port": 80}]}}, THING).changed
    assert [text(path) for path in paths(found)] == [
        ".spec.ports",
        '.spec.ports[port=80,proto="TCP"]',
        '.spec.ports[port=80,proto="TCP"].port',
    ]
