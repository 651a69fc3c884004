"""In what parts differ, by a table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memcached_operator.api.reserved_pod_fields import keyed
from memcached_operator.memcached.desired.object_types import as_json
from memcached_operator.memcached.desired.passthrough_drift import drift, steps_to
from memcached_operator.memcached.desired.workload import CODEC
from memcached_operator.memcached.labels import APPLIED_OPTIONS_ANNOTATION
from memcached_operator.memcached.observed.workloads import deployment_record
from operator_runtime import Entry
from tests.unit.memcached_operator.memcached.support import desired_deployment

DRIFT: dict[str, tuple[Any, Any, list[str]]] = {
    "the same": ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, []),
    "what the API server fills in": ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}, []),
    "what it fills into a list": ({"sources": [{"a": {}}]}, {"sources": [{"a": {"mode": 420}}]}, []),
    "another value": ({"a": {"b": 1}}, {"a": {"b": 2}}, ["part.a.b"]),
    "a list that is longer": ({"args": ["a"]}, {"args": ["a", "b"]}, ["part.args"]),
    "a variable more": ({"env": [{"name": "A"}]}, {"env": [{"name": "B"}, {"name": "A"}]}, []),
    "a variable less": ({"env": [{"name": "A"}, {"name": "B"}]}, {"env": [{"name": "A"}]}, ["part.env[B]"]),
    "another variable": ({"env": [{"name": "A", "v": 1}]}, {"env": [{"name": "A", "v": 2}]}, ["part.env[A].v"]),
    "an entry called as lists are": ({"volumes": [{"name": "env"}]}, {"volumes": [{"name": "env", "a": 1}]}, []),
    "one that admission added": ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}, {"key": "a"}]}, []),
    "one that was taken away": ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, ["part.tolerations"]),
    "a label": ({"labels": {"a.b": "c"}}, {"labels": {"a.b": "d"}}, ["part.labels[a.b]"]),
    "a part that is gone": ({"a": 1}, None, ["part"]),
    "a part that must not be there": (None, {"a": 1}, ["part"]),
}


@pytest.mark.parametrize(("desired", "live", "expected"), DRIFT.values(), ids=DRIFT)
def test_a_part_is_compared_in_what_is_desired_of_it(desired: Any, live: Any, expected: list[str]) -> None:
    assert [each.path for each in drift(keyed(desired), keyed(live), ("part",))] == expected


@pytest.mark.parametrize(
    "path", [".", "[", "]", "spec", "spec.containers", "spec.containers[memcached].name.x", "x.y", "spec[x]"]
)
def test_whatever_somebody_writes_into_the_annotation_can_be_read(path: str) -> None:
    body = as_json(desired_deployment())
    body["metadata"] |= {"uid": "a", "resourceVersion": "1"}
    body["metadata"]["annotations"][APPLIED_OPTIONS_ANNOTATION] = f"{path}=0"
    record = deployment_record(json.dumps(body).encode())
    assert f"metadata.annotations[{APPLIED_OPTIONS_ANNOTATION}]" in [
        each.path for each in CODEC.differ(desired_deployment(), record)
    ]


def test_a_path_leads_by_the_fields_that_kubernetes_knows_entries_by() -> None:
    assert steps_to("spec.containers[env].volumeMounts[/a.b/=,c].name") == (
        *("spec", "containers", Entry("name", "env"), "volumeMounts", Entry("mountPath", "/a.b/=,c"), "name"),
    )
    assert steps_to("metadata.labels[a.b/c]") == ("metadata", "labels", "a.b/c")
