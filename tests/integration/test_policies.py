"""What a policy of the cluster is against: objects that the operator writes, and pods of its workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from operator_runtime.testing.waiting import until
from tests.integration.conftest import memcached
from tests.integration.oracle import condition, wait, wait_condition
from tests.kubectl_in_namespace import Kubectl

pytestmark = [
    pytest.mark.cluster("kubernetes"),  # the simulator enforces few policies
    pytest.mark.usefixtures("operator"),
]

WORDS = "nothing without a cost centre"
PROBES = {"deployments": ("create", "deployment"), "pods": ("run",)}
Forbid = Callable[[str], None]


def _configuration(namespace: str, resource: str) -> list[dict[str, Any]]:
    group = "apps" if resource == "deployments" else ""
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}
    api = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": namespace}}
    # No reason: it is answered with 422 then.
    validation = {"expression": "false", "message": WORDS}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    policy = {"matchConstraints": {"resourceRules": [rule]}, "validations": [validation]}
    binding = {
        "policyName": namespace,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": selector},
    }
    return [
        {**api, "kind": "ValidatingAdmissionPolicy", "spec": policy},
        {**api, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding},
    ]


@pytest.fixture
def forbid(kubectl: Kubectl) -> Iterator[Forbid]:
    """From when it returns on nobody creates such objects in the namespace, until `allow` or the end of the test."""

    def begin(resource: str) -> None:
        for each in _configuration(kubectl.namespace, resource):
            kubectl.apply(each)
        probe = (*PROBES[resource], "probe", "--image=none", "--dry-run=server")
        until("the policy is not in force", lambda: kubectl.run(*probe, check=False).returncode != 0)

    yield begin
    allow(kubectl)


def allow(kubectl: Kubectl) -> None:
    """Take the policy out."""
    for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
        kubectl("delete", kind, kubectl.namespace, "--ignore-not-found")


def test_a_policy_that_denies_a_deployment_is_named_as_one_and_costs_nothing_else(
    kubectl: Kubectl, forbid: Forbid
) -> None:
    forbid("deployments")
    kubectl.apply(memcached("shop", 1), create=True)
    denied = wait_condition(kubectl, "shop", "Degraded", "DeniedByPolicy")
    assert denied["message"].startswith("A policy denied the Deployment: ")
    assert f"denied request: {WORDS}" in denied["message"]
    assert condition(kubectl, "shop", "Ready")["reason"] == "DeniedByPolicy"
    assert kubectl.names("services,deployments") == ["service/shop"]
    allow(kubectl)
    # Nothing tells the operator of it, but a change of the Memcached has it look at once.
    kubectl("scale", "mcd/shop", "--replicas=2")
    wait(kubectl, "mcd/shop", ".status.replicas", 2)
    assert condition(kubectl, "shop", "Degraded")["reason"] == "AsExpected"
