import copy
from typing import Any

from hypothesis import given, strategies as st

from kube_simulator.patches.merge import merge_patch
from tests.unit.kube_simulator.patches.support import EXAMPLES

LEAVES = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["a", "b"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from("xyz"), VALUES, max_size=2)


def by_the_rfc(target: Any, patch: Any) -> Any:
    """The pseudocode of RFC 7386, section 2."""
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = by_the_rfc(target.get(name), value)
    return target


def typed(value: Any) -> Any:
    """A value that tells true from 1, as JSON does and Python's equality does not."""
    if isinstance(value, dict):
        return {key: typed(each) for key, each in value.items()}
    return [typed(each) for each in value] if isinstance(value, list) else (type(value), value)


@given(OBJECTS, OBJECTS)
@EXAMPLES
def test_a_merge_patch_does_what_the_rfc_says_and_leaves_its_arguments_alone(target: Any, patch: Any) -> None:
    before = copy.deepcopy((target, patch))
    assert typed(merge_patch(target, patch)) == typed(by_the_rfc(target, patch))
    assert typed((target, patch)) == typed(before)


@given(OBJECTS, OBJECTS)
@EXAMPLES
def test_a_merge_patch_that_changes_nothing_gives_the_target_itself(target: Any, patch: Any) -> None:
    merged = merge_patch(target, patch)
    assert (merged is target) == (typed(merged) == typed(target))


def test_what_a_patch_does_not_touch_is_shared() -> None:
    target = {"spec": {"deep": {"size": 1}}, "status": {"ready": 1}}
    merged = merge_patch(target, {"status": {"ready": 2}})
    assert merged == {"spec": {"deep": {"size": 1}}, "status": {"ready": 2}}
    assert merged["spec"] is target["spec"]


def test_nulls_in_a_new_object_are_dropped_and_in_a_list_they_stay() -> None:
    assert merge_patch({}, {"a": {"b": None, "c": [None]}}) == {"a": {"c": [None]}}


def test_true_in_the_place_of_1_is_a_change() -> None:
    assert merge_patch({"a": 1}, {"a": True})["a"] is True
