"""What is told of servers that speak TLS, or want a password or a client certificate: real memcacheds behind pods."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Iterator

import pytest

from kube_simulator.controllers.memcached import PORT, find_program, free_address
from tests.certificates import Authority, Pair, mounted, secret, tls_arguments
from tests.cluster import REQUIRED_VARIABLE
from tests.integration.accounts import account_with_role, operator_rules, rules_of
from tests.integration.conftest import MANIFESTS, Operators, memcached
from tests.integration.oracle import patch_pods, pods_of, wait, wait_condition
from tests.kubectl_in_namespace import Kubectl

pytestmark = pytest.mark.cluster("simulator")

AUTHORITY = Authority()
PASSWORDS = b"ann:secret\nbob:other\n"
ROLE = MANIFESTS / "components" / "server-credentials" / "namespaced" / "role.yaml"


@pytest.fixture
def good(kubectl: Kubectl) -> Pair:
    """Of the names by which clients know the servers of the Memcached."""
    service = f"shop.{kubectl.namespace}.svc"
    return AUTHORITY.issue(service, f"*.{service}")


@pytest.fixture
def server(good: Pair) -> Iterator[str]:
    """The address of a real memcached that wants a client certificate and a password."""
    program = find_program()
    if program is None and not os.environ.get(REQUIRED_VARIABLE):
        pytest.skip("no memcached on the PATH, or not on Linux")
    assert program is not None, "no memcached on the PATH"
    address = free_address(PORT, lambda _: False, random.Random())
    user = ("-u", "nobody") if os.getuid() == 0 else ()
    with mounted({**good.files, "password-file": PASSWORDS}) as folder:
        command = [program, *tls_arguments(folder, verify=2), "-Y", f"{folder}/password-file", "-l", address, *user]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                yield address
            finally:
                process.kill()


def test_with_the_setting_passwords_and_client_certificates_are_taken_from_the_secrets(
    kubectl: Kubectl, operators: Operators, good: Pair, server: str
) -> None:
    account = account_with_role(kubectl, [*operator_rules(without=[("*", "leases")]), *rules_of(ROLE)])
    flags = ("--server-stats-interval-s=0.5", "--server-credentials")
    operators.start("-n", kubectl.namespace, *flags, account_dir=account).ready()
    kubectl.apply(secret("certificate", good.files), secret("passwords", {"password-file": PASSWORDS}))
    tls = {"secretName": "certificate", "clientAuth": "Require"}
    kubectl.apply(memcached("shop", 1, tls=tls, auth={"secretName": "passwords"}))
    wait(kubectl, "mcd/shop", ".status.replicas", 1)
    ready = [{"type": "Ready", "status": "True"}]
    patch_pods(
        kubectl, pods_of(kubectl, "shop"), phase="Running", conditions=ready, podIP=server, podIPs=[{"ip": server}]
    )
    found = wait_condition(kubectl, "shop", "Serving", "Answering")
    assert found["status"] == "True"
    assert "secret" not in json.dumps(kubectl.get("mcd", "shop")["status"])
