"""Rules in CEL where a real server cannot be asked: where a schema has any, and the functions of the language."""

import pytest

from kube_simulator.errors import Cause
from kube_simulator.schema import custom, kubernetes
from kube_simulator.schema.expressions import CompileError, compiled
from kube_simulator.schema.validation_rules import has_rules, rule_problems
from tests.unit.kube_simulator.schema.schema_parts import INTEGER, a_list, an_object, rule, ruled

SELF = frozenset({"self"})


def test_a_schema_without_rules_asks_nothing() -> None:
    plain = custom.node_of(an_object({"spec": an_object({"a": a_list(INTEGER)})}))
    deep = custom.node_of(an_object({"spec": an_object({"a": a_list(ruled(INTEGER, rule("self > 1")))})}))
    assert not has_rules(plain)
    assert has_rules(deep)
    [crds] = [each for each in kubernetes.builtin_resources() if each.plural == "customresourcedefinitions"]
    assert not has_rules(crds.schema), "which is recursive"


def test_a_broken_rule_is_told_by_its_field_reason_and_message() -> None:
    node = custom.node_of(an_object({"spec": ruled(an_object({"n": INTEGER}), rule("self.n > 2", "n"))}))
    [broken] = rule_problems(node, {"spec": {"n": 1}}, None)
    assert broken == Cause("FieldValueInvalid", "Invalid value: n", "spec")


def test_names_that_a_macro_binds_need_no_variable_and_others_do() -> None:
    assert compiled("self.all(x, x > 0) && self.exists(y, y > 0)", SELF).variables == SELF
    with pytest.raises(CompileError, match="undeclared reference to 'x'"):
        compiled("self > x", SELF)
    with pytest.raises(CompileError, match="undeclared reference to 'y'"):
        compiled("self > '.all(y, '.size() + y", SELF)
