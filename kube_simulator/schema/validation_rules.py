"""The rules in CEL of a CRD's schema (`x-kubernetes-validations`): which of them an object breaks.

A rule sees its own part of the object as `self`, and on an update, where the same part was there before, `oldSelf`.
What broke a rule before an update and has not changed is let pass (ratcheting).

Differs from Kubernetes: what is let pass is not warned of; sets and map lists are equal only in the same order; see
also `expressions`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from weakref import WeakKeyDictionary

from kube_simulator.errors import Cause
from kube_simulator.schema import schema_causes
from kube_simulator.schema.exact_values import identical, join
from kube_simulator.schema.expressions import (
    CompileError,
    EvaluationError,
    Expression,
    compiled,
    optional_value,
)
from kube_simulator.schema.node import MISSING, Node
from kube_simulator.schema.uniqueness import correlated
from kube_simulator.values import Json

VARIABLES: Final = frozenset({"self", "oldSelf"})
_BLOCKING: Final = frozenset(f"FieldValue{each}" for each in ("NotSupported", "Required", "TooLong", "TooMany"))
_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
# Names that CEL keeps for itself, which a rule writes as __name__.
_RESERVED: Final = frozenset(
    {"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"}
    | {"let", "loop", "package", "namespace", "return", "var", "void", "while"}
)
_ESCAPES: Final = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_DURATION: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_UNIT_S: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_PATH_PART: Final = re.compile(r"\.([A-Za-z_$][\w$-]*)|\['((?:[^'\\]|\\.)*)'\]")

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
    if any(cause.reason in _BLOCKING or cause.reason == "FieldValueTypeInvalid" for cause in found):
        return [schema_causes.invalid(schema_causes.NO_FIELD, None, _NOT_CHECKED)]
    return list(_broken(node, new, MISSING if old is None else old, "", _Ancestor(MISSING, MISSING)))


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


def field_path(node: Node, text: str) -> str | None:
    """A rule's `fieldPath` as causes write it (`spec.size`, `labels[app]`); None where the schema has no such field."""
    at, written, position = node, "", 0
    while position < len(text):
        match = _PATH_PART.match(text, position)
        name = (match[1] or match[2]) if match else None
        child = at.field(name) if name and at.type == "object" else None
        if match is None or name is None or child is None or (at is node and node.embedded and name == "metadata"):
            return None
        written += f".{name}" if name in at.properties else f"[{name}]"
        at, position = child, match.end()
    return written.removeprefix(".") or None


@dataclass(frozen=True, slots=True)
class _Ancestor:
    """The nearest part around that was there before an update, as it is and as it was."""

    new: object
    old: object

    @property
    def unchanged(self) -> bool:
        return self.old is not MISSING and identical(self.new, self.old)


def _broken(node: Node, new: Any, old: object, path: str, around: _Ancestor) -> Iterator[Cause]:
    if new is None or not has_rules(node):
        return
    nearest = around if old is MISSING else _Ancestor(new, old)
    rules = node.raw.get("x-kubernetes-validations") or ()
    if rules:
        self_value = _value(node, new)
        old_value = None if old is MISSING or old is None else _value(node, old)
        for rule in rules:
            yield from _judged(node, rule, new, self_value, old_value, path, nearest)
    for part in node.alternatives("allOf"):
        yield from _broken(part, new, old, path, around)
    if isinstance(new, dict):
        before = old if isinstance(old, dict) else {}
        for name, each in new.items():
            child = node.field(name)
            if child is not None and not child.ref:
                at = join(path, name) if name in node.properties else f"{path}[{name}]"
                yield from _broken(child, each, before.get(name, MISSING), at, nearest)
    elif isinstance(new, list) and (item := node.items()) is not None:
        before_of = correlated(node, old)
        for index, each in enumerate(new):
            yield from _broken(item, each, before_of(each), f"{path}[{index}]", nearest)


