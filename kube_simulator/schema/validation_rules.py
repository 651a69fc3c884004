"""The rules in CEL of a CRD's schema (`x-kubernetes-validations`): which of them an object breaks.

A rule sees its own part of the object as `self`, and on an update, where the same part was there before, `oldSelf`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from kube_simulator.errors import Cause
from kube_simulator.schema import causes
from kube_simulator.schema.causes import join
from kube_simulator.schema.expressions import EvaluationError, Expression, compiled
from kube_simulator.schema.node import MISSING, Node
from kube_simulator.values import Json

VARIABLES: Final = frozenset({"self", "oldSelf"})
_GRAVE: Final = frozenset(
    f"FieldValue{each}" for each in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid")
)
_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
_ruled: WeakKeyDictionary[Node, bool] = WeakKeyDictionary()


def rule_problems(node: Node, new: Json, old: Json | None, found: Sequence[Cause] = ()) -> list[Cause]:
    """The rules that an object breaks.

    Args:
        node: The schema of the whole object.
        new: The object as it would be stored.
        old: The object that it replaces; None where it is new.
        found: What else is wrong with it. Where that is grave, as Kubernetes sees it, no rule is checked, and that is
            said in a cause of its own.
    """
    if not has_rules(node):
        return []
    if any(cause.reason in _GRAVE for cause in found):
        return [causes.invalid(causes.NO_FIELD, None, _NOT_CHECKED)]
    return list(_broken(node, new, MISSING if old is None else old, ""))


def has_rules(node: Node) -> bool:
    """Report whether a rule stands anywhere in a schema."""
    known = _ruled.get(node)
    if known is None:
        children = [] if node.ref else [*node.properties.values(), node.additional, node.items()]
        children += [] if node.ref else node.alternatives("allOf")
        known = bool(node.raw.get("x-kubernetes-validations")) or any(
            has_rules(child) for child in children if child is not None
        )
        _ruled[node] = known
    return known


def expression_of(text: str) -> Expression:
    """A rule's expression, or that of its message. Raises CompileError."""
    return compiled(text.strip(), VARIABLES)


def _broken(node: Node, new: Any, old: object, path: str) -> Iterator[Cause]:
    if new is None or not has_rules(node):
        return
    for rule in node.raw.get("x-kubernetes-validations") or ():
        yield from _judged(node, rule, new, old, path)
    for part in node.alternatives("allOf"):
        yield from _broken(part, new, old, path)
    if isinstance(new, dict):
        before = old if isinstance(old, dict) else {}
        for name, each in new.items():
            child = node.field(name)
            if child is not None and not child.ref:
                at = join(path, name) if name in node.properties else f"{path}[{name}]"
                yield from _broken(child, each, before.get(name, MISSING), at)
    elif isinstance(new, list) and (item := node.items()) is not None:
        for index, each in enumerate(new):
            yield from _broken(item, each, MISSING, f"{path}[{index}]")


def _judged(node: Node, rule: Json, new: object, old: object, path: str) -> Iterator[Cause]:
    expression = expression_of(rule["rule"])
    values = {"self": _value(node, new)}
    if "oldSelf" in expression.variables:
        if old is MISSING or old is None:
            return
        values["oldSelf"] = _value(node, old)
    try:
        if expression.evaluate(values) is not True:
            yield _cause(rule, path)
    except EvaluationError as error:
        yield causes.invalid(path or causes.NO_FIELD, node.type, f"{error} evaluating rule: {rule['rule'].strip()}")


def _cause(rule: Json, path: str) -> Cause:
    at = join(path, (rule.get("fieldPath") or "").removeprefix(".")).removesuffix(".") or causes.NO_FIELD
    message = (rule.get("message") or "").strip() or f"failed rule: {rule['rule'].strip()}"
    return Cause(rule.get("reason") or "FieldValueInvalid", f"Invalid value: {message}", at)


def _value(node: Node, value: Any, *, metadata: bool = False) -> Any:
    """A value as CEL sees it by its schema: of objects the known fields."""
    if isinstance(value, dict):
        if node.additional is not None:
            return {name: _value(node.additional, each) for name, each in value.items()}
        shown = ("name", "generateName") if metadata else value
        return {
            name: _value(child, value[name], metadata=node.embedded and name == "metadata")
            for name in shown
            if name in value and (child := node.properties.get(name)) is not None
        }
    if isinstance(value, list):
        item = node.items()
        return [each if item is None else _value(item, each) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if node.type == "number" else int(value) if node.type == "integer" else value
    return value
