"""What is wrong with where a pod's spec wants it: affinity, spread over the cluster, tolerations.

Differs from Kubernetes: `matchLabelKeys` and `mismatchLabelKeys` are not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kube_simulator.errors import Cause
from kube_simulator.kinds.causes import duplicate, forbidden, invalid, one_of, required, unlike
from kube_simulator.kinds.names import dns_label, dns_subdomain, label_value, qualified_name
from kube_simulator.kinds.selectors import selector_problems
from kube_simulator.values import Json

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS: Final = ("Equal", "Exists")
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_NODE_POLICIES: Final = ("Honor", "Ignore")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NO_OPERATOR: Final = "not a valid selector operator"


def affinity_problems(affinity: Json, field: str) -> list[Cause]:
    """Of a pod's affinity to nodes and to other pods."""
    found: list[Cause] = []
    nodes = affinity.get("nodeAffinity") or {}
    if (needed := nodes.get(_REQUIRED)) is not None:
        at = f"{field}.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
        terms = needed.get("nodeSelectorTerms") or []
        found += [] if terms else [required(at, "must have at least one node selector term")]
        for index, term in enumerate(terms):
            found += _node_problems(term, f"{at}[{index}]", needed=True)
    for index, term in enumerate(nodes.get(_PREFERRED) or []):
        at = f"{field}.nodeAffinity.{_PREFERRED}[{index}]"
        found += _weight_problems(term, at) + _node_problems(term.get("preference") or {}, f"{at}.preference")
    for key in ("podAffinity", "podAntiAffinity"):
        pods, at = affinity.get(key) or {}, f"{field}.{key}"
        for index, term in enumerate(pods.get(_REQUIRED) or []):
            found += _pod_problems(term, f"{at}.{_REQUIRED}[{index}]")
        for index, term in enumerate(pods.get(_PREFERRED) or []):
            inside = f"{at}.{_PREFERRED}[{index}]"
            found += _weight_problems(term, inside)
            found += _pod_problems(term.get("podAffinityTerm") or {}, f"{inside}.podAffinityTerm")
    return found


def _weight_problems(term: Json, field: str) -> list[Cause]:
    weight = term.get("weight") or 0
    return [] if 1 <= weight <= 100 else [invalid(f"{field}.weight", weight, "must be in the range 1-100")]


def _node_problems(term: Json, field: str, *, needed: bool = False) -> list[Cause]:
    """Of what a node must be; `needed`: also of the values of labels, which otherwise merely find no node."""
    found: list[Cause] = []
    for index, each in enumerate(term.get("matchExpressions") or []):
        at, operator = f"{field}.matchExpressions[{index}]", each.get("operator") or ""
        key, values = each.get("key") or "", each.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                found.append(required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                found.append(forbidden(f"{at}.values", why))
        elif operator in ("Gt", "Lt"):
            if len(values) != 1:
                found.append(required(f"{at}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
        else:
            found.append(invalid(f"{at}.operator", operator, _NO_OPERATOR))
        found += unlike(f"{at}.key", key, qualified_name(key))
        for number, value in enumerate(values if needed else ()):
            found += unlike(f"{at}.values[{number}]", value, label_value(value))
    for index, each in enumerate(term.get("matchFields") or []):
        found += _node_field_problems(each, f"{field}.matchFields[{index}]")
    return found


def _node_field_problems(requirement: Json, field: str) -> list[Cause]:
    found: list[Cause] = []
    key, values = requirement.get("key") or "", requirement.get("values") or []
    if requirement.get("operator") not in ("In", "NotIn"):
        found.append(invalid(f"{field}.operator", requirement.get("operator") or "", _NO_OPERATOR))
    elif len(values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        found.append(required(f"{field}.values", why))
    if key != "metadata.name":
        return [*found, invalid(f"{field}.key", key, "not a valid field selector key")]
    for index, value in enumerate(values):
        found += unlike(f"{field}.values[{index}]", value, dns_subdomain(value))
    return found


def _pod_problems(term: Json, field: str) -> list[Cause]:
    found: list[Cause] = []
    for key in ("labelSelector", "namespaceSelector"):
        found += selector_problems(term.get(key) or {}, f"{field}.{key}")
    for name in term.get("namespaces") or []:
        found += unlike(f"{field}.namespace", name, dns_label(name))
    key = term.get("topologyKey") or ""
    if not key:
        found.append(required(f"{field}.topologyKey", "can not be empty"))
    return found + unlike(f"{field}.topologyKey", key, qualified_name(key))


def spread_problems(constraints: Sequence[Json], field: str) -> list[Cause]:
    """Of a pod's topologySpreadConstraints."""
    found: list[Cause] = []
    kinds = [(each.get("topologyKey") or "", each.get("whenUnsatisfiable") or "") for each in constraints]
    for index, each in enumerate(constraints):
        at, (key, otherwise) = f"{field}[{index}]", kinds[index]
        found += _positive(f"{at}.maxSkew", each.get("maxSkew") or 0)
        if not key:
            found.append(required(f"{at}.topologyKey", "can not be empty"))
        found += one_of(f"{at}.whenUnsatisfiable", otherwise, _UNSATISFIABLE)
        if (key, otherwise) in kinds[index + 1 :]:
            found.append(duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {otherwise}}}"))
        domains = each.get("minDomains")
        if domains is not None:
            found += _positive(f"{at}.minDomains", domains)
            if otherwise != "DoNotSchedule":
                why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {otherwise}"
                found.append(invalid(f"{at}.minDomains", domains, why))
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            found += one_of(f"{at}.{policy}", each.get(policy), _NODE_POLICIES)
        found += selector_problems(each.get("labelSelector") or {}, f"{at}.labelSelector")
    return found


def _positive(field: str, value: int) -> list[Cause]:
    return [] if value > 0 else [invalid(field, value, "must be greater than zero")]


def toleration_problems(tolerations: Sequence[Json], field: str) -> list[Cause]:
    """Of a pod's tolerations."""
    found: list[Cause] = []
    for index, each in enumerate(tolerations):
        at = f"{field}[{index}]"
        key, operator, effect = each.get("key") or "", each.get("operator") or "", each.get("effect") or ""
        found += unlike(f"{at}.key", key, qualified_name(key)) if key else []
        if not key and operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            found.append(invalid(f"{at}.operator", operator, why))
        if each.get("tolerationSeconds") is not None and effect != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            found.append(invalid(f"{at}.effect", effect, why))
        if operator == "Exists" and each.get("value"):
            found.append(invalid(f"{at}.operator", each["value"], "value must be empty when `operator` is 'Exists'"))
        if operator:
            found += one_of(f"{at}.operator", operator, _TOLERATION_OPERATORS)
        if effect:
            found += one_of(f"{at}.effect", effect, _EFFECTS)
    return found
