"""Field selectors: `metadata.name=a,status.phase!=Running`, and what is said of one that cannot be read or had.

Differs from Kubernetes: nothing known of the kinds that are served; Jobs, which are not, have words of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kube_simulator.errors import bad_request
from kube_simulator.resources import Resource
from kube_simulator.store.go_text import quoted
from kube_simulator.values import Json

# A comma that no backslash makes part of a value.
_TERM = re.compile(r"((?:\\.|[^,\\]|\\$)*)(?:,|$)", re.DOTALL)
_COMPARISON = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_METADATA = ("metadata.name", "metadata.namespace")
# Fields of built-in kinds that always have a value, which JSON leaves out where it is Go's zero.
_ZERO: Mapping[str, str] = {
    "spec.hostNetwork": "false",
    "spec.unschedulable": "false",
    "status.replicas": "0",
    "status.successful": "0",
}
# Labels that are no paths, or that name a field of an Event in the words of its other API group.
_PATHS: Mapping[str, tuple[str, ...]] = {
    "source": ("source.component", "reportingComponent", "reportingController"),
    "reportingComponent": ("reportingComponent", "reportingController"),
    "reportingController": ("reportingController", "reportingComponent"),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A field that must or must not have a value."""

    field: str
    value: str
    equal: bool
    paths: tuple[tuple[str, ...], ...]
    """Where to look; the first that leads to something counts."""
    absent: str
    """What an absent field is compared as."""

    def matches(self, object: Json) -> bool:
        """Report whether an object fulfils it."""
        return (self._value(object) == self.value) is self.equal

    def _value(self, object: Json) -> str:
        for path in self.paths:
            found: Any = object
            for step in path:
                found = found.get(step) if isinstance(found, dict) else None
            if found is not None and found != "":
                return _text(found)
        return self.absent


@dataclass(frozen=True, slots=True)
class Fields:
    """A field selector: all its comparisons together. One without any matches everything."""

    comparisons: tuple[Comparison, ...] = ()

    def matches(self, object: Json) -> bool:
        """Report whether an object is selected."""
        return all(comparison.matches(object) for comparison in self.comparisons)

    @property
    def name(self) -> str:
        """The one name that a selected object can have; empty if it can have several."""
        named = (each.value for each in self.comparisons if each.field == "metadata.name" and each.equal)
        return next(named, "")


def parse_fields(text: str, resource: Resource) -> Fields:
    """Read a field selector for objects of this resource. Raises ApiError 400."""
    return Fields(tuple([_comparison(*term, resource) for term in list(_terms(text))]))


def _terms(text: str) -> Iterator[tuple[str, str, str]]:
    for match in _TERM.finditer(text):
        if not match[1]:
            continue
        compared = _COMPARISON.fullmatch(match[1])
        if compared is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{match[1]}'")
        yield compared[1], compared[2], _unescaped(compared[3])


def _unescaped(value: str) -> str:
    def plain(match: re.Match[str]) -> str:
        part = match[0]
        if part in (",", "="):
            raise bad_request(f"invalid field selector: unescaped character in value: {ord(part)}")
        if part[1:] not in ("\\", ",", "="):
            raise bad_request(f"invalid field selector: invalid escape sequence: {part}")
        return part[1:]

    return re.sub(r"\\.?|[,=]", plain, value, flags=re.DOTALL)


def _comparison(field: str, sign: str, value: str, resource: Resource) -> Comparison:
    # Kinds with fields of their own are picky about metadata.namespace too, and have other words.
    special = resource.custom or bool(resource.selectable_fields)
    selectable = field in _METADATA or field in resource.selectable_fields
    if special and field == "metadata.namespace" and not resource.namespaced:
        selectable = False
    if not selectable:
        if special:
            raise bad_request(f"field label not supported: {field}")
        known = ", ".join(map(quoted, _METADATA))
        raise bad_request(f"{quoted(field)} is not a known field selector: only {known}")
    paths = tuple(tuple(path.split(".")) for path in _paths(field))
    return Comparison(field, value, sign != "!=", paths, "" if resource.custom else _ZERO.get(field, ""))


def _paths(field: str) -> tuple[str, ...]:
    first, _, rest = field.partition(".")
    if rest and first in ("regarding", "involvedObject"):
        return f"regarding.{rest}", f"involvedObject.{rest}"
    return _PATHS.get(field, (field,))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (str, int)) else ""
