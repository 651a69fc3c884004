"""What the simulator says of values and rules, held against what a real API server said of the same."""

import json
from typing import Any

import pytest

from kube_simulator.errors import Cause
from kube_simulator.schema import custom
from kube_simulator.schema.node import MISSING, Node
from kube_simulator.schema.structural import default, prune, validate
from kube_simulator.schema.validation_rules import rule_problems
from tests.unit.kube_simulator.schema import questions_rules, questions_values
from tests.unit.kube_simulator.schema.questions import ANSWERS
from tests.unit.kube_simulator.schema.schema_parts import Json, custom as an_object_of, merged

RECORDED: dict[str, list[Json]] = json.loads(ANSWERS.read_text())


def reported(causes: list[Cause]) -> list[list[str]]:
    return sorted([cause.reason, cause.field, cause.message] for cause in causes)


def recorded(answer: Json) -> list[list[str]]:
    return sorted(answer.get("causes", []))


def judged(node: Node, sent: Json, old: Json | None = None) -> list[list[str]]:
    """The causes at the end of the way that a custom resource takes."""
    kept, _ = prune(node, sent)
    new = default(node, kept)
    causes = validate(node, new, old=MISSING if old is None else old)
    return reported([*causes, *rule_problems(node, new, old, causes)])


def as_go_writes(value: Any) -> Any:
    """With whole floats as integers: JSON of Go has no 3.0."""
    if isinstance(value, dict):
        return {key: as_go_writes(each) for key, each in value.items()}
    if isinstance(value, list):
        return [as_go_writes(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


VALUES = custom.node_of(questions_values.VALUES)


@pytest.mark.parametrize("answer", RECORDED["values"], ids=lambda answer: f"{answer['field']}={answer['value']!r:.40}")
def test_a_value_is_taken_changed_or_refused_as_by_kubernetes(answer: Json) -> None:
    sent = an_object_of("Probe", "p", {answer["field"]: answer["value"]})
    kept, unknown = prune(VALUES, sent)
    new = default(VALUES, kept)
    assert reported(validate(VALUES, new)) == recorded(answer)
    if "causes" not in answer:
        assert as_go_writes(new["spec"].get(answer["field"])) == answer["stored"]
    if "unknown" in answer or not answer.get("causes"):
        assert ", ".join(f'unknown field "{path}"' for path in unknown) == answer.get("unknown", "")


RULED = custom.node_of(questions_rules.RULES)


@pytest.mark.parametrize(
    "answer", RECORDED["rules"], ids=lambda answer: f"{answer.get('spec') or answer.get('change')}"
)
def test_a_rule_is_broken_where_kubernetes_says_so(answer: Json) -> None:
    if "change" in answer:
        old = an_object_of("Rule", "u", questions_rules.STANDING)
        assert judged(RULED, merged(old, answer["change"]), old) == recorded(answer)
    else:
        assert judged(RULED, an_object_of("Rule", answer.get("name", "p"), answer["spec"])) == recorded(answer)


TIGHTENED = custom.node_of(questions_rules.TIGHT)


@pytest.mark.parametrize("answer", RECORDED["ratchets"], ids=lambda answer: f"{answer['change']}")
def test_what_was_wrong_before_and_has_not_changed_is_let_pass(answer: Json) -> None:
    old = an_object_of("Ratchet", "r", questions_rules.OLDER)
    assert judged(TIGHTENED, merged(old, answer["change"]), old) == recorded(answer)


def test_every_question_has_an_answer() -> None:
    """A question that was added since the answers were written down would go unasked otherwise."""
    requested = [(field, value) for field, (_, values) in questions_values.FIELDS.items() for value in values]
    assert json.dumps(requested) == json.dumps([[each["field"], each["value"]] for each in RECORDED["values"]])
    changes = [each["change"] for each in RECORDED["ratchets"]]
    assert changes == questions_rules.RATCHETS
    assert [each["spec"] for each in RECORDED["rules"] if "spec" in each] == [*questions_rules.RULED, {}]
