"""What a manager wrote by creates and patches becomes what it has applied, by managedFields as a server writes them."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from operator_runtime.objects.taken_over import taken_over

Json = dict[str, Any]

OURS, VERSION = "shells", "apps/v1"
SPEC: Json = {"f:spec": {"f:replicas": {}}}
FINALIZERS: Json = {"f:finalizers": {".": {}, 'v:"a.io/a"': {}}}


def entry(manager: str, operation: str, fields: Json, minute: int = 0, **others: str) -> Json:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": VERSION,
        "time": f"2026-11-21T12:{minute:02}:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **others,
    }


def after(*entries: Json) -> list[Json] | None:
    """The entries that are to be sent."""
    metadata = {"name": "a", "uid": "u", "resourceVersion": "7", "managedFields": [*entries]}
    found = taken_over(json.dumps({"kind": "Deployment", "metadata": metadata}).encode(), OURS, VERSION)
    if found is None:
        return None
    sent = json.loads(orjson.dumps(found))
    assert (sent.pop("uid"), sent.pop("resourceVersion")) == ("u", "7")
    assert list(sent) == ["managedFields"]
    listed: list[Json] = sent["managedFields"]
    return listed


def test_what_was_created_was_applied_and_others_entries_stay_as_they_came() -> None:
    status = entry(OURS, "Update", {"f:status": {}}, subresource="status")
    strangers = entry("kubectl", "Update", {"f:metadata": {"f:labels": {"f:a": {}}}}) | {"later": {"than": "us"}}
    autoscaler = entry("autoscaler", "Update", SPEC, subresource="scale")
    made = entry(OURS, "Update", {"f:spec": {"f:paused": {}}})
    assert after(status, strangers, made, autoscaler) == [
        status,
        strangers,
        made | {"operation": "Apply"},
        autoscaler,
    ]


def test_what_was_patched_joins_what_was_applied() -> None:
    applied = entry(OURS, "Apply", {"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {}}}, 1)
    patched = entry(OURS, "Update", {"f:data": {"f:b": {}}, "f:metadata": {"f:labels": {"f:l": {}}}}, 2)
    joined = {"f:data": {"f:a": {}, "f:b": {}}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}}
    assert after(applied, patched) == [applied | {"time": patched["time"], "fieldsV1": joined}]
    assert after(patched, applied) == [applied | {"time": patched["time"], "fieldsV1": joined}]


def test_finalizers_stay_whose_they_are() -> None:
    made = entry(OURS, "Update", SPEC | {"f:metadata": FINALIZERS | {"f:labels": {"f:a": {}}}})
    assert after(made) == [
        made | {"fieldsV1": {"f:metadata": FINALIZERS}},
        made | {"operation": "Apply", "fieldsV1": SPEC | {"f:metadata": {"f:labels": {"f:a": {}}}}},
    ]


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [entry(OURS, "Apply", SPEC)],
        [entry("another", "Update", SPEC)],
        [entry(OURS, "Update", SPEC, subresource="scale")],
        [entry(OURS, "Update", {"f:metadata": FINALIZERS})],
        [entry(OURS, "Update", SPEC, apiVersion="apps/v1beta1")],
        [entry(OURS, "Update", SPEC), entry(OURS, "Apply", SPEC, apiVersion="apps/v1beta1")],
    ],
    ids=["nobody's", "applied", "another's", "a subresource", "finalizers", "another version", "applied in another"],
)
def test_where_there_is_nothing_to_take_over_nothing_is_sent(entries: list[Json]) -> None:
    assert after(*entries) is None


def test_of_what_cannot_be_read_nothing_is_taken_over() -> None:
    deep = b'{"f:a":' * 2000 + b"{}" + b"}" * 2000
    managed = b'{"manager":"shells","operation":"Update","apiVersion":"apps/v1","fieldsV1":%s}' % deep
    body = b'{"metadata":{"uid":"u","resourceVersion":"7","managedFields":[%s]}}' % managed
    assert taken_over(body, OURS, VERSION) is None
    assert taken_over(b"{}", OURS, VERSION) is None
    assert taken_over(b"no JSON", OURS, VERSION) is None
