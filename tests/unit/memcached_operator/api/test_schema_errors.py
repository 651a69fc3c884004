"""What a person is told of each wrong field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memcached_operator.api.crd import memcached_crd
from memcached_operator.api.names import InvalidSpec
from memcached_operator.api.schema_errors import RULES
from memcached_operator.api.v1alpha1 import validate_spec
from operator_runtime.crd.crd_reference import fields


def test_every_field_of_the_spec_and_every_entry_of_a_list_or_map_has_its_rule_in_words() -> None:
    desired = set()
    for field in fields(memcached_crd()):
        if field.path.split(".")[0] == "spec":
            desired.add(field.path)
            desired |= {f"{field.path}[]" for entries in ("items", "additionalProperties") if entries in field.schema}
    assert set(RULES) == desired


STRINGS = 'must be an object whose values are strings, such as {"team": "shop"}'
STRING = 'must be a string; put numbers and words such as true and null in quotes, as in "1"'
PEERS = 'must be a list of peers such as [{"podSelector": {"matchLabels": {"app": "shop"}}}], or [] for none'
COUNT = 'must be a whole number from 0 to 2147483647, or a share from "0%" to "100%" in whole percent'
BUDGET = f"spec.disruptionBudget.maxUnavailable: {COUNT}"
MEMORY = 'must be a string of whole Mi or Gi from 8Mi on, such as "64Mi" or "4Gi"'
ITEM = 'must be a string of whole Ki from 1Ki to 999999Ki, or Mi to 1024Mi, such as "512Ki" or "4Mi"'
ARGUMENTS = 'must be a list of at most 64 strings such as ["-o", "idle_timeout=60"]'
ARGUMENT = "must be a string of 1 to 1024 characters"
QUANTITY = (
    'must be a quantity such as "500m", "1.5Gi" or 2: no sign, at most 2 digits after the point, '
    "and m, k, M, G, T, Ki, Mi, Gi, Ti or nothing"
)
SECRET = (
    "must be the name of a Secret: 1 to 253 lower case letters, digits, - and ., a letter or digit first and last, and "
    "around each ."
)
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"workload": "DaemonSet"}, 'spec.workload: must be Deployment or StatefulSet, got "DaemonSet" (a string)'),
    ({"service": ""}, 'spec.service: must be an object such as {"type": "Headless"}, got "" (a string)'),
    ({"service": {"type": "a"}}, 'spec.service.type: must be Headless, ClusterIP or Disabled, got "a" (a string)'),
    ({"service": {"labels": ["a"]}}, f'spec.service.labels: {STRINGS}, got ["a"] (a list)'),
    ({"service": {"labels": {"a.b/c": 1, "d": "e"}}}, f"spec.service.labels[a.b/c]: {STRING}, got 1"),
    (
        {"podTemplate": {"metadata": {"labels": {"ssd": True}}}},
        f"spec.podTemplate.metadata.labels[ssd]: {STRING}, got true (a boolean)",
    ),
    ({"disruptionBudget": {"maxUnavailable": "120%"}}, f'{BUDGET}, got "120%" (a string)'),
    ({"disruptionBudget": {"maxUnavailable": -1}}, f"{BUDGET}, got -1"),
    ({"disruptionBudget": {"maxUnavailable": 0.5}}, f"{BUDGET}, got 0.5 (a number with a decimal point)"),
    ({"memory": "7Mi"}, f'spec.memory: {MEMORY}, got "7Mi" (a string)'),
    ({"tls": {}}, f"spec.tls.secretName: {SECRET}, and is missing"),
    ({"tls": {"secretName": "Cache"}}, f'spec.tls.secretName: {SECRET}, got "Cache" (a string)'),
    (
        {"tls": {"secretName": "a", "clientAuth": "Always", "reload": "Never"}},
        'spec.tls.clientAuth: must be None, Request or Require, got "Always" (a string); '
        'spec.tls.reload: must be Live or Restart, got "Never" (a string)',
    ),
    ({"maxConnections": 0}, "spec.maxConnections: must be a whole number from 1 to 1000000, got 0"),
    ({"threads": 65}, "spec.threads: must be a whole number from 1 to 64, got 65"),
    ({"maxItemSize": "1m"}, f'spec.maxItemSize: {ITEM}, got "1m" (a string)'),
    ({"extraArgs": "-v"}, f'spec.extraArgs: {ARGUMENTS}, got "-v" (a string)'),
    ({"extraArgs": ["-R", 20]}, f'spec.extraArgs[1]: {ARGUMENT}; put numbers in quotes, as in "2", got 20'),
    (
        {"resources": {"limits": {"memory": "-1Gi"}}},
        f'spec.resources.limits[memory]: {QUANTITY}, got "-1Gi" (a string)',
    ),
    ({"rollout": {"paused": "yes"}}, 'spec.rollout.paused: must be true or false, got "yes" (a string)'),
    ({"rollout": {"maxSurge": "120%"}}, f'spec.rollout.maxSurge: {COUNT}, got "120%" (a string)'),
    ({"networkPolicy": {}}, f"spec.networkPolicy.allowFrom: {PEERS}, and is missing"),
    ({"networkPolicy": {"allowFrom": None}}, f"spec.networkPolicy.allowFrom: {PEERS}, got null"),
    ({"publish": "Secret"}, 'spec.publish: must be ConfigMap, or omitted, got "Secret" (a string)'),
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
