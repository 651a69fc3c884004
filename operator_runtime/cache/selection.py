"""Pure: selection of the objects that a cache can hold at all, by the scope and the selector of its watches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_NAME = r"[A-Za-z0-9][-A-Za-z0-9_./]*"
# The forms of one requirement of a label selector, but for `<` and `>`, which are not used: of these nothing is known.
_EQUALITY = re.compile(rf"\s*(?P<name>{_NAME})\s*(?P<operator>==|=|!=)\s*(?P<value>[-A-Za-z0-9_.]*)\s*")
_SET = re.compile(rf"\s*(?P<name>{_NAME})\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)\s*")
_EXISTS = re.compile(rf"\s*(?P<absent>!?)\s*(?P<name>{_NAME})\s*")
# Commas between requirements, and not those between the values of a set.
_BETWEEN = re.compile(r",(?![^(]*\))")


@dataclass(frozen=True, slots=True)
class Selection:
    """Selection of a kind's objects that a cache holds.

    Attributes:
        namespaces: those that are watched; () for all, and for cluster-scoped kinds.
        labels: label selector, as in the API's query.
    """

    namespaces: tuple[str, ...] = ()
    labels: str = ""

    def may_hold(self, namespace: str, labels: Mapping[str, str] | None = None) -> bool:
        """Report whether an object belongs here; False only where that is certain.

        Args:
            namespace: of the object, "" for one of a cluster-scoped kind.
            labels: of the object, None where they are not known.
        """
        if self.namespaces and namespace not in self.namespaces:
            return False
        return labels is None or all(_may_match(each, labels) for each in _requirements(self.labels))


def _requirements(selector: str) -> list[str]:
    return [each for each in _BETWEEN.split(selector) if each.strip()]


def _may_match(requirement: str, labels: Mapping[str, str]) -> bool:
    """Report whether labels fulfil one requirement, or may do so where it cannot be read."""
    for form, matches in _SYNTAX:
        if found := form.fullmatch(requirement):
            return matches(found, labels)
    return True


def _equal(found: re.Match[str], labels: Mapping[str, str]) -> bool:
    return (labels.get(found["name"]) == found["value"]) is not (found["operator"] == "!=")


def _in_set(found: re.Match[str], labels: Mapping[str, str]) -> bool:
    values = {each.strip() for each in found["values"].split(",")}
    return (labels.get(found["name"]) in values) is not (found["operator"] == "notin")


def _exists(found: re.Match[str], labels: Mapping[str, str]) -> bool:
    return (found["name"] in labels) is not bool(found["absent"])


_SYNTAX: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Mapping[str, str]], bool]], ...] = (
    (_EQUALITY, _equal),
    (_SET, _in_set),
    (_EXISTS, _exists),
)
