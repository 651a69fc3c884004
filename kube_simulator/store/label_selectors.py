"""Label selectors: their grammar, and what they match."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from kube_simulator.errors import bad_request
from kube_simulator.names import label_value, qualified_name
from kube_simulator.values import Json

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]

_WORD: Final = r"[^=!(),<>\s]+"
_VALUES: Final = rf"\(\s*(?P<values>(?:{_WORD})?\s*(?:,\s*(?:{_WORD})?\s*)*)\)"
_TERM: Final = re.compile(
    rf"\s*(?:(?P<not>!)\s*(?P<absent>{_WORD})|(?P<key>{_WORD})\s*"
    rf"(?:(?P<set>in|notin)\s*{_VALUES}|(?P<sign>==|!=|=)\s*(?P<value>{_WORD})?)?)\s*(?:,(?=\s*\S)|$)"
)
_OPERATORS: Final[Mapping[str, Operator]] = {**{"in": "In", "=": "In", "==": "In", "notin": "NotIn", "!=": "NotIn"}}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on the value of one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Report whether labels fulfil it; an absent label is not in any set of values."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
        return (value is not None) is (self.operator == "Exists")


@dataclass(frozen=True, slots=True)
class Labels:
    """A label selector: all its requirements together. One without any matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Report whether an object with these labels is selected."""
        return all(requirement.matches(labels) for requirement in self.requirements)


def parse_labels(text: str) -> Labels:
    """Read `a=b,c in (d,e),!f`. Raises ApiError 400."""
    found, at = [], 0
    while at < len(text.rstrip()):
        term = _TERM.match(text, at)
        if term is None:
            raise bad_request(f"unable to parse requirement: {text[at:]}")
        at = term.end()
        if term["set"]:
            values = [each.strip() for each in term["values"].split(",")]
            found.append(_requirement(term["key"], _OPERATORS[term["set"]], values))
        elif term["sign"]:
            found.append(_requirement(term["key"], _OPERATORS[term["sign"]], [term["value"] or ""]))
        else:
            found.append(_requirement(term["absent"] or term["key"], "DoesNotExist" if term["absent"] else "Exists"))
    return Labels(tuple(found))


def from_label_selector(selector: Json) -> Labels:
    """Read a `metav1.LabelSelector`: matchLabels and matchExpressions. Raises ApiError 400."""
    found = [_requirement(key, "In", [value]) for key, value in (selector.get("matchLabels") or {}).items()]
    for each in selector.get("matchExpressions") or ():
        operator, values = each["operator"], each.get("values") or []
        known = operator in ("In", "NotIn", "Exists", "DoesNotExist")
        if not known or bool(values) is not (operator in ("In", "NotIn")):
            raise bad_request(f'"{operator}" is not a valid label selector operator for {len(values)} values')
        found.append(_requirement(each["key"], operator, values))
    return Labels(tuple(found))


def _requirement(key: str, operator: Operator, values: Iterable[str] = ()) -> Requirement:
    wrong = [qualified_name(key), *map(label_value, values)]
    if problems := "; ".join(filter(None, wrong)):
        raise bad_request(f'unable to parse requirement: Invalid value: "{key}": {problems}')
    return Requirement(key, operator, frozenset(values))
