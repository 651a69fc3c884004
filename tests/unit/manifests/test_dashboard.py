"""The dashboard by Grafana's own types, and what a person sees of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_type_hints

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from pydantic import ConfigDict, TypeAdapter, ValidationError

from tests.unit.manifests.expressions import metrics_of
from tests.unit.manifests.monitoring_files import alerts, dashboard, panels, queries

WIDTH = 24
LOOSE = ConfigDict(arbitrary_types_allowed=True)


def read(document: dict[str, Any]) -> Dashboard:
    """The dashboard in Grafana's types; an unknown field is left out, and a value of a wrong type is not noticed."""
    register_default_plugins()
    return Dashboard.from_json(document)


def lost(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """The fields and values that did not survive; defaults that came in count for nothing."""
    match before, after:
        case dict(), dict():
            for key, value in before.items():
                yield from lost(value, after.get(key), f"{path}.{key}")
        case list(), list() if len(before) == len(after):
            for number, (one, other) in enumerate(zip(before, after, strict=True)):
                yield from lost(one, other, f"{path}[{number}]")
        case _ if before != after:
            yield path


def mistyped(value: Any, path: str = "") -> Iterator[str]:
    """The fields of a tree of Grafana's objects whose values are not of their types."""
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from mistyped(each, f"{path}[{number}]")
    elif type(value).__module__.startswith("grafana_foundation_sdk."):
        for name, hint in get_type_hints(type(value)).items():
            held = getattr(value, name)
            try:
                TypeAdapter(hint, config=LOOSE).validate_python(held)
            except ValidationError as error:
                yield f"{path}.{name}: {error.errors()[0]['msg']}"
            yield from mistyped(held, f"{path}.{name}")


def test_grafana_s_types_know_each_field_and_have_each_value() -> None:
    document = dashboard()
    found = read(document)
    assert list(lost(document, json.loads(JSONEncoder().encode(found)))) == []
    assert list(mistyped(found)) == []


def test_a_field_that_grafana_does_not_know_and_a_wrong_type_would_be_noticed() -> None:
    document = dashboard()
    document["panels"][1]["fieldConfig"]["defaults"]["unti"] = "s"
    assert list(lost(document, json.loads(JSONEncoder().encode(read(document))))) == [
        ".panels[1].fieldConfig.defaults.unti"
    ]
    document["panels"][1]["gridPos"]["h"] = "high"
    assert len(list(mistyped(read(document)))) == 1


def test_each_panel_says_what_it_shows_and_asks_the_chosen_data_source() -> None:
    shown = [panel for panel in panels() if panel["type"] != "row"]
    assert len({panel["id"] for panel in panels()}) == len(list(panels()))
    for panel in shown:
        assert panel["title"], panel["id"]
        assert panel["targets"], panel["title"]
        assert {each["datasource"]["uid"] for each in (panel, *panel["targets"])} == {"${datasource}"}, panel["title"]


def test_no_panel_lies_on_another_or_beyond_the_edge() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in panels():
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= WIDTH, panel["title"]
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert taken.setdefault((x, y), panel["title"]) is panel["title"], (panel["title"], taken[x, y])


def test_every_metric_that_an_alert_looks_at_is_drawn() -> None:
    drawn = {name for expression in queries().values() for name in metrics_of(expression)}
    watched = {name for rule in alerts().values() for name in metrics_of(rule["expr"])}
    assert watched - drawn == set()
