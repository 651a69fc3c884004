"""The grammar of label selectors. All expectations, and the words, are answers of a real API server."""

from __future__ import annotations

import pytest

from kube_simulator.errors import ApiError
from kube_simulator.store.label_selectors import (
    from_label_selector,
    parse_labels,
)
from kube_simulator.values import Json

NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)

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
    ("selector", "message"),
    [
        ("color in red", "unable to parse requirement: found 'red' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a<=5", "unable to parse requirement: found '=', expected: identifier"),
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a=b,,c", "found ',', expected: identifier after ','"),
        (
            "a > x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be "
            "an integer",
        ),
        (
            "a>",
            "unable to parse requirement: values[0]: Invalid value: \"\": for 'Gt', 'Lt' operators, the value must be "
            "an integer",
        ),
        ("a<-1", f'unable to parse requirement: values[0][a]: Invalid value: "-1": {VALUE}'),
        ("-a", f'unable to parse requirement: <nil>: Invalid value: "-a": {NAME}'),
        ("/x", 'unable to parse requirement: <nil>: Invalid value: "/x": prefix part must be non-empty'),
        (
            "a in (-b,c,-d)",
            f'unable to parse requirement: [values[0][a]: Invalid value: "-b": {VALUE}, '
            f'values[1][a]: Invalid value: "-d": {VALUE}]',
        ),
    ],
)
def test_what_cannot_be_read_is_400_in_the_words_of_kubernetes(selector: str, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_labels(selector)
    assert (refused.value.code, refused.value.message) == (400, message)


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
