from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from memcached_operator.memcached.spec import read_spec
from memcached_operator.memcached.workloads.differing import differing
from memcached_operator.memcached.workloads.objects import PodTemplate
from memcached_operator.memcached.workloads.template import USER_ID, noted, template
from tests.unit.memcached_operator.memcached.support import IMAGE, NAME


def made(fields: dict[str, Any]) -> PodTemplate:
    spec = read_spec(json.dumps(fields).encode())
    return template(NAME, spec.image or IMAGE, USER_ID, spec)


CHANGES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"image": "other"}, [f'spec.image was "{IMAGE}", is to be "other"']),
    ({"memory": "1Gi"}, ['spec.memory was "64Mi", is to be "1Gi"']),
    ({"maxConnections": 2048}, ['spec.maxConnections was "1024", is to be "2048"']),
    ({"threads": 8}, ['spec.threads was "4", is to be "8"']),
    ({"maxItemSize": "2Mi"}, ['spec.maxItemSize was "1m", is to be "2m"']),
    ({"extraArgs": ["-o", "idle_timeout=60"]}, ['spec.extraArgs was [], is to be ["-o","idle_timeout=60"]']),
    ({"resources": {"requests": {"cpu": "1"}}}, ['spec.resources.requests.cpu was "50m", is to be "1"']),
    ({"resources": {"limits": {"cpu": "1"}}}, ['spec.resources.limits.cpu was absent, is to be "1"']),
    ({"resources": {"limits": {"memory": "1Gi"}}}, ['spec.resources.limits.memory was "146Mi", is to be "1Gi"']),
    (
        {"image": "other", "threads": 8, "memory": "128Mi"},
        [
            f'spec.image was "{IMAGE}", is to be "other"',
            'spec.memory was "64Mi", is to be "128Mi"',
            'spec.threads was "4", is to be "8"',
        ],
    ),
    ({"pod": {"labels": {"team": "a"}}}, ['spec.pod.labels[team] was absent, is to be "a"']),
    ({"pod": {"annotations": {"team": "a"}}}, ['spec.pod.annotations[team] was absent, is to be "a"']),
    ({"pod": {"nodeSelector": {"disk": "ssd"}}}, ['spec.pod.nodeSelector[disk] was absent, is to be "ssd"']),
    ({"pod": {"tolerations": [{"key": "a"}]}}, ['spec.pod.tolerations was absent, is to be [{"key":"a"}]']),
    ({"pod": {"priorityClassName": "high"}}, ['spec.pod.priorityClassName was absent, is to be "high"']),
    (
        {"pod": {"terminationGracePeriodSeconds": 5}},
        ["spec.pod.terminationGracePeriodSeconds was absent, is to be 5"],
    ),
    (
        {"tls": {"secretName": "a"}},
        ['spec.tls was absent, is to be {"secretName":"a","clientAuth":"None","reload":"Live"}'],
    ),
    (
        {"tls": {"secretName": "a", "clientAuth": "Require", "reload": "Restart"}, "auth": {"secretName": "b"}},
        [
            'spec.tls was absent, is to be {"secretName":"a","clientAuth":"Require","reload":"Restart"}',
            'spec.auth was absent, is to be {"secretName":"b"}',
        ],
    ),
    ({"size": 5, "drainSeconds": 5, "rollout": {"pauseSeconds": 5}}, []),
]


@pytest.mark.parametrize(("fields", "expected"), CHANGES)
def test_templates_differ_in_the_fields_of_the_specifications(fields: dict[str, Any], expected: list[str]) -> None:
    assert [str(each) for each in differing(made(fields), made({}))] == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"pod": {"nodeSelector": {"a": "b"}}}, ['spec.pod.nodeSelector was {"a":"b"}, is to be absent']),
        ({"pod": {"priorityClassName": "high"}}, ['spec.pod.priorityClassName was "high", is to be absent']),
        ({"threads": 8}, ['spec.threads was "8", is to be "4"']),
        ({"resources": {"limits": {"cpu": "1"}}}, ['spec.resources.limits.cpu was "1", is to be absent']),
    ],
)
def test_what_is_taken_out_is_told_too(fields: dict[str, Any], expected: list[str]) -> None:
    assert [str(each) for each in differing(made({}), made(fields))] == expected


def test_of_another_tls_each_field_is_told() -> None:
    one = {"tls": {"secretName": "a", "reload": "Restart"}, "auth": {"secretName": "c"}}
    other = {"tls": {"secretName": "b", "clientAuth": "Request"}, "auth": {"secretName": "d"}}
    assert [str(each) for each in differing(made(other), made(one))] == [
        'spec.tls.secretName was "a", is to be "b"',
        'spec.tls.clientAuth was "None", is to be "Request"',
        'spec.tls.reload was "Restart", is to be "Live"',
        'spec.auth.secretName was "c", is to be "d"',
    ]
    assert [each.path for each in differing(made({}), made(one))] == ["spec.tls", "spec.auth"]


def test_what_admission_adds_is_nobody_s_change() -> None:
    ours = {"pod": {"tolerations": [{"key": "a"}]}}
    theirs = {"pod": {"tolerations": [{"key": "a"}, {"key": "added"}]}}
    assert differing(made(ours), made(theirs)) == ()


def test_without_a_template_nothing_breaks() -> None:
    assert differing(None, None) == ()
    assert "spec.image" in [each.path for each in differing(made({}), None)]


@given(*[st.sampled_from([fields for fields, _ in CHANGES])] * 2)
def test_templates_that_say_that_they_differ_do_so_in_a_field_or_in_something_taken_out(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    found = differing(made(one), made(other))
    assert not found or noted(made(one)) != noted(made(other))
    taken_out = "pod" in other and "pod" not in one
    assert found or taken_out or noted(made(one)) == noted(made(other))
