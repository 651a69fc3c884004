"""`spec.tls` and `spec.auth` as a user sees them: what is refused, what pods are made of it, and what is told.

There is no kubelet: a test writes what the pods' sidecars would have said.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.conftest import memcached
from tests.integration.oracle import (
    catch_up,
    complete,
    condition,
    create_memcached,
    deployment_writes,
    make_ready,
    patch_pods,
    pods_of,
    wait_condition,
    writes,
)
from tests.integration.other_client import called, events_of
from tests.integration.requests import taken
from tests.kubectl_in_namespace import Kubectl

pytestmark = pytest.mark.usefixtures("operator")
TLS = {"tls": {"secretName": "shop-tls", "clientAuth": "Require"}}
AUTH = {"auth": {"secretName": "shop-passwords"}}
MISSING = "there is no Secret shop-tls with the key tls.crt"


@pytest.mark.cluster("kubernetes")  # the simulator has no pod security
def test_pods_with_secrets_and_a_sidecar_are_admitted_under_the_restricted_profile(kubectl: Kubectl) -> None:
    kubectl("label", "namespace", kubectl.namespace, "pod-security.kubernetes.io/enforce=restricted")
    complete(kubectl, "shop", 1, workload="StatefulSet", **TLS, **AUTH)


def test_pods_have_their_secrets_and_a_sidecar(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 1, workload="StatefulSet", **TLS, **AUTH)
    (name,) = pods_of(kubectl, "shop")
    pod = kubectl.get("pod", name)["spec"]
    (server,), (sidecar,) = pod["containers"], pod["initContainers"]
    assert ("-Z" in server["command"], "-Y" in server["command"]) == (True, True)
    assert sidecar["command"] == ["sh", "/etc/memcached/scripts/reloader.sh"]
    assert sidecar["args"][:2] == ["shop-tls", "shop-passwords"]
    *secrets, scripts = pod["volumes"]
    assert {each["name"]: each["secret"]["secretName"] for each in secrets} == {
        "tls": "shop-tls",
        "auth": "shop-passwords",
    }
    made = kubectl.get("configmap", scripts["configMap"]["name"])
    assert (made["immutable"], list(made["data"])) == (True, ["reloader.sh"])
    mark = kubectl.cluster.audit_mark()
    catch_up(kubectl)
    assert taken(writes(kubectl, "shop", mark)) <= {"memcacheds/status 200"}, "what the API server fills in is no drift"


def report_sidecars(kubectl: Kubectl, pods: list[str], message: str, *, started: bool = False) -> None:
    """What the kubelet tells of sidecars that ended once with these words, and wait or let memcached start now."""
    ended = {"exitCode": 1, "reason": "Error", "message": f"{message}\n"}
    sidecar = {"name": "reloader", "image": "memcached", "imageID": "", "restartCount": 1, "ready": started}
    patch_pods(
        kubectl,
        pods,
        initContainerStatuses=[
            sidecar | {"started": started, "state": {"running": {}}, "lastState": {"terminated": ended}}
        ],
    )


def test_a_secret_that_is_missing_is_told_with_its_key_and_over_when_servers_start(kubectl: Kubectl) -> None:
    create_memcached(kubectl, "shop", 2, **TLS)
    pods = pods_of(kubectl, "shop")
    report_sidecars(kubectl, pods, f"SecretNotFound: {MISSING}")
    found = wait_condition(kubectl, "shop", "Degraded", "SecretNotFound")
    assert found["message"] == f"{MISSING}. Running servers continue; new ones start once this is corrected."
    available = condition(kubectl, "shop", "Available")
    assert available["message"] == f"0 of 2 servers are ready: SecretNotFound: {MISSING}"
    assert condition(kubectl, "shop", "Ready")["reason"] == "SecretNotFound"

    report_sidecars(kubectl, pods, "CertificateInvalid: key tls.key of the Secret shop-tls: no match")
    wait_condition(kubectl, "shop", "Degraded", "CertificateInvalid")
    warnings = [each.reason for each in events(kubectl) if each.type == "Warning"]
    assert {"SecretNotFound", "CertificateInvalid"} <= set(warnings)

    report_sidecars(kubectl, pods, "CertificateInvalid: key tls.key of the Secret shop-tls: no match", started=True)
    make_ready(kubectl, pods)
    wait_condition(kubectl, "shop", "Degraded", "AsExpected")
    wait_condition(kubectl, "shop", "Ready", "AllServersReady")
    assert taken(deployment_writes(kubectl, "shop")) == {"deployments 201"}


@pytest.mark.core
@pytest.mark.cluster("kubernetes")  # whose defaults stand in the volumes
def test_without_a_sidecar_the_kubelet_waits_for_secrets_and_with_one_again_it_does_not(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 1, workload="StatefulSet", **TLS, **AUTH)
    restart = {"tls": TLS["tls"] | {"reload": "Restart"}}
    for fields, optional in ((restart, {None}), (TLS, {True})):
        kubectl.apply(memcached("shop", 1, workload="StatefulSet", **fields, **AUTH))
        catch_up(kubectl)  # the second change is complete at once where the first has replaced no pod yet
        pod = kubectl.get("statefulset", "shop")["spec"]["template"]["spec"]
        assert {each["secret"].get("optional") for each in pod["volumes"] if "secret" in each} == optional
        assert pod.get("shareProcessNamespace") is (True if optional == {True} else None)


def events(kubectl: Kubectl) -> list[Any]:
    found: list[Any] = called(kubectl.cluster, lambda client: events_of(client, kubectl.namespace, "shop"))
    return found