def _judged(
    node: Node, rule: Json, new: object, self_value: object, old_value: object, path: str, nearest: _Ancestor
) -> Iterator[Cause]:
    expression = expression_of(rule["rule"])
    optional, transition = rule.get("optionalOldSelf") is True, "oldSelf" in expression.variables
    if transition and old_value is None and not optional:
        return
    values = {"self": self_value}
    if optional:
        values["oldSelf"] = optional_value(old_value)
    elif transition:
        values["oldSelf"] = old_value
    text = (rule.get("message") or "").strip() or rule["rule"].strip()
    try:
        if expression.evaluate(values) is True:
            return
    except EvaluationError as error:
        overload = "no such overload" in str(error)
        words = "call arguments did not match a supported operator, function or macro signature for rule"
        why = f"'{error}': {words}: {text}" if overload else f"{error} evaluating rule: {text}"
        yield schema_causes.invalid(path or schema_causes.NO_FIELD, node.type, why)
        return
    if transition or not nearest.unchanged:
        yield _cause(node, rule, new, path, _message(rule, values))


def _message(rule: Json, values: dict[str, object]) -> str:
    text = rule.get("messageExpression")
    if text:
        try:
            message = expression_of(text).evaluate(values)
        except EvaluationError:
            message = None
        if isinstance(message, str) and message.strip() and "\n" not in message:
            return message
    return (rule.get("message") or "").strip() or f"failed rule: {rule['rule'].strip()}"


def _cause(node: Node, rule: Json, value: object, path: str, message: str) -> Cause:
    beneath = field_path(node, rule["fieldPath"]) if rule.get("fieldPath") else ""
    at = (f"{path}{beneath}" if beneath and beneath.startswith("[") else join(path, beneath or "")) if beneath else path
    at = at or schema_causes.NO_FIELD
    whole = node.type in ("object", "array")  # too much to show
    match rule.get("reason"):
        case "FieldValueRequired":
            return schema_causes.required(at, message)
        case "FieldValueForbidden":
            return schema_causes.forbidden(at, message)
        case "FieldValueDuplicate":
            return Cause("FieldValueDuplicate", "Duplicate value", at) if whole else schema_causes.duplicate(at, value)
    if whole:
        return Cause("FieldValueInvalid", f"Invalid value: {message}", at)
    return schema_causes.invalid(at, value, message)


def escaped(name: str) -> str:
    """A field's name as a rule must write it: `a-b` is `a__dash__b`, `in` is `__in__`."""
    if name in _RESERVED:
        return f"__{name}__"
    for part, written in _ESCAPES:
        name = name.replace(part, written)
    return name


def _value(node: Node, value: Any, *, metadata: bool = False) -> Any:
    """A value as CEL sees it by its schema: times, durations and bytes as such, and of objects the known fields."""
    if isinstance(value, dict):
        if node.additional is not None:
            return {name: _value(node.additional, each) for name, each in value.items()}
        shown = ("name", "generateName") if metadata else value
        return {
            escaped(name): _value(child, value[name], metadata=node.embedded and name == "metadata")
            for name in shown
            if name in value and (child := node.properties.get(name)) is not None
        }
    if isinstance(value, list):
        item = node.items()
        return [each if item is None else _value(item, each) for each in value]
    if isinstance(value, str):
        return _text_value(node.format if node.type == "string" else "", value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if node.type == "number" else int(value) if node.type == "integer" else value
    return value


def _text_value(format: str, value: str) -> object:
    match format:
        case "date-time" | "datetime" | "date":
            return datetime.fromisoformat(f"{value}T00:00:00+00:00" if format == "date" else value.upper())
        case "duration":
            return _duration(value)
        case "byte":
            return base64.b64decode(value)
    return value


def _duration(text: str) -> object:
    """Read a duration as Go's `time.ParseDuration` does; what only the format reads (`3 days`) stays a text."""
    if text.lstrip("+-") != "0" and not re.fullmatch(f"[-+]?({_DURATION.pattern})+", text):
        return text
    seconds = sum(float(number) * _UNIT_S[unit] for number, unit in _DURATION.findall(text))
    return timedelta(seconds=-seconds if text.startswith("-") else seconds)


__all__ = [
    "CompileError",
    "expression_of",
    "field_path",
    "has_rules",
    "rule_problems",
]
