"""`metav1.LabelSelector`: what is wrong with one, and how it is written as text."""

from __future__ import annotations

from kube_simulator.errors import Cause
from kube_simulator.kinds.field_causes import forbidden, invalid, required, unlike
from kube_simulator.kinds.name_validation import label_value, qualified_name
from kube_simulator.store.label_selectors import from_label_selector
from kube_simulator.values import Json

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def selector_problems(selector: Json, field: str) -> list[Cause]:
    """Keys, values and operators that cannot be."""
    found: list[Cause] = []
    for key, value in (selector.get("matchLabels") or {}).items():
        found += unlike(f"{field}.matchLabels", key, qualified_name(key))
        found += unlike(f"{field}.matchLabels", value, label_value(value))
    for index, expression in enumerate(selector.get("matchExpressions") or []):
        found += _expression_problems(expression, f"{field}.matchExpressions[{index}]")
    return found


def _expression_problems(expression: Json, field: str) -> list[Cause]:
    operator, values = expression.get("operator") or "", expression.get("values") or []
    found: list[Cause] = []
    if operator in ("In", "NotIn") and not values:
        found.append(required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist") and values:
        why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        found.append(forbidden(f"{field}.values", why))
    elif operator not in _OPERATORS:
        found.append(invalid(f"{field}.operator", operator, "not a valid selector operator"))
    key = expression.get("key") or ""
    found += unlike(f"{field}.key", key, qualified_name(key))
    for index, value in enumerate(values):
        found += unlike(f"{field}.values[{index}]", value, label_value(value))
    return found


def selector_text(selector: Json | None) -> str:
    """Format as the query parameter `labelSelector` has it: `app=web,tier in (a,b),!old`; empty for everything."""
    if selector is None:
        return ""
    terms = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    terms += [(each["key"], _expression_text(each)) for each in selector.get("matchExpressions") or []]
    return ",".join(text for _, text in sorted(terms, key=lambda term: term[0]))


def _expression_text(expression: Json) -> str:
    key, values = expression["key"], ",".join(sorted(expression.get("values") or []))
    match expression["operator"]:
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "Exists":
            return str(key)
        case _:
            return f"!{key}"


def selection_problems(spec: Json, kind: str) -> list[Cause]:
    """List what is wrong with the selector of an owner of pods, such as a `deployment`: it must match its template."""
    selector, labels = spec.get("selector"), spec["template"]["metadata"].get("labels")
    mismatch = invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    if selector is None:
        return [required("spec.selector"), mismatch]
    if wrong := selector_problems(selector, "spec.selector"):
        return [*wrong, invalid("spec.selector", selector, "invalid label selector")]
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return [invalid("spec.selector", {}, f"empty selector is invalid for {kind}")]
    return [] if from_label_selector(selector).matches(labels or {}) else [mismatch]
