"""What `kubectl get` prints: columns of custom resources, cells of all kinds."""

from __future__ import annotations

from typing import Any

import pytest

from kube_simulator.kinds import tables
from kube_simulator.resources import Column, Resource
from kube_simulator.schema.custom import node_of
from kube_simulator.schema.kubernetes import builtin_resources
from kube_simulator.values import Json
from tests.unit.kube_simulator.kinds.kinds_support import NOW, an, created, resource

CREATED = "2026-11-21T14:59:55Z"
FREE = node_of({"type": "object", "x-kubernetes-preserve-unknown-fields": True})


def shown(full_name: str, **fields: Any) -> list[Any]:
    kind = resource(full_name)
    body = an(kind, **fields)
    body["metadata"]["creationTimestamp"] = CREATED
    return tables.cells(kind, body, NOW)


@pytest.mark.parametrize("kind", [each for each in builtin_resources() if each.stored], ids=lambda each: each.full_name)
def test_every_served_kind_has_a_cell_for_each_of_its_columns(kind: Resource) -> None:
    columns = [column["name"] for column in tables.columns(kind)]
    body = created(kind, an(kind, **({"roleRef": {"kind": "Role", "name": "r"}} if "binding" in kind.plural else {})))
    cells = dict(zip(columns, tables.cells(kind, body, NOW), strict=True))
    assert cells["Name"] == "a"


@pytest.mark.parametrize(
    ("full_name", "fields", "cells"),
    [
        ("secrets", {"data": {"a": ""}, "type": "Opaque"}, ["a", "5s"]),
        (
            "events",
            {"involvedObject": {"kind": "Pod", "name": "p"}, "type": "Normal", "reason": "R", "message": "said"},
            ["a", "Normal", "R", "pod/p", "said", "5s"],
        ),
        (
            "pods",
            {
                "spec": {"containers": [{}, {}]},
                "status": {
                    "phase": "Running",
                    "containerStatuses": [
                        {"ready": True, "restartCount": 1, "state": {"running": {}}},
                        {"ready": False, "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
                    ],
                },
            },
            ["a", "1/2", "CrashLoopBackOff", "3", "5s"],
        ),
        ("pods", {"spec": {"containers": [{}]}, "status": {"phase": "Pending"}}, ["a", "0/1", "Pending", "0", "5s"]),
    ],
)
def test_the_cells_of_a_built_in_kind(full_name: str, fields: Json, cells: list[Any]) -> None:
    assert shown(full_name, **fields) == cells


def column(kind: str, path: str) -> Column:
    return Column({"name": path, "type": kind, "format": "", "description": "", "priority": 0}, path)


def cell(kind: str, value: object) -> object:
    """The cell of a column of a custom resource whose value this is."""
    columns = (Column({"name": "Name", "type": "string", "format": "name"}), column(kind, ".spec.x"))
    widgets = Resource("e.com", "v1", "ws", "W", "w", namespaced=True, schema=FREE, custom=True, columns=columns)
    name, found = tables.cells(widgets, {"metadata": {"name": "a"}, "spec": {"x": value}}, NOW)
    assert name == "a"
    assert [each["type"] for each in tables.columns(widgets)] == ["string", kind]
    return found


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        ("string", "text", "text"),
        ("string", 5, "5"),
        ("string", {"b": "x", "a": 1}, '{"a":1,"b":"x"}'),
        ("string", ["x", "y"], '["x","y"]'),
        ("integer", 5, 5),
        ("integer", 1.5, 1),
        ("number", 1.5, 1.5),
        ("boolean", True, True),
        ("date", "2026-11-21T14:00:00Z", "1h"),
        ("date", "text", "<invalid>"),
        ("date", None, None),
    ],
)
def test_a_custom_column_prints_values_of_its_type(kind: str, value: object, found: object) -> None:
    assert cell(kind, value) == found


def test_a_custom_column_prints_the_first_of_many_and_null_for_none() -> None:
    columns = (column("string", ".spec.l[*]"), column("string", ".spec.absent"))
    widgets = Resource("e.com", "v1", "ws", "W", "w", namespaced=True, schema=FREE, custom=True, columns=columns)
    assert tables.cells(widgets, {"metadata": {"name": "a"}, "spec": {"l": ["x", "y"]}}, NOW) == ["x", None]
