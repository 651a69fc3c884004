"""What is told of servers that speak TLS, or want a password or a client certificate: real memcacheds behind pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from operator_runtime.testing.waiting import until
from tests.certificates import Authority, Pair, mounted, secret, tls_arguments
from tests.integration.accounts import account_with_role, operator_rules, rules_of
from tests.integration.conftest import MANIFESTS, Operators, memcached
from tests.integration.monitoring import METRICS, Scrape, url_of
from tests.integration.oracle import pods_of, wait, wait_condition
from tests.integration.real_servers import OFTEN, RealServer, give, run_at
from tests.kubectl_in_namespace import Kubectl

pytestmark = pytest.mark.cluster("simulator")

CREDENTIALS = "--server-credentials"
AUTHORITY = Authority()
PASSWORDS = b"ann:secret\nbob:other\n"
ROLE = MANIFESTS / "components" / "server-credentials" / "namespaced" / "role.yaml"
EXPIRY = "memcached_server_certificate_expiry_timestamp_seconds"


def names(kubectl: Kubectl) -> tuple[str, str]:
    """Those by which clients know the servers of the Memcached."""
    service = f"shop.{kubectl.namespace}.svc"
    return service, f"*.{service}"


@pytest.fixture
def good(kubectl: Kubectl) -> Pair:
    return AUTHORITY.issue(*names(kubectl))


@pytest.fixture
def folder(good: Pair) -> Iterator[Path]:
    with mounted({**good.files, "password-file": PASSWORDS}) as files:
        yield files


def permitted(kubectl: Kubectl, operators: Operators) -> None:
    """Start an operator that has the component's permission, and asks often."""
    folder = account_with_role(kubectl, [*operator_rules(without=[("*", "leases")]), *rules_of(ROLE)])
    operators.start("-n", kubectl.namespace, OFTEN, CREDENTIALS, account_dir=folder).ready()


def tls(client_auth: str = "None") -> dict[str, str]:
    return {"secretName": "certificate", "clientAuth": client_auth}


def series(url: str) -> dict[str, float]:
    """When certificates expire, by pod."""
    found = {}
    for line in Scrape(url).text.splitlines():
        if line.startswith(f"{EXPIRY}{{"):
            labels, _, value = line.rpartition(" ")
            found[labels.partition('pod="')[2].partition('"')[0]] = float(value)
    return found


def test_servers_that_speak_tls_are_asked_as_others_are(
    kubectl: Kubectl, operators: Operators, good: Pair, folder: Path
) -> None:
    operator = operators.start("-n", kubectl.namespace, METRICS, OFTEN, OPERATOR_NAME=kubectl.namespace).ready()
    with RealServer(*tls_arguments(folder)) as server:
        (pod,) = run_at(kubectl, server.address, tls=tls())
        found = wait_condition(kubectl, "shop", "Serving", "Answering")
        assert found["message"] == "All ready servers answer."
        assert kubectl.get("mcd", "shop")["status"]["version"].startswith("1.")
        until(
            "it is not shown when it expires",
            lambda: (
                series(f"{url_of(operator, 'metrics')}/servers")
                == {pod: good.certificate.not_valid_after_utc.timestamp()}
            ),
        )


def test_with_the_setting_passwords_and_client_certificates_are_taken_from_the_secrets(
    kubectl: Kubectl, operators: Operators, good: Pair, folder: Path
) -> None:
    permitted(kubectl, operators)
    kubectl.apply(secret("certificate", good.files))
    kubectl.apply(secret("passwords", {"password-file": PASSWORDS}))
    arguments = tls_arguments(folder, verify=2)
    with RealServer(*arguments, "-Y", f"{folder}/password-file") as server:
        run_at(kubectl, server.address, tls=tls("Require"), auth={"secretName": "passwords"})
        found = wait_condition(kubectl, "shop", "Serving", "Answering")
        assert found["status"] == "True"
    assert "secret" not in json.dumps(kubectl.get("mcd", "shop")["status"])


def test_where_nothing_reloads_them_servers_with_another_certificate_than_the_secrets_are_replaced(
    kubectl: Kubectl, operators: Operators, good: Pair, folder: Path
) -> None:
    permitted(kubectl, operators)
    renewed = AUTHORITY.issue(*names(kubectl))
    kubectl.apply(secret("certificate", renewed.files))
    restart, rollout = tls() | {"reload": "Restart"}, {"minReadySeconds": 0}
    kubectl.apply(memcached("shop", 1, tls=restart, rollout=rollout))
    wait(kubectl, "mcd/shop", ".status.replicas", 1)
    (before,) = pods_of(kubectl, "shop")
    uid = kubectl.uid(f"pod/{before}")
    with RealServer(*tls_arguments(folder)) as server:
        give(kubectl, before, server.address)
        until("it is not replaced", lambda: uid not in kubectl("get", "pods", "-o=jsonpath={.items[*].metadata.uid}"))
    assert "by one with the renewed certificate" in kubectl("events", "--for=memcached/shop")
    wait(kubectl, "mcd/shop", ".status.replicas", 1)
    (after,) = pods_of(kubectl, "shop")
    with mounted(renewed.files) as files, RealServer(*tls_arguments(files)) as server:
        give(kubectl, after, server.address)
        wait_condition(kubectl, "shop", "Serving", "Answering")
        wait_condition(kubectl, "shop", "Ready", "AllServersReady")
    assert kubectl("events", "--for=memcached/shop").count("with the renewed certificate") == 1
