"""What a person is told of each wrong field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memcached_operator.api.complaints import RULES
from memcached_operator.api.names import InvalidSpec
from memcached_operator.api.v1alpha1 import validate_spec
from memcached_operator.memcached.crd import memcached_crd
from operator_runtime.crd.reference import fields


def test_every_field_of_the_spec_and_every_entry_of_a_list_or_map_has_its_rule_in_words() -> None:
    wanted = set()
    for field in fields(memcached_crd()):
        if field.path.split(".")[0] == "spec":
            wanted.add(field.path)
            wanted |= {f"{field.path}[]" for entries in ("items", "additionalProperties") if entries in field.schema}
    assert set(RULES) == wanted


STRINGS = 'must be an object whose values are strings, such as {"team": "shop"}'
STRING = 'must be a string; put numbers and words such as true and null in quotes, as in "1"'
PEERS = 'must be a list of peers such as [{"podSelector": {"matchLabels": {"app": "shop"}}}], or [] for none'
BUDGET = (
    "spec.disruptionBudget.maxUnavailable: must be a whole number from 0 to 2147483647, "
    'or a share from "0%" to "100%" in whole percent'
)
SECRET = (
    "must be the name of a Secret: 1 to 253 lower case letters, digits, - and ., a letter or digit first and last, and "
    "around each ."
)
WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"workload": "DaemonSet"},
        'spec.workload: must be Deployment or StatefulSet, got "DaemonSet" (a string)',
    ),
    (
        {"service": "Headless"},
        'spec.service: must be an object such as {"type": "Headless"}, got "Headless" (a string)',
    ),
    (
        {"service": {"type": "LoadBalancer"}},
        'spec.service.type: must be Headless, ClusterIP or Disabled, got "LoadBalancer" (a string)',
    ),
    ({"service": {"labels": ["a"]}}, f'spec.service.labels: {STRINGS}, got ["a"] (a list)'),
    ({"service": {"labels": {"a.b/c": 1, "d": "e"}}}, f"spec.service.labels[a.b/c]: {STRING}, got 1"),
    (
        {"podTemplate": {"metadata": {"labels": {"ssd": True}}}},
        f"spec.podTemplate.metadata.labels[ssd]: {STRING}, got true (a boolean)",
    ),
    (
        {"podTemplate": {"spec": []}},
        'spec.podTemplate.spec: must be an object such as {"dnsPolicy": "Default"}, got [] (a list)',
    ),
    ({"disruptionBudget": {"maxUnavailable": "120%"}}, f'{BUDGET}, got "120%" (a string)'),
    ({"disruptionBudget": {"maxUnavailable": -1}}, f"{BUDGET}, got -1"),
    ({"disruptionBudget": {"maxUnavailable": "1"}}, f'{BUDGET}, got "1" (a string)'),
    ({"disruptionBudget": {"maxUnavailable": 0.5}}, f"{BUDGET}, got 0.5 (a number with a decimal point)"),
    ({"disruptionBudget": 1}, 'spec.disruptionBudget: must be an object such as {"maxUnavailable": 1}, got 1'),
    (
        {"memory": "7Mi"},
        'spec.memory: must be a string of whole Mi or Gi from 8Mi on, such as "64Mi" or "4Gi", got "7Mi" (a string)',
    ),
    (
        {"memory": 64},
        'spec.memory: must be a string of whole Mi or Gi from 8Mi on, such as "64Mi" or "4Gi", got 64',
    ),
    ({"tls": True}, 'spec.tls: must be an object such as {"secretName": "cache-tls"}, got true (a boolean)'),
    ({"tls": {}}, f"spec.tls.secretName: {SECRET}, and is missing"),
    ({"tls": {"secretName": "Cache"}}, f'spec.tls.secretName: {SECRET}, got "Cache" (a string)'),
    (
        {"tls": {"secretName": "a", "clientAuth": "Always", "reload": "Never"}},
        'spec.tls.clientAuth: must be None, Request or Require, got "Always" (a string); '
        'spec.tls.reload: must be Live or Restart, got "Never" (a string)',
    ),
    ({"auth": "a"}, 'spec.auth: must be an object such as {"secretName": "cache-passwords"}, got "a" (a string)'),
    ({"auth": {"secretName": "a."}}, f'spec.auth.secretName: {SECRET}, got "a." (a string)'),
    ({"maxConnections": 0}, "spec.maxConnections: must be a whole number from 1 to 1000000, got 0"),
    ({"threads": 65}, "spec.threads: must be a whole number from 1 to 64, got 65"),
    (
        {"maxItemSize": "1m"},
        "spec.maxItemSize: must be a string of whole Ki from 1Ki to 999999Ki, or Mi to 1024Mi, such as "
        '"512Ki" or "4Mi", got "1m" (a string)',
    ),
    (
        {"extraArgs": "-v"},
        'spec.extraArgs: must be a list of at most 64 strings such as ["-o", "idle_timeout=60"], got "-v" (a string)',
    ),
    (
        {"extraArgs": ["-R", 20]},
        'spec.extraArgs[1]: must be a string of 1 to 1024 characters; put numbers in quotes, as in "2", got 20',
    ),
    (
        {"resources": {"limits": {"memory": "-1Gi"}}},
        'spec.resources.limits[memory]: must be a quantity such as "500m", "1.5Gi" or 2: no sign, at most 2 digits '
        'after the point, and m, k, M, G, T, Ki, Mi, Gi, Ti or nothing, got "-1Gi" (a string)',
    ),
    (
        {"resources": {"requests": "1Gi"}},
        "spec.resources.requests: must be an object whose values are quantities, such as "
        '{"cpu": "100m"}, got "1Gi" (a string)',
    ),
    (
        {"rollout": {"pauseSeconds": 3601}},
        "spec.rollout.pauseSeconds: must be a whole number of seconds from 0 to 3600, got 3601",
    ),
    ({"rollout": {"paused": "yes"}}, 'spec.rollout.paused: must be true or false, got "yes" (a string)'),
    ({"warmRestart": "yes"}, 'spec.warmRestart: must be true or false, got "yes" (a string)'),
    (
        {"rollout": {"maxSurge": "120%"}},
        'spec.rollout.maxSurge: must be a whole number from 0 to 2147483647, or a share from "0%" to "100%" in whole '
        'percent, got "120%" (a string)',
    ),
    ({"networkPolicy": {}}, f"spec.networkPolicy.allowFrom: {PEERS}, and is missing"),
    ({"networkPolicy": {"allowFrom": None}}, f"spec.networkPolicy.allowFrom: {PEERS}, got null"),
    ({"publish": "Secret"}, 'spec.publish: must be ConfigMap, or omitted, got "Secret" (a string)'),
    ({"drainSeconds": -1}, "spec.drainSeconds: must be a whole number of seconds from 0 to 86400, got -1"),
    ({"drainSeconds": 86401}, "spec.drainSeconds: must be a whole number of seconds from 0 to 86400, got 86401"),
]


@pytest.mark.parametrize(("spec", "words"), WRONG)
def test_a_wrong_field_is_named_once_with_what_it_must_be_and_what_it_is(spec: dict[str, Any], words: str) -> None:
    for raw in (spec, json.dumps(spec).encode()):
        with pytest.raises(InvalidSpec) as caught:
            validate_spec(raw)
        assert str(caught.value) == words


def test_wrong_fields_inside_one_another_are_all_named() -> None:
    with pytest.raises(InvalidSpec) as caught:
        validate_spec({"service": {"type": "", "labels": {"a": 1, "b": 2}}, "drainSeconds": "30s"})
    named = [part.split(":")[0] for part in str(caught.value).split("; ") if part.startswith("spec.")]
    assert named == ["spec.service.type", "spec.service.labels[a]", "spec.service.labels[b]", "spec.drainSeconds"]
