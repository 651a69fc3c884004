"""Selection of a request by labels and fields, each of which has a grammar of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kube_simulator.resources import Resource
from kube_simulator.store.field_selectors import Fields, parse_fields
from kube_simulator.store.label_selectors import Labels, from_label_selector, parse_labels
from kube_simulator.values import Json

__all__ = ["Fields", "Labels", "Selection", "from_label_selector", "parse_fields", "parse_labels", "selection_of"]


@dataclass(frozen=True, slots=True)
class Selection:
    """Labels and fields together; everything, unless something is said."""

    labels: Labels = field(default_factory=Labels)
    fields: Fields = field(default_factory=Fields)

    @property
    def everything(self) -> bool:
        """Report whether it leaves nothing out."""
        return not (self.labels.requirements or self.fields.comparisons)

    def matches(self, object: Json) -> bool:
        """Report whether an object is selected."""
        if self.labels.requirements and not self.labels.matches(object["metadata"].get("labels") or {}):
            return False
        return not self.fields.comparisons or self.fields.matches(object)


def selection_of(resource: Resource, query: Mapping[str, str]) -> Selection:
    """Read `labelSelector` and `fieldSelector` of a query. Raises ApiError 400."""
    return Selection(
        parse_labels(query.get("labelSelector", "")), parse_fields(query.get("fieldSelector", ""), resource)
    )
