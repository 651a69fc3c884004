"""Label selectors of objects: what is wrong with them, what they select, how they are written."""

from __future__ import annotations

from kube_simulator.kinds.selectors import (
    is_empty,
    selector_problems,
    selector_shown,
    selector_text,
    selects,
)
from kube_simulator.values import Json
from tests.unit.kube_simulator.kinds.kinds_support import LABEL_VALUE, NAME_PART


def wrong(selector: Json) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in selector_problems(selector, "s")]


def expression(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


def test_keys_values_and_operators_are_good() -> None:
    assert wrong({"matchLabels": {"a": "b"}, **expression("a", "NotIn", "b", "")}) == []
    assert wrong({"matchLabels": {"-": "x y"}}) == [
        f's.matchLabels: Invalid value: "-": {NAME_PART}',
        f's.matchLabels: Invalid value: "x y": {LABEL_VALUE}',
    ]
    at = "s.matchExpressions[0]"
    assert wrong(expression("a", "Foo")) == [f'{at}.operator: Invalid value: "Foo": not a valid selector operator']
    assert wrong(expression("a", "In")) == [
        f"{at}.values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
    ]
    assert wrong(expression("a", "Exists", "b")) == [
        f"{at}.values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
    ]
    assert wrong(expression("a", "In", "x y")) == [f'{at}.values[0]: Invalid value: "x y": {LABEL_VALUE}']
    assert wrong(expression("", "Exists")) == [
        f'{at}.key: Invalid value: "": name part must be non-empty',
        f'{at}.key: Invalid value: "": {NAME_PART}',
    ]


def test_a_selector_selects_by_all_that_it_says() -> None:
    selector = {"matchLabels": {"a": "b"}, **expression("c", "In", "d", "e")}
    assert selects(selector, {"a": "b", "c": "e", "x": "y"})
    assert not selects(selector, {"a": "b", "c": "f"})
    assert not selects(selector, {"c": "d"})
    assert is_empty({})
    assert is_empty({"matchLabels": {}})
    assert not is_empty(selector)


def test_a_selector_as_text_is_sorted_by_key() -> None:
    expressions = [
        {"key": "d", "operator": "DoesNotExist"},
        {"key": "b", "operator": "NotIn", "values": ["y", "x"]},
        {"key": "e", "operator": "Exists"},
        {"key": "a", "operator": "In", "values": ["x"]},
    ]
    assert (
        selector_text({"matchLabels": {"c": "1"}, "matchExpressions": expressions}) == "a in (x),b notin (x,y),c=1,!d,e"
    )
    assert selector_text(None) == selector_text({}) == ""


def test_a_selector_in_a_message_has_its_fields_in_their_order() -> None:
    shown = selector_shown({"matchExpressions": [{"operator": "Exists"}], "matchLabels": {"b": "1", "a": "2"}})
    assert [list(shown), list(shown["matchLabels"])] == [["matchLabels", "matchExpressions"], ["a", "b"]]
    assert shown["matchExpressions"] == [{"key": "", "operator": "Exists"}]
