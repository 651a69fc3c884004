"""Objects, lists and events as tables or by their metadata, and the lines of watches."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pytest

from kube_simulator.errors import ApiError
from kube_simulator.http import forms
from kube_simulator.http.negotiation import PLAIN, Representation
from kube_simulator.http.streams import Encodings, encoder
from kube_simulator.resources import Column, Resource
from kube_simulator.schema.node import of_schema
from kube_simulator.values import Json

NOW = datetime(2026, 1, 1, 0, 10, tzinfo=UTC)
NAME = Column({"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}, ".metadata.name")
SIZE = Column({"name": "Size", "type": "integer", "format": "", "description": "", "priority": 0}, ".spec.size")
WIDGETS = Resource(
    "example.com", "v1", "widgets", "Widget", "widget", True, of_schema({"type": "object"}),
    columns=(NAME, SIZE), custom=True,
)  # fmt: skip


METADATA = Representation("metadata")


def widget(name: str, size: int = 1, version: str = "7") -> Json:
    metadata = {"name": name, "namespace": "a", "resourceVersion": version}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": size}}


def one(found: Json, shape: Representation, **query: str) -> Json:
    return forms.one(WIDGETS, found, shape, query, NOW)


def many(resource: Resource, items: list[Json], shape: Representation, **query: str) -> Json:
    return forms.many(resource, items, {"resourceVersion": "9"}, shape, query, NOW)


def test_the_form_of_a_list_is_none_of_an_object_and_the_other_way_round() -> None:
    with pytest.raises(ApiError, match="the requested object is a list"):
        many(WIDGETS, [], METADATA)
    with pytest.raises(ApiError, match="the requested object is not a list") as refused:
        one(widget("w"), Representation("metadata-list"))
    assert refused.value.code == 406


def lines(shape: Representation, *events: tuple[str, Json], **query: str) -> list[Json]:
    formed = None if shape == PLAIN else forms.events(WIDGETS, shape, query, lambda: NOW)
    encode = encoder(Encodings(), WIDGETS, shape, formed)
    return [orjson.loads(encode(*event)) for event in events]


BOOKMARK: Json = {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": {"resourceVersion": "8"}}
ERROR: Json = {"kind": "Status", "code": 410, "metadata": {}}


def test_a_watch_may_bring_metadata_alone() -> None:
    added, bookmark, error = lines(METADATA, ("ADDED", widget("w")), ("BOOKMARK", BOOKMARK), ("ERROR", ERROR))
    assert added["object"] == one(widget("w"), METADATA)
    assert bookmark["object"]["kind"] == "PartialObjectMetadata"
    assert error["object"] == ERROR


@pytest.mark.parametrize("shape", [Representation(yaml=True), Representation("metadata-list")])
def test_what_a_watch_cannot_carry_is_406(shape: Representation) -> None:
    with pytest.raises(ApiError) as refused:
        lines(shape)
    assert refused.value.code == 406


def test_an_object_is_encoded_once_for_all_watchers(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = []

    def shown(_resource: Resource, found: Json) -> Json:
        encoded.append(found)
        return found

    monkeypatch.setattr("kube_simulator.requests.views.shown", shown)
    encodings, objects = Encodings(kept=2), [widget(name) for name in "abc"]
    for found in (objects[0], objects[0], objects[1], objects[0]):
        assert orjson.loads(encodings.line(WIDGETS, "ADDED", found))["object"] == found
    assert encoded == objects[:2]
    encodings.line(WIDGETS, "DELETED", objects[2])
    encodings.line(WIDGETS, "ADDED", objects[0])
    assert encoded == [*objects, objects[0]], "the oldest was dropped"
