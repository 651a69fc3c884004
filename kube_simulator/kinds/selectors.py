"""`metav1.LabelSelector`: how it is written as text, and what is wrong with that of an owner of pods."""

from __future__ import annotations

from kube_simulator.errors import ApiError, Cause
from kube_simulator.schema.causes import invalid, required
from kube_simulator.store.label_selectors import from_label_selector
from kube_simulator.values import Json


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
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        return [invalid("spec.selector", {}, f"empty selector is invalid for {kind}")]
    try:
        return [] if from_label_selector(selector).matches(labels or {}) else [mismatch]
    except ApiError as error:
        return [invalid("spec.selector", selector, error.message)]
