"""The lines of watches."""

from __future__ import annotations

import orjson
import pytest

from kube_simulator.http.streams import Encodings
from kube_simulator.resources import Resource
from kube_simulator.schema.node import of_schema
from kube_simulator.values import Json

WIDGETS = Resource("example.com", "v1", "widgets", "Widget", "widget", True, of_schema({"type": "object"}), custom=True)


def test_an_object_is_encoded_once_for_all_watchers(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = []

    def shown(_resource: Resource, found: Json) -> Json:
        encoded.append(found)
        return found

    monkeypatch.setattr("kube_simulator.requests.views.shown", shown)
    encodings, objects = Encodings(kept=2), [{"metadata": {"name": name}} for name in "abc"]
    for found in (objects[0], objects[0], objects[1], objects[0]):
        assert orjson.loads(encodings.line(WIDGETS, "ADDED", found))["object"] == found
    assert encoded == objects[:2]
    encodings.line(WIDGETS, "DELETED", objects[2])
    encodings.line(WIDGETS, "ADDED", objects[0])
    assert encoded == [*objects, objects[0]], "the oldest was dropped"
