"""CEL over a request, in the words of a real API server."""

import pytest

from kube_simulator.admission.expressions import Scope, problems
from kube_simulator.errors import ApiError
from kube_simulator.schema.expressions import EvaluationError

SCOPE = Scope({"object": {"metadata": {"name": "a"}, "spec": {"size": 3}}, "oldObject": None})


def test_an_expression_reads_what_the_request_has() -> None:
    assert SCOPE.evaluate("object.metadata.name + '!'") == "a!"
    assert SCOPE.is_true("oldObject == null && object.spec.size < 5")
    assert not SCOPE.is_true("has(object.metadata.labels)")


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("object.data.nope == 'x'", "no such key: data"),
        ("[1][2] == 1", "index out of bounds: 2"),
        ("1 / (object.spec.size - 3) == 1", "division by zero"),
        ("dyn('a') > 1", "no such overload"),
        ("object.metadata.name", "must evaluate to bool"),
    ],
)
def test_what_comes_to_nothing_says_which_expression_it_was(expression: str, why: str) -> None:
    with pytest.raises(EvaluationError) as failed:
        SCOPE.is_true(expression)
    assert str(failed.value) == f"expression '{expression}' resulted in error: {why}"


def test_named_expressions_may_use_those_before_them() -> None:
    definitions = [{"name": "x", "expression": "1 + 2"}, {"name": "y", "expression": "variables.x + 2"}]
    assert SCOPE.with_variables(definitions).is_true("variables.x == 3 && variables.y == 5")


def test_a_named_expression_that_fails_matters_to_those_who_use_it() -> None:
    scope = SCOPE.with_variables(
        [{"name": "x", "expression": "object.data.nope"}, {"name": "y", "expression": "1 + 1"}]
    )
    assert scope.is_true("variables.y == 2")
    with pytest.raises(EvaluationError, match='composited variable "x" fails to evaluate: no such key: data'):
        scope.evaluate("variables.x")


def test_conditions_hold_together_and_a_false_one_outweighs_one_that_fails() -> None:
    true, false, failing = ({"expression": each} for each in ("true", "false", "object.nope"))
    assert SCOPE.all_true([true, true])
    assert not SCOPE.all_true([true, false])
    assert not SCOPE.all_true([failing, false])
    with pytest.raises(EvaluationError, match=r"expression 'object.nope' resulted in error: no such key: nope"):
        SCOPE.all_true([true, failing])


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (
            "object..x",
            "ERROR: <input>:1:8: Syntax error: no viable alternative at input '..'\n | object..x\n | .......^",
        ),
        (
            "true &&\n  foo == 1",
            "ERROR: <input>:2:3: undeclared reference to 'foo' (in container '')\n |   foo == 1\n | ..^",
        ),
    ],
)
def test_an_expression_that_cannot_be_compiled_is_told_where(expression: str, why: str) -> None:
    [cause] = problems(expression, "spec.validations[0].expression")
    assert cause.field == "spec.validations[0].expression"
    quoted = expression.replace("\n", "\\n")
    assert cause.message == f'Invalid value: "{quoted}": compilation failed: {why}'


def test_an_expression_that_can_be_compiled_has_no_problem() -> None:
    assert problems("object.list.all(c, c.name.split(',').size() > 1)", "f") == []


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("authorizer.group('').resource('pods').check('get').allowed()", "authorizer in a CEL expression"),
        ("params.x == 1", "params in a CEL expression"),
        ("quantity('1Gi').isInteger()", "no function"),
        ("object.?spec.hasValue()", "unsupported syntax"),
    ],
)
def test_what_the_simulator_cannot_evaluate_is_501(expression: str, what: str) -> None:
    with pytest.raises(ApiError, match=what) as refused:
        problems(expression, "f")
    assert refused.value.code == 501
