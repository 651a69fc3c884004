"""The rules in CEL of a CRD's schema (`x-kubernetes-validations`): which of them an object breaks.

A rule sees its own part of the object as `self`, and on an update, where the same part was there before, `oldSelf`.

Differs from Kubernetes: what broke a rule before an update breaks it after it too (no ratcheting); see also
`expressions`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from weakref import WeakKeyDictionary

from kube_simulator.errors import Cause
from kube_simulator.schema import causes
from kube_simulator.schema.causes import join
from kube_simulator.schema.expressions import EvaluationError, Expression, compiled, optional_value
from kube_simulator.schema.node import MISSING, Node
from kube_simulator.values import Json, same

VARIABLES: Final = frozenset({"self", "oldSelf"})
_GRAVE: Final = frozenset(
    f"FieldValue{each}" for each in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid")
)
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

_REASONS: Final = {"FieldValueRequired": causes.required, "FieldValueForbidden": causes.forbidden}
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
        before_of = _correlated(node, old)
        for index, each in enumerate(new):
            yield from _broken(item, each, before_of(each), f"{path}[{index}]")


def _correlated(node: Node, old: object) -> Callable[[Any], object]:
    """Make the function that finds the old element of a new one, by its keys; `MISSING` in lists without keys."""
    if node.list_type != "map" or not isinstance(old, list):
        return lambda _: MISSING

    def keys(element: Json) -> Json:
        return {key: element.get(key) for key in node.list_keys}

    return lambda element: next((each for each in old if same(keys(each), keys(element))), MISSING)


def _judged(node: Node, rule: Json, new: object, old: object, path: str) -> Iterator[Cause]:
    expression = expression_of(rule["rule"])
    values = {"self": _value(node, new)}
    old_value = None if old is MISSING or old is None else _value(node, old)
    if rule.get("optionalOldSelf") is True:
        values["oldSelf"] = optional_value(old_value)
    elif "oldSelf" in expression.variables:
        if old_value is None:
            return
        values["oldSelf"] = old_value
    try:
        if expression.evaluate(values) is not True:
            yield _cause(node, rule, new, path, _message(rule, values))
    except EvaluationError as error:
        yield causes.invalid(path or causes.NO_FIELD, node.type, f"{error} evaluating rule: {rule['rule'].strip()}")


def _message(rule: Json, values: dict[str, object]) -> str:
    if text := rule.get("messageExpression"):
        try:
            message = expression_of(text).evaluate(values)
        except EvaluationError:
            message = None
        if isinstance(message, str) and message.strip() and "\n" not in message:
            return message
    return (rule.get("message") or "").strip() or f"failed rule: {rule['rule'].strip()}"


def _cause(node: Node, rule: Json, value: object, path: str, message: str) -> Cause:
    at = join(path, (rule.get("fieldPath") or "").removeprefix(".")).removesuffix(".") or causes.NO_FIELD
    reason = rule.get("reason")
    if reason == "FieldValueDuplicate":
        return causes.duplicate(at, value)
    if reason in _REASONS:
        return _REASONS[reason](at, message)
    if node.type in ("object", "array"):  # too much to show
        return Cause("FieldValueInvalid", f"Invalid value: {message}", at)
    return causes.invalid(at, value, message)


def _escaped(name: str) -> str:
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
            _escaped(name): _value(child, value[name], metadata=node.embedded and name == "metadata")
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
        case "duration" if re.fullmatch(f"({_DURATION.pattern})+", value):
            return timedelta(seconds=sum(float(number) * _UNIT_S[unit] for number, unit in _DURATION.findall(value)))
        case "byte":
            return base64.b64decode(value)
    return value
