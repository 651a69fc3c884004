import pytest

from kube_simulator.patches.values import go_type, printed, same, written


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, 1.0), ({"a": [1, {}]}, {"a": [1.0, {}]}), (None, None), ("x", "x"), ([], []), (False, False)],
)
def test_values_that_json_does_not_tell_apart_are_the_same(one: object, other: object) -> None:
    assert same(one, other)
    assert same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        (0, None),
        ("", None),
        ([], {}),
        ([1], [True]),
        ([1], [1, 2]),
        ({"a": 1}, {"a": True}),
        ({"a": None}, {}),
        ({"a": 1}, {"b": 1}),
        ("1", 1),
    ],
)
def test_values_of_other_types_or_contents_are_not(one: object, other: object) -> None:
    assert not same(one, other)
    assert not same(other, one)


def test_values_are_printed_as_go_prints_them() -> None:
    """The words of a kube-apiserver v1.36.3 about such values."""
    assert printed({"b": "x", "a": [1.5, "q", {"c": None}], "t": True}) == "map[a:[1.5 q map[c:<nil>]] b:x t:true]"
    value = {"b": 1.5, "c": "q", "d": None, "e": [1, "x", True]}
    assert (
        written(value)
        == 'map[string]interface {}{"b":1.5, "c":"q", "d":interface {}(nil), "e":[]interface {}{1, "x", true}}'
    )


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "<nil>"),
        ({}, "map[string]interface {}"),
        ([], "[]interface {}"),
        (True, "bool"),
        (1, "int64"),
        (1.5, "float64"),
        ("", "string"),
    ],
)
def test_types_have_the_names_that_go_gives_them(value: object, name: str) -> None:
    assert go_type(value) == name
