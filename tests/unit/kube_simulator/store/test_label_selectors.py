"""The grammar of label selectors. All expectations are answers of a real API server."""

from __future__ import annotations

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.store.label_selectors import (
    from_label_selector,
    parse_labels,
)
from kube_simulator.values import Json

OBJECTS = {
    "a": {"color": "red", "size": "1"},
    "b": {"color": "red", "size": "2"},
    "c": {"color": "green"},
    "d": {},
    "e": {"color": "", "in": "in"},
    "f": {"size": "ten", "example.com/x": "y"},
}


def selected(text: str) -> str:
    labels = parse_labels(text)
    return "".join(name for name, of_object in OBJECTS.items() if labels.matches(of_object))


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", "abcdef"),
        ("color=red", "ab"),
        ("color!=red", "cdef"),
        ("color", "abce"),
        ("!color", "df"),
        ("color in (red,green)", "abc"),
        ("color notin (red)", "cdef"),
        ("color\tnotin\r\n( red , green )", "def"),
        ("color=red,size=1", "a"),
        ("color=", "e"),
        ("color!=", "abcdf"),
        ("color in ()", "e"),
        ("color in (,green)", "ce"),
        ("in", "e"),
        ("in=in", "e"),
        ("!in,!color", "df"),
        ("size>1", "b"),
        ("size > 0, size < 2", "a"),
        ("example.com/x=y", "f"),
    ],
)
def test_what_is_selected(selector: str, expected: str) -> None:
    assert selected(selector) == expected


@pytest.mark.parametrize(
    "selector",
    [
        *("color in red", "a in (", "a in (b c)", "a b", "!", "a<=5", "=b", "a=b c", "a=b,,c"),
        *("a > x", "a>", "a<-1", "-a", "/x", "a in (-b,c,-d)"),
    ],
)
def test_what_cannot_be_read_is_400(selector: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_labels(selector)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, "abcdef"),
        ({"matchLabels": {"color": "red", "size": "2"}}, "b"),
        ({"matchExpressions": [{"key": "color", "operator": "In", "values": ["red", "green"]}]}, "abc"),
        ({"matchExpressions": [{"key": "color", "operator": "NotIn", "values": ["red"]}]}, "cdef"),
        ({"matchExpressions": [{"key": "size", "operator": "Exists"}]}, "abf"),
        ({"matchLabels": {"color": "red"}, "matchExpressions": [{"key": "size", "operator": "DoesNotExist"}]}, ""),
        ({"matchLabels": None, "matchExpressions": None}, "abcdef"),
    ],
)
def test_a_label_selector_of_an_object(selector: Json, expected: str) -> None:
    labels = from_label_selector(selector)
    assert "".join(name for name, of_object in OBJECTS.items() if labels.matches(of_object)) == expected
