"""What takes part in admission."""

from __future__ import annotations

from typing import Any

import pytest

from kube_simulator.values import Json
from tests.unit.kube_simulator.kinds.kinds_support import an, created, refused, resource, updated

GROUP = "admissionregistration.k8s.io"
WEBHOOKS = resource(f"validatingwebhookconfigurations.{GROUP}")
POLICIES = resource(f"validatingadmissionpolicies.{GROUP}")
BINDINGS = resource(f"validatingadmissionpolicybindings.{GROUP}")
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
WEBHOOK = {
    "name": "a.example.com",
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "clientConfig": {"service": {"name": "a", "namespace": "b"}},
}
POLICY = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "true"}]}
BINDING = {"policyName": "a", "validationActions": ["Deny"]}


def of_webhook(**fields: Any) -> set[str]:
    found = refused(WEBHOOKS, webhooks=[{**WEBHOOK, **fields}])
    return {message.removeprefix("webhooks[0].") for message in found}


def test_a_webhook_gets_its_defaults() -> None:
    stored = created(WEBHOOKS, an(WEBHOOKS, webhooks=[{**WEBHOOK, "rules": [RULE]}]))
    assert stored["webhooks"] == [
        {
            **WEBHOOK,
            "clientConfig": {"service": {"name": "a", "namespace": "b", "port": 443}},
            "rules": [{**RULE, "scope": "*"}],
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "timeoutSeconds": 10,
        }
    ]
    assert stored["metadata"]["generation"] == 1
    assert updated(WEBHOOKS, stored, {"webhooks": [WEBHOOK]})["metadata"]["generation"] == 2
    labelled = {"metadata": {**stored["metadata"], "labels": {"a": "b"}}}
    assert updated(WEBHOOKS, stored, labelled)["metadata"]["generation"] == 1
    assert "webhooks" not in created(WEBHOOKS, an(WEBHOOKS, webhooks=[]))


@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        ({}, set()),
        ({"clientConfig": {"url": "https://host/path"}}, set()),
        ({"name": ""}, {"name: Required value"}),
        (
            {"name": "a.b"},
            {'name: Invalid value: "a.b": should be a domain with at least three segments separated by dots'},
        ),
        ({"rules": [{}]}, {f"rules[0].{key}: Required value" for key in RULE}),
        ({"failurePolicy": "x"}, {'failurePolicy: Unsupported value: "x": supported values: "Fail", "Ignore"'}),
        ({"matchPolicy": "x"}, {'matchPolicy: Unsupported value: "x": supported values: "Equivalent", "Exact"'}),
        ({"sideEffects": None}, {"sideEffects: Required value: must specify one of None, NoneOnDryRun"}),
        ({"sideEffects": "Some"}, {'sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'}),
        (
            {"timeoutSeconds": 31},
            {"timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"},
        ),
        ({"clientConfig": {}}, {"clientConfig: Required value: exactly one of url or service is required"}),
        (
            {"clientConfig": {"service": {}}},
            {"clientConfig.service.name: Required value", "clientConfig.service.namespace: Required value"},
        ),
        (
            {"clientConfig": {"url": "http://x"}},
            {
                "clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; "
                "desired format: https://host[/path]"
            },
        ),
        ({"admissionReviewVersions": []}, {"admissionReviewVersions: Required value: must specify one of v1, v1beta1"}),
        (
            {"admissionReviewVersions": ["v2"]},
            {'admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1'},
        ),
    ],
)
def test_what_is_wrong_with_a_webhook_is_said_of_its_field(fields: Json, messages: set[str]) -> None:
    assert of_webhook(**fields) == messages


def test_webhooks_have_names_of_their_own() -> None:
    assert refused(WEBHOOKS, webhooks=[WEBHOOK, WEBHOOK]) == {'webhooks[1].name: Duplicate value: "a.example.com"'}


def test_a_policy_gets_its_defaults() -> None:
    stored = created(POLICIES, an(POLICIES, spec=POLICY, status={"x": 1}))
    assert stored["spec"] == {
        **POLICY,
        "failurePolicy": "Fail",
        "matchConstraints": {
            "namespaceSelector": {},
            "objectSelector": {},
            "matchPolicy": "Equivalent",
            "resourceRules": [{**RULE, "scope": "*"}],
        },
    }
    assert (stored["status"], stored["metadata"]["generation"]) == ({}, 1)


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        (POLICY, set()),
        ({**POLICY, "matchConstraints": None}, {"matchConstraints: Required value"}),
        ({**POLICY, "matchConstraints": {}}, {"matchConstraints.resourceRules: Required value"}),
        (
            {**POLICY, "matchConstraints": {"resourceRules": [{}]}},
            {f"matchConstraints.resourceRules[0].{key}: Required value" for key in RULE},
        ),
        (
            {**POLICY, "validations": []},
            {
                f"{key}: Required value: validations or auditAnnotations must contain at least one item"
                for key in ("validations", "auditAnnotations")
            },
        ),
        (
            {**POLICY, "validations": [{"expression": " "}]},
            {"validations[0].expression: Required value: expression is not specified"},
        ),
        (
            {**POLICY, "validations": [{"expression": "true", "reason": "Foo"}]},
            {
                'validations[0].reason: Unsupported value: "Foo": supported values: "Forbidden", '
                '"Invalid", "RequestEntityTooLarge"'
            },
        ),
    ],
)
def test_what_is_wrong_with_a_policy_is_said_of_its_field(spec: Json, messages: set[str]) -> None:
    assert refused(POLICIES, spec=spec) == {f"spec.{message}" for message in messages}


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        (BINDING, set()),
        (
            {},
            {
                "policyName: Required value",
                "validationActions: Required value: at least one validation action is required",
            },
        ),
        (
            {**BINDING, "validationActions": ["Foo"]},
            {'validationActions[0]: Unsupported value: "Foo": supported values: "Audit", "Deny", "Warn"'},
        ),
        ({**BINDING, "validationActions": ["Deny", "Deny"]}, {'validationActions[1]: Duplicate value: "Deny"'}),
        (
            {**BINDING, "validationActions": ["Deny", "Warn"]},
            {
                'validationActions: Invalid value: ["Deny","Warn"]: must not contain both Deny and '
                "Warn (repeating the same validation failure information in the API response and "
                "headers serves no purpose)"
            },
        ),
    ],
)
def test_what_is_wrong_with_a_binding_is_said_of_its_field(spec: Json, messages: set[str]) -> None:
    assert refused(BINDINGS, spec=spec) == {f"spec.{message}" for message in messages}


def test_what_a_binding_limits_gets_the_defaults_of_a_policy_s_constraints() -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}
    limits = {"resourceRules": [rule], "objectSelector": {"matchLabels": {"a": "b"}}, "matchPolicy": None}
    assert created(BINDINGS, an(BINDINGS, spec={**BINDING, "matchResources": limits}))["spec"]["matchResources"] == {
        "resourceRules": [{**rule, "scope": "*"}],
        "namespaceSelector": {},
        "objectSelector": {"matchLabels": {"a": "b"}},
        "matchPolicy": "Equivalent",
    }
    assert created(BINDINGS, an(BINDINGS, spec={**BINDING, "paramRef": None}))["spec"] == BINDING
