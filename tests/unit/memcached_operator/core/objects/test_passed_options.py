"""In what parts differ, by a table."""

from __future__ import annotations

from typing import Any

import pytest

from memcached_operator.api.reserved_pod_fields import keyed
from memcached_operator.core.objects.passed_options import drift, unequal
from operator_runtime import Entry

DRIFT: dict[str, tuple[Any, Any, list[str]]] = {
    "the same": ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, []),
    "what the API server fills in": ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}, []),
    "what it fills into a list": ({"sources": [{"a": {}}]}, {"sources": [{"a": {"mode": 420}}]}, []),
    "another value": ({"a": {"b": 1}}, {"a": {"b": 2}}, ["part.a.b"]),
    "a list that is longer": ({"args": ["a"]}, {"args": ["a", "b"]}, ["part.args"]),
    "a variable more": ({"env": [{"name": "A"}]}, {"env": [{"name": "B"}, {"name": "A"}]}, []),
    "a variable less": ({"env": [{"name": "A"}, {"name": "B"}]}, {"env": [{"name": "A"}]}, ["part.env[B]"]),
    "another variable": ({"env": [{"name": "A", "v": 1}]}, {"env": [{"name": "A", "v": 2}]}, ["part.env[A].v"]),
    "an entry called as lists are": ({"volumes": [{"name": "env"}]}, {"volumes": [{"name": "env", "a": 1}]}, []),
    "one that admission added": ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}, {"key": "a"}]}, []),
    "one that was taken away": ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, ["part.tolerations"]),
    "a label": ({"labels": {"a.b": "c"}}, {"labels": {"a.b": "d"}}, ["part.labels[a.b]"]),
    "a part that is gone": ({"a": 1}, None, ["part"]),
    "a part that must not be there": (None, {"a": 1}, ["part"]),
}


@pytest.mark.parametrize(("desired", "live", "expected"), DRIFT.values(), ids=DRIFT)
def test_a_part_is_compared_in_what_is_desired_of_it(desired: Any, live: Any, expected: list[str]) -> None:
    assert [each.path for each in drift(keyed(desired), keyed(live), keyed(desired), ("part",))] == expected


def test_a_list_that_was_changed_is_compared_as_a_whole_as_something_may_have_been_taken_out_of_it() -> None:
    for part, former in (
        ({"sources": [{"a": {}}]}, {"sources": [{"a": {"mode": 420}}]}),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}, {"key": "a"}]}),
    ):
        assert [each.path for each in drift(part, former, former)] == [*part]
        assert [*drift(part, former, part)] == []
        assert [each.path for each in drift(part, former, None)] == [*part], "nobody knows what it was"


UNEQUAL: dict[str, tuple[Any, Any, list[str]]] = {
    "the same": ({"a": [1]}, {"a": [1]}, []),
    "a value": ({"a": {"b": 1}}, {"a": {"b": 2}}, ["a.b"]),
    "a part more": ({"tls": {"secretName": "a"}}, {}, ["tls"]),
    "a part less": ({}, {"tls": {"secretName": "a"}}, ["tls"]),
    "a label where there was none": ({"labels": {"a": "b"}}, {}, ["labels[a]"]),
    "a container less": ({}, {"containers": [{"name": "a"}]}, ["containers[a]"]),
    "a variable": (
        {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}]}]},
        {"containers": [{"name": "a", "env": [{"name": "X", "value": "2"}]}]},
        ["containers[a].env[X].value"],
    ),
    "a list": ({"args": ["a"]}, {"args": ["a", "b"]}, ["args"]),
}


@pytest.mark.parametrize(("desired", "former", "expected"), UNEQUAL.values(), ids=UNEQUAL)
def test_all_that_is_unequal_is_named_from_either_side(desired: Any, former: Any, expected: list[str]) -> None:
    one, other = keyed(desired), keyed(former)
    assert [each.path for each in unequal(one, other)] == expected
    assert [(each.path, each.live, each.desired) for each in unequal(other, one)] == [
        (each.path, each.desired, each.live) for each in unequal(one, other)
    ]


def test_entries_are_reached_by_the_fields_that_kubernetes_knows_them_by() -> None:
    desired = {"containers": [{"name": "env", "volumeMounts": [{"mountPath": "/a.b/=,c", "name": "x"}]}]}
    live = {"containers": [{"name": "env", "volumeMounts": [{"mountPath": "/a.b/=,c", "name": "y"}]}]}
    (found,) = drift(keyed(desired), keyed(live), None, ("spec",))
    assert found.steps == (
        *("spec", "containers", Entry("name", "env"), "volumeMounts", Entry("mountPath", "/a.b/=,c"), "name"),
    )


@pytest.mark.parametrize("name", ["env", "spec", "labels"])
def test_a_label_that_is_called_as_a_field_is_a_text(name: str) -> None:
    [added] = unequal({"labels": {name: "a"}}, {})
    [removed] = unequal({}, {"labels": {name: "a"}})
    assert [(each.path, each.desired, each.live) for each in (added, removed)] == [
        (f"labels[{name}]", "a", None),
        (f"labels[{name}]", None, "a"),
    ]
