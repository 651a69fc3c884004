from __future__ import annotations

import pytest

from operator_runtime.objects.drift import covers

CONTAINER = {"name": "busybox", "image": "busybox:latest", "command": ["sh", "-c", "sleep 1"]}
SIDECAR = {"name": "proxy", "image": "proxy:1"}


@pytest.mark.parametrize(
    ("live", "wanted"),
    [
        ({"replicas": 3, "paused": False}, {"replicas": 3}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}),
        ({"containers": [SIDECAR, {**CONTAINER, "resources": {}}]}, {"containers": [CONTAINER]}),
        ({"ports": [{"containerPort": 80, "protocol": "TCP"}]}, {"ports": [{"containerPort": 80}]}),
        ({"replicas": 3}, {"replicas": None}),
        ({"command": []}, {"command": []}),
    ],
)
def test_what_is_there_besides_is_somebody_elses(live: object, wanted: object) -> None:
    assert covers(live, wanted)


@pytest.mark.parametrize(
    ("live", "wanted"),
    [
        ({"replicas": 5}, {"replicas": 3}),
        ({}, {"replicas": 3}),
        ({"replicas": 1}, {"replicas": True}),
        ({"a": None}, {"a": {"b": 1}}),
        ({"containers": [SIDECAR]}, {"containers": [CONTAINER]}),
        ({"containers": [{**CONTAINER, "image": "busybox:1"}]}, {"containers": [CONTAINER]}),
        ({"command": ["sh", "-c", "sleep 1"]}, {"command": ["sh", "-c"]}),
        ({"command": ["-c", "sh"]}, {"command": ["sh", "-c"]}),
        ({"command": "sh"}, {"command": ["s", "h"]}),
        ({"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 81}]}),
    ],
)
def test_what_is_missing_or_otherwise_is_drift(live: object, wanted: object) -> None:
    assert not covers(live, wanted)
