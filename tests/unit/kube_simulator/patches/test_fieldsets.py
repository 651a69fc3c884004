from typing import Any

import pytest
from hypothesis import given, strategies as st

from kube_simulator.patches.fieldsets import (
    ALONE,
    EMPTY,
    Fields,
    canonical,
    difference,
    intersection,
    paths,
    text,
    union,
    without_trees,
)
from tests.unit.kube_simulator.patches.support import EXAMPLES

STEPS = ("f:a", "f:b", 'k:{"name":"x"}', 'v:"y"')
Paths = frozenset[tuple[str, ...]]
SETS = st.frozensets(st.lists(st.sampled_from(STEPS), min_size=1, max_size=3).map(tuple), max_size=6)


def tree(desired: Paths) -> Fields:
    """The set as a tree, built by hand from the paths in it."""
    root: Fields = {}
    for path in desired:
        below = root
        for step in path:
            below = below.setdefault(step, {})
        below["."] = {}

    def tidied(fields: Fields) -> Fields:
        return {} if fields.keys() == {"."} else {step: tidied(below) for step, below in fields.items()}

    return tidied(root)


@given(SETS)
@EXAMPLES
def test_a_set_gives_the_paths_that_it_was_made_of(desired: Paths) -> None:
    assert frozenset(paths(tree(desired))) == desired
    assert canonical(tree(desired)) == tree(desired)


@given(SETS, SETS)
@EXAMPLES
def test_the_operations_are_those_of_sets(one: Paths, other: Paths) -> None:
    assert union(tree(one), tree(other)) == tree(one | other)
    assert difference(tree(one), tree(other)) == tree(one - other)
    assert intersection(tree(one), tree(other)) == tree(one & other)


@given(SETS, SETS)
@EXAMPLES
def test_an_operation_that_changes_nothing_gives_the_first_set_itself(one: Paths, other: Paths) -> None:
    first, second = tree(one), tree(other)
    if one:
        assert (union(first, second) is first) == (other <= one)
        assert (difference(first, second) is first) == (not one & other)


def test_a_field_leaves_without_what_is_beneath_it() -> None:
    both: Fields = {"f:data": {".": {}, "f:k": {}}}
    assert difference(both, {"f:data": {}}) == {"f:data": {"f:k": {}}}
    assert difference(both, {"f:data": {"f:k": {}}}) == {"f:data": {}}
    assert without_trees(both, {"f:data": ALONE}) == EMPTY


def test_trees_leave_with_all_that_is_beneath_them() -> None:
    fields = {"f:metadata": {"f:labels": {"f:a": {}}, "f:name": {}}, "f:status": {".": {}, "f:ready": {}}, "f:spec": {}}
    assert without_trees(fields, {"f:status": ALONE, "f:metadata": {"f:labels": ALONE}}) == {
        "f:metadata": {"f:name": {}},
        "f:spec": {},
    }
    assert without_trees({"f:metadata": {".": {}, "f:labels": {}}}, {"f:metadata": {"f:labels": ALONE}}) == {
        "f:metadata": {}
    }
    assert without_trees(fields, {"f:absent": ALONE, "f:spec": {"f:deeper": ALONE}}) is fields


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("f:data", "f:k"), ".data.k"),
        (("f:metadata", "f:labels", "f:app.kubernetes.io/name"), ".metadata.labels.app.kubernetes.io/name"),
        (("f:spec", "f:containers", 'k:{"name":"web"}', "f:image"), '.spec.containers[name="web"].image'),
        (("f:ports", 'k:{"containerPort":80,"protocol":"TCP"}'), '.ports[containerPort=80,protocol="TCP"]'),
        (("f:metadata", "f:finalizers", 'v:"a.b/c"'), '.metadata.finalizers[="a.b/c"]'),
        (("f:list", "i:3"), ".list[3]"),
    ],
)
def test_a_path_is_said_as_conflicts_say_it(path: tuple[str, ...], expected: str) -> None:
    assert text(path) == expected


def test_what_a_client_wrote_is_put_into_our_form() -> None:
    """A kube-apiserver v1.36.3 makes of it the same, but for the order of steps."""
    sent: Fields = {
        "x:unknown": {},
        "f:data": {"f:k": {".": {}}},
        "f:metadata": {"f:finalizers": {'k:{"b":1, "a":2}': {}, "i:03": {}, 'v: "b"': {}}},
    }
    assert canonical(sent) == {
        "f:data": {"f:k": {}},
        "f:metadata": {"f:finalizers": {'k:{"a":2,"b":1}': {}, 'v:"b"': {}, "i:3": {}}},
    }


@pytest.mark.parametrize(
    "unreadable", [5, [], {"f:a": 5}, {"f:a": None}, {"bare": {}}, {"k:{}": {}}, {"k:[]": {}}, {"v:x": {}}, {"i:x": {}}]
)
def test_what_cannot_be_read_is_an_error(unreadable: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        canonical(unreadable)
