"""The forms of objects and lists: whole, or as the rows of a Table, which `kubectl get` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kube_simulator.kinds import tables
from kube_simulator.resources import Resource
from kube_simulator.values import Json


@dataclass(frozen=True, slots=True)
class Form:
    """The form that a client asked for."""

    table: bool
    query: Mapping[str, str]
    now: datetime
    """In UTC; ages are counted from it."""


def one(resource: Resource, found: Json, form: Form) -> Json:
    """One object; what is none of the resource's own, such as a Scale, stays whole."""
    if not form.table or found.get("kind") != resource.kind:
        return found
    return _table(resource, [found], {"resourceVersion": found["metadata"].get("resourceVersion", "")}, form)


def many(resource: Resource, items: Sequence[Json], metadata: Json, form: Form) -> Json:
    """A list."""
    if form.table:
        return _table(resource, items, metadata, form)
    return {
        "kind": resource.list_kind or f"{resource.kind}List",
        "apiVersion": resource.api_version,
        "metadata": metadata,
        "items": list(items) if resource.custom else [_without_kind(item) for item in items],
    }


def _table(resource: Resource, items: Sequence[Json], metadata: Json, form: Form) -> Json:
    whole = form.query.get("includeObject") == "Object"
    rows = [
        {"cells": tables.cells(resource, item, form.now), "object": item if whole else _metadata(item)}
        for item in items
    ]
    columns = tables.columns(resource)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    }


def _metadata(found: Json) -> Json:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": found["metadata"]}


def _without_kind(item: Json) -> Json:
    """Items of built-in kinds do not repeat what their list says."""
    return {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}
