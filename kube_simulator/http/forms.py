"""The forms of objects and lists: whole, as the rows of a Table, or their metadata alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from kube_simulator.errors import ApiError, bad_request
from kube_simulator.http.negotiation import STREAM_TYPES, Representation, not_acceptable
from kube_simulator.kinds import tables
from kube_simulator.resources import Resource
from kube_simulator.values import Json

_INCLUDED = ("Metadata", "Object", "None", "")
Include = str


def included(query: Mapping[str, str]) -> Include:
    """Return what each row of a Table carries of its object: Metadata, Object or None.

    Raises:
        ApiError: 400.
    """
    found = query.get("includeObject", "")
    if found not in _INCLUDED:
        problem = f"includeObject: Invalid value: \"{found}\": must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(f"Unable to convert to Table as requested: {problem}")
    return found or "Metadata"


def one(resource: Resource, found: Json, shape: Representation, query: Mapping[str, str], now: datetime) -> Json:
    """One object in the form that is asked for; what is none of the resource's own, such as a Scale, stays whole."""
    if shape.form == "object" or found.get("kind") != resource.kind:
        return found
    if shape.form == "table":
        metadata = {"resourceVersion": found["metadata"].get("resourceVersion", "")}
        return table(resource, [found], metadata, shape.version, included(query), now)
    if shape.form == "metadata":
        return _metadata(found, shape.version)
    message = f"you requested PartialObjectMetadataList, but the requested object is not a list ({resource.kind})"
    raise ApiError(406, "NotAcceptable", message)


def many(
    resource: Resource,
    items: Sequence[Json],
    metadata: Json,
    shape: Representation,
    query: Mapping[str, str],
    now: datetime,
) -> Json:
    """A list in the form that is asked for."""
    if shape.form == "table":
        return table(resource, items, metadata, shape.version, included(query), now)
    if shape.form == "metadata-list":
        return {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"meta.k8s.io/{shape.version}",
            "metadata": metadata,
            "items": [_metadata(item, shape.version) for item in items],
        }
    if shape.form == "metadata":
        message = f"you requested PartialObjectMetadata, but the requested object is a list ({resource.kind}List)"
        raise ApiError(406, "NotAcceptable", message)
    return {
        "kind": resource.list_kind or f"{resource.kind}List",
        "apiVersion": resource.api_version,
        "metadata": metadata,
        "items": list(items) if resource.custom else [_without_kind(item) for item in items],
    }


def table(
    resource: Resource, items: Sequence[Json], metadata: Json, version: str, include: Include, now: datetime
) -> Json:
    """A Table with its columns."""
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "columnDefinitions": tables.columns(resource),
        "rows": [
            {"cells": tables.cells(resource, item, now), "object": _row_object(item, version, include)}
            for item in items
        ],
    }


def events(
    resource: Resource, shape: Representation, query: Mapping[str, str], now: Callable[[], datetime]
) -> Callable[[str, Json], Json]:
    """Make the function that turns the objects of one watch, type and object, into the requested form.

    Raises:
        ApiError: 406, a watch cannot carry that form.
    """
    if shape.form == "metadata":
        return lambda kind, found: found if kind == "ERROR" else _metadata(found, shape.version)
    if shape.form != "table" or shape.yaml:
        raise not_acceptable(STREAM_TYPES)
    include, columns_sent = included(query), False

    def row(kind: str, found: Json) -> Json:
        nonlocal columns_sent
        if kind == "ERROR":
            return found
        metadata = {"resourceVersion": found["metadata"].get("resourceVersion", "")}
        if kind == "BOOKMARK":
            cells = [""] * len(tables.columns(resource))
            rows = [{"cells": cells, "object": _row_object(found, shape.version, include)}]
            made = {**table(resource, [], metadata, shape.version, include, now()), "rows": rows}
        else:
            made = table(resource, [found], metadata, shape.version, include, now())
        if columns_sent:
            made["columnDefinitions"] = None
        columns_sent = True
        return made

    return row


def _row_object(found: Json, version: str, include: Include) -> Json | None:
    if include == "None":
        return None
    return found if include == "Object" else _metadata(found, version)


def _metadata(found: Json, version: str) -> Json:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": found["metadata"],
    }


def _without_kind(item: Json) -> Json:
    """Items of built-in kinds do not repeat what their list says."""
    return {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}
