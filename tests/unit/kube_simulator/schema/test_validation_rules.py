"""Rules in CEL where a real server cannot be asked: where a schema has any, and the functions of the language."""

from typing import Any

import pytest

from kube_simulator.errors import Cause
from kube_simulator.schema import custom, kubernetes
from kube_simulator.schema.expressions import CompileError, EvaluationError, compiled
from kube_simulator.schema.validation_rules import has_rules, rule_problems
from tests.unit.kube_simulator.schema.schema_parts import INTEGER, TEXT, Json, a_list, an_object, rule, ruled

SELF = frozenset({"self"})


def value_of(text: str, **variables: Any) -> Any:
    return compiled(text, frozenset(variables)).evaluate(variables)


def test_a_schema_without_rules_asks_nothing() -> None:
    plain = custom.node_of(an_object({"spec": an_object({"a": a_list(INTEGER)})}))
    deep = custom.node_of(an_object({"spec": an_object({"a": a_list(ruled(INTEGER, rule("self > 1")))})}))
    assert not has_rules(plain)
    assert has_rules(deep)
    [crds] = [each for each in kubernetes.builtin_resources() if each.plural == "customresourcedefinitions"]
    assert not has_rules(crds.schema), "which is recursive"


def test_grave_mistakes_keep_rules_from_being_checked_and_others_do_not() -> None:
    node = custom.node_of(an_object({"spec": ruled(an_object({"n": INTEGER}), rule("self.n > 2", "n"))}))
    body: Json = {"spec": {"n": 1}}
    [broken] = rule_problems(node, body, None)
    assert (broken.field, broken.message) == ("spec", "Invalid value: n")
    for reason in ("FieldValueRequired", "FieldValueTypeInvalid", "FieldValueTooMany"):
        [unchecked] = rule_problems(node, body, None, [Cause(reason, "m", "f")])
        assert unchecked.message.startswith("Invalid value: null: some validation rules were not checked because")
    assert rule_problems(node, body, None, [Cause("FieldValueInvalid", "m", "f")]) == [broken]


def test_a_message_that_cannot_be_made_gives_way_to_the_one_in_words() -> None:
    wordy = rule("self.n > 2", "plain", messageExpression="'b is ' + self.b")
    node = custom.node_of(an_object({"spec": ruled(an_object({"n": INTEGER, "b": TEXT}), wordy)}))
    assert [each.message for each in rule_problems(node, {"spec": {"n": 1, "b": "x"}}, None)] == [
        "Invalid value: b is x"
    ]
    for without in ({"n": 1}, {"n": 1, "b": "two\nlines"}):
        assert [each.message for each in rule_problems(node, {"spec": without}, None)] == ["Invalid value: plain"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'aBc'.lowerAscii() + 'aÄ'.upperAscii()", "abcAÄ"),
        ("' a '.trim()", "a"),
        ("'a,b,c'.split(',')", ["a", "b", "c"]),
        ("'a,b,c'.split(',', 2)", ["a", "b,c"]),
        ("'abc'.split('')", ["a", "b", "c"]),
        ("'abc'.split('b', 0)", []),
        ("['a', 'b'].join('-') + ['a', 'b'].join()", "a-bab"),
        ("'abcb'.replace('b', 'x') + 'abcb'.replace('b', 'x', 1)", "axcxaxcb"),
        ("'abc'.substring(1) + 'abc'.substring(0, 1)", "bca"),
        ("'abc'.charAt(1) + 'abc'.charAt(3)", "b"),
        ("['abcb'.indexOf('b'), 'abcb'.indexOf('b', 2), 'abcb'.lastIndexOf('b'), 'a'.indexOf('x')]", [1, 3, 3, -1]),
        ("[[1, 2, 1].indexOf(1), [1, 2, 1].lastIndexOf(1), [1].indexOf(2), [1].lastIndexOf(2)]", [0, 2, -1, -1]),
        ("[[1, 2].sum(), [2, 1].min(), [1, 2].max()]", [3, 1, 2]),
        ("[[1, 2].isSorted(), [2, 1].isSorted()]", [True, False]),
        ("dyn(1) == 1", True),
        ("[isQuantity('1.5Gi'), isQuantity('1e3'), isQuantity('Gi')]", [True, True, False]),
        ("quantity('1Gi').add(quantity('1Gi')).compareTo(quantity('2048Mi'))", 0),
        ("[quantity('1G').compareTo(quantity('1Gi')), quantity('1').compareTo(quantity('1m'))]", [-1, 1]),
    ],
)
def test_functions_of_kubernetes_are_there(text: str, value: Any) -> None:
    """What each gives is said in Kubernetes' documentation of its CEL libraries."""
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("self.b", "b"),
        ("self.l[3]", "index out of bounds: 3"),
        ("1 / self.a", "division by zero"),
        ("9223372036854775807 + self.one", "overflow"),
        ("self.a + 'x'", "No such overload"),
    ],
)
def test_what_cannot_be_evaluated_is_told_in_cel_s_words(text: str, problem: str) -> None:
    with pytest.raises(EvaluationError, match=problem):
        compiled(text, SELF).evaluate({"self": {"a": 0, "one": 1, "l": [1]}})


def test_names_that_a_macro_binds_need_no_variable_and_others_do() -> None:
    assert compiled("self.all(x, x > 0) && self.exists(y, y > 0)", SELF).variables == SELF
    with pytest.raises(CompileError, match="undeclared reference to 'x'"):
        compiled("self > x", SELF)
    with pytest.raises(CompileError, match="undeclared reference to 'y'"):
        compiled("self > '.all(y, '.size() + y", SELF)
