"""Selection of a request by labels and by fields: `metadata.name=a,status.phase!=Running`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kube_simulator.errors import bad_request
from kube_simulator.resources import Resource
from kube_simulator.store.label_selectors import Labels, from_label_selector, parse_labels
from kube_simulator.values import Json

__all__ = ["Comparison", "Labels", "Selection", "from_label_selector", "parse_fields", "parse_labels", "selection_of"]

_COMPARISON: Final = re.compile(r"([^=!]+)(!=|==|=)([^=!\\]*)")
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
class Selection:
    """Labels and fields together; everything, unless something is said."""

    labels: Labels = field(default_factory=Labels)
    fields: tuple[Comparison, ...] = ()

    @property
    def everything(self) -> bool:
        """Report whether it leaves nothing out."""
        return not (self.labels.requirements or self.fields)

    @property
    def name(self) -> str:
        """The one name that a selected object can have; empty if it can have several."""
        named = (each.value for each in self.fields if each.field == "metadata.name" and each.equal)
        return next(named, "")

    def matches(self, object: Json) -> bool:
        """Report whether an object is selected."""
        if self.labels.requirements and not self.labels.matches(object["metadata"].get("labels") or {}):
            return False
        return all(each.matches(object) for each in self.fields)


def selection_of(resource: Resource, query: Mapping[str, str]) -> Selection:
    """Read `labelSelector` and `fieldSelector` of a query. Raises ApiError 400."""
    return Selection(
        parse_labels(query.get("labelSelector", "")), parse_fields(query.get("fieldSelector", ""), resource)
    )


def parse_fields(text: str, resource: Resource) -> tuple[Comparison, ...]:
    """Read a field selector for objects of this resource. Raises ApiError 400."""
    found = []
    for term in filter(None, text.split(",")):
        match = _COMPARISON.fullmatch(term)
        if match is None:
            raise bad_request(f"invalid selector: can't understand '{term}'")
        label, sign, value = match.groups()
        if label not in ("metadata.name", "metadata.namespace", *resource.selectable_fields):
            raise bad_request(f"field label not supported: {label}")
        first, _, rest = label.partition(".")
        subject = first in ("regarding", "involvedObject")
        paths = (f"regarding.{rest}", f"involvedObject.{rest}") if subject else _PATHS.get(label, (label,))
        found.append(Comparison(label, value, sign != "!=", tuple(tuple(path.split(".")) for path in paths)))
    return tuple(found)
