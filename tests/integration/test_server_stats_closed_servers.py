"""What is told of servers that speak TLS, or want a password or a client certificate: real memcacheds behind pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import Authority, Pair, mounted, secret, tls_arguments
from tests.integration.accounts import account_with_role, operator_rules, rules_of
from tests.integration.conftest import MANIFESTS, Operators
from tests.integration.oracle import wait_condition
from tests.integration.real_servers import OFTEN, RealServer, run_at
from tests.kubectl_in_namespace import Kubectl

pytestmark = pytest.mark.cluster("simulator")

CREDENTIALS = "--server-credentials"
AUTHORITY = Authority()
PASSWORDS = b"ann:secret\nbob:other\n"
ROLE = MANIFESTS / "components" / "server-credentials" / "namespaced" / "role.yaml"


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
