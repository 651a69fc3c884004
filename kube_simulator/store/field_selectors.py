"""Field selectors: `metadata.name=a,status.phase!=Running`.

Differs from Kubernetes: values have no commas and no backslashes, and custom resources no fields of their own
(`selectableFields`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kube_simulator.errors import bad_request
from kube_simulator.resources import Resource
from kube_simulator.values import Json

_COMPARISON: Final = re.compile(r"([^=!]+)(!=|==|=)([^=!\\]*)")
_METADATA: Final = ("metadata.name", "metadata.namespace")
# Labels that are no paths, or that name a field of an Event in the words of its other API group.
_PATHS: Final[Mapping[str, tuple[str, ...]]] = {
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

    def matches(self, object: Json) -> bool:
        """Report whether an object fulfils it."""
        return (self._value(object) == self.value) is self.equal

    def _value(self, object: Json) -> str:
        for path in self.paths:
            found: Any = object
            for step in path:
                found = found.get(step) if isinstance(found, dict) else None
            if found is not None and found != "":
                return str(found).lower() if isinstance(found, bool) else str(found)
        return "false" if self.field == "spec.hostNetwork" else ""


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
    return Fields(tuple(_comparison(term, resource) for term in text.split(",") if term))


def _comparison(term: str, resource: Resource) -> Comparison:
    match = _COMPARISON.fullmatch(term)
    if match is None:
        raise bad_request(f"invalid selector: can't understand '{term}'")
    field, sign, value = match.groups()
    if field not in (*_METADATA, *resource.selectable_fields):
        raise bad_request(f"field label not supported: {field}")
    return Comparison(field, value, sign != "!=", tuple(tuple(path.split(".")) for path in _paths(field)))


def _paths(field: str) -> tuple[str, ...]:
    first, _, rest = field.partition(".")
    if rest and first in ("regarding", "involvedObject"):
        return f"regarding.{rest}", f"involvedObject.{rest}"
    return _PATHS.get(field, (field,))
