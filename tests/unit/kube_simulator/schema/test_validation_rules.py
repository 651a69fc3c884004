"""Rules in CEL where a real server cannot be asked: where a schema has any, and the functions of the language."""

import pytest

from kube_simulator.errors import Cause
from kube_simulator.schema import custom, kubernetes
from kube_simulator.schema.expressions import CompileError, compiled
from kube_simulator.schema.validation_rules import has_rules, rule_problems
from tests.unit.kube_simulator.schema.schema_parts import INTEGER, TEXT, Json, a_list, an_object, rule, ruled

SELF = frozenset({"self"})


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


def test_names_that_a_macro_binds_need_no_variable_and_others_do() -> None:
    assert compiled("self.all(x, x > 0) && self.exists(y, y > 0)", SELF).variables == SELF
    with pytest.raises(CompileError, match="undeclared reference to 'x'"):
        compiled("self > x", SELF)
    with pytest.raises(CompileError, match="undeclared reference to 'y'"):
        compiled("self > '.all(y, '.size() + y", SELF)
