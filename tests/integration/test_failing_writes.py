"""The API server fails to write one kind of object for now, as where an admission webhook for it is down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from operator_runtime.testing.waiting import eventually, until
from tests.integration.admission import takes_deployments, webhook_for
from tests.integration.conftest import memcached
from tests.integration.oracle import condition, make_ready, pods_of, wait, wait_condition
from tests.kubectl_in_namespace import Kubectl

pytestmark = [
    pytest.mark.core,
    pytest.mark.cluster("kubernetes"),  # the simulator calls no webhooks
    pytest.mark.usefixtures("operator"),
]


@contextmanager
def down_webhook(kubectl: Kubectl) -> Iterator[None]:
    """A webhook for Deployments of the namespace behind which nobody listens, as after its own pods are gone.

    The API server fails to create and to change them until the end of the block.
    """
    nobody = {"url": "https://127.0.0.1:1/"}
    operations = ("CREATE", "UPDATE")
    kubectl.apply(webhook_for(kubectl.namespace, "deployments", *operations, clientConfig=nobody, failurePolicy="Fail"))
    try:
        until("the API server calls no webhook", lambda: not takes_deployments(kubectl))
        yield
    finally:
        kubectl("delete", "validatingwebhookconfiguration", kubectl.namespace)


def not_written(kubectl: Kubectl, name: str) -> dict[str, Any]:
    """The condition Ready once it says that the Deployment could not be written."""
    wait(kubectl, f"mcd/{name}", '.status.conditions[?(@.type=="Ready")].status', "False")
    return eventually(
        lambda: condition(kubectl, name, "Ready"),
        lambda ready: "The API server failed to write the Deployment: " in ready["message"],
        what="the condition Ready in the API server's words",
    )


def test_a_webhook_for_deployments_that_is_down_is_told_and_keeps_nothing_else_from_a_new_memcached(
    kubectl: Kubectl,
) -> None:
    with down_webhook(kubectl):
        kubectl.apply(memcached("shop", 1))
        kubectl.wait("mcd/shop", "jsonpath={.status.observedGeneration}=1")
        ready = not_written(kubectl, "shop")
        assert ready["status"] == "False"
        assert 'failed calling webhook "webhook.example.com"' in ready["message"]
        assert kubectl.names("services,deployments") == ["service/shop"]
    kubectl.wait("deployment/shop", "jsonpath={.spec.replicas}=1")

    # Nor is a change told as done, or a lost server kept in the list.
    wait(kubectl, "mcd/shop", ".status.replicas", 1)
    make_ready(kubectl, pods_of(kubectl, "shop"))
    wait_condition(kubectl, "shop", "Ready", "AllServersReady")
    with down_webhook(kubectl):
        kubectl("scale", "mcd/shop", "--replicas=3")
        wait(kubectl, "mcd/shop", ".status.observedGeneration", 2)
        assert not_written(kubectl, "shop")["observedGeneration"] == 2
        assert condition(kubectl, "shop", "Progressing")["reason"] == "Scaling"
    wait(kubectl, "deployment/shop", ".spec.replicas", 3)
