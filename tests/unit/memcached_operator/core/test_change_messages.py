"""Which fields of the specification an event names, where the pods of a workload change."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from memcached_operator.api.reading import read_spec
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.change_messages import changed_fields
from memcached_operator.core.objects.labels import APPLIED_ANNOTATION
from memcached_operator.core.objects.pod_template import fingerprint
from memcached_operator.core.objects.workload import desired_workload
from memcached_operator.core.objects.workload_types import WorkloadManifest
from tests.unit.memcached_operator.support import IMAGE, OWNER


def made(fields: dict[str, Any]) -> WorkloadManifest:
    spec = read_spec(json.dumps(fields).encode())
    return desired_workload("Deployment", OWNER, 1, spec.image or IMAGE, spec=spec)


def pods(**fields: Any) -> dict[str, Any]:
    return {"podTemplate": {"spec": fields}}


SIDECAR = {"name": "exporter", "image": "exporter:1"}


CHANGES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"image": "other"}, [f'spec.image: "{IMAGE}" → "other"']),
    ({"memory": "1Gi"}, ['spec.memory: "64Mi" → "1Gi"']),
    ({"maxConnections": 2048}, ["spec.maxConnections: 1024 → 2048"]),
    ({"threads": 8}, ["spec.threads: 4 → 8"]),
    ({"maxItemSize": "2Mi"}, ['spec.maxItemSize: "1Mi" → "2Mi"']),
    ({"extraArgs": ["-o", "idle_timeout=60"]}, ['spec.extraArgs: [] → ["-o","idle_timeout=60"]']),
    ({"resources": {"requests": {"cpu": "1"}}}, ['spec.resources.requests.cpu: absent → "1"']),
    ({"resources": {"limits": {"cpu": "1"}}}, ['spec.resources.limits.cpu: absent → "1"']),
    (
        {"resources": {"limits": {"ephemeral-storage": "1Gi"}}},
        ['spec.resources.limits[ephemeral-storage]: absent → "1Gi"'],
    ),
    ({"resources": {"limits": {"memory": "1Gi"}}}, ['spec.resources.limits.memory: absent → "1Gi"']),
    ({"threads": 8, "memory": "1Gi"}, ['spec.memory: "64Mi" → "1Gi"', "spec.threads: 4 → 8"]),
    (
        {"podTemplate": {"metadata": {"labels": {"team": "a"}, "annotations": {"team": "b"}}}},
        [
            'spec.podTemplate.metadata.labels[team]: absent → "a"',
            'spec.podTemplate.metadata.annotations[team]: absent → "b"',
        ],
    ),
    (pods(nodeSelector={"disk": "a"}), ['spec.podTemplate.spec.nodeSelector[disk]: absent → "a"']),
    (pods(tolerations=[{"key": "a"}]), ['spec.podTemplate.spec.tolerations: absent → [{"key":"a"}]']),
    (pods(dnsPolicy="Default"), ['spec.podTemplate.spec.dnsPolicy: absent → "Default"']),
    (
        pods(containers=[SIDECAR]),
        ['spec.podTemplate.spec.containers[exporter]: absent → {"image":"exporter:1","name":"exporter"}'],
    ),
    (
        pods(containers=[{"name": "memcached", "tty": True}]),
        ['spec.podTemplate.spec.containers[memcached]: absent → {"name":"memcached","tty":true}'],
    ),
    (
        {"tls": {"secretName": "a", "clientAuth": "Require", "reload": "Restart"}, "auth": {"secretName": "b"}},
        [
            'spec.tls: absent → {"secretName":"a","clientAuth":"Require","reload":"Restart"}',
            'spec.auth: absent → {"secretName":"b"}',
        ],
    ),
    ({"size": 5, "drainPeriodSeconds": 5, "rollout": {"minReadySeconds": 5}}, []),
]


@pytest.mark.parametrize(("fields", "expected"), CHANGES)
def test_templates_differ_in_the_fields_of_the_specifications(fields: dict[str, Any], expected: list[str]) -> None:
    assert [str(each) for each in changed_fields(made(fields), made({}))] == expected


def test_of_another_tls_each_field_is_told() -> None:
    one = {"tls": {"secretName": "a", "reload": "Restart"}, "auth": {"secretName": "c"}}
    other = {"tls": {"secretName": "b", "clientAuth": "Request"}, "auth": {"secretName": "d"}}
    assert [str(each) for each in changed_fields(made(other), made(one))] == [
        'spec.tls.secretName: "a" → "b"',
        'spec.tls.clientAuth: "None" → "Request"',
        'spec.tls.reload: "Restart" → "Live"',
        'spec.auth.secretName: "c" → "d"',
    ]
    assert [each.path for each in changed_fields(made({}), made(one))] == ["spec.tls", "spec.auth"]
    one, other = (pods(containers=[SIDECAR | {"image": image}]) for image in ("a", "b"))
    (image,) = changed_fields(made(other), made(one))
    assert str(image) == 'spec.podTemplate.spec.containers[exporter].image: "a" → "b"'


@given(*[st.sampled_from([fields for fields, _ in CHANGES])] * 2)
def test_templates_that_say_that_they_differ_do_so_in_a_field(one: dict[str, Any], other: dict[str, Any]) -> None:
    desired, live = made(one), made(other)
    assert bool(changed_fields(desired, live)) == (fingerprint(desired.template) != fingerprint(live.template))


def test_what_asks_for_a_restart_is_told_and_that_items_outlast_one() -> None:
    def made(restart: str = "", *, warm: bool = False) -> WorkloadManifest:
        spec = Spec(workload="StatefulSet", warmRestart=warm)
        return desired_workload("StatefulSet", OWNER, 1, IMAGE, spec=spec, restart=restart)

    assert [str(each) for each in changed_fields(made("monday"), made())] == [
        'metadata.annotations[cache.example.com/restart]: absent → "monday"'
    ]
    assert [str(each) for each in changed_fields(made(warm=True), made())] == ["spec.warmRestart: false → true"]


def test_where_another_client_wrote_what_it_was_made_from_no_field_is_named() -> None:
    live = made({"threads": 8})
    unknown = live.metadata.annotations | {APPLIED_ANNOTATION: "theirs"} if live.metadata.annotations else {}
    live = replace(live, metadata=replace(live.metadata, annotations=unknown))
    assert changed_fields(made({}), live) == []
