"""Clients of auto discovery on a real node: they follow the list of an endpoint while servers come and go."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.cache import BuildError
from lab.kubectl import LabError
from lab.node.node import Node
from operator_runtime.testing.waiting import eventually, until
from tests.clients import programs
from tests.cluster import REQUIRED_VARIABLE
from tests.e2e.node_cluster import MEMCACHED_PORT, OPERATOR, answer, pod_address
from tests.integration.conftest import memcached
from tests.kubectl_in_namespace import Kubectl

NAME = "cache"
ENDPOINT = f"{NAME}-discovery"
# How long servers run on that left the list; the clients here read it each second.
DRAIN_S = 20

pytestmark = pytest.mark.timeout(300)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "client",
    [
        programs.emcache,
        programs.django,
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (programs.thanos, programs.memcached_elasticache, programs.aws_java)
        ),
    ],
)
def test_a_client_follows_the_list_without_an_error(
    client: Callable[[Path], programs.Command], node: Node, system: Kubectl, kubectl: Kubectl, tmp_path: Path
) -> None:
    try:
        command = client(tmp_path)
    except BuildError as error:
        if os.environ.get(REQUIRED_VARIABLE) or os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    asks_servers = client is programs.aws_java
    endpoint = _begin(kubectl, inServers=asks_servers)
    name = f"{ENDPOINT}.{kubectl.namespace}.svc:{MEMCACHED_PORT}"
    failures = tmp_path / "failures"
    with (
        failures.open("w") as output,
        subprocess.Popen([*_with_dns(node, tmp_path), *command, name], stdin=subprocess.PIPE, stdout=output) as loading,
    ):
        try:
            _read_anew(_addresses(endpoint, 2))
            _scale(kubectl, 3)
            more = _addresses(endpoint, 3)
            _read_anew(more)
            _scale(kubectl, 2)
            staying = _addresses(endpoint, 2)
            (leaving,) = more - staying

            def is_left() -> bool:
                before = _reads(leaving)
                _read_anew(staying)
                return _reads(leaving) == before

            until("a client still asks a server that left the list", is_left)
            lost = failures.read_text()
            until("the server that left the list does not end", lambda: not _runs(leaving))
            _read_anew(staying)
            loading.communicate(b"\n", timeout=60)
        finally:
            loading.kill()
    assert (loading.returncode, failures.read_text()) == (0, lost)
    # One that asks the servers can lose the request that it has under way when it polls first, or takes another list.
    assert len(lost.splitlines()) <= (3 if asks_servers else 0)


def test_the_list_follows_a_replaced_server_in_the_endpoint_and_in_each_server(
    node: Node, system: Kubectl, kubectl: Kubectl
) -> None:
    node.kubectl("label", "namespace", kubectl.namespace, "pod-security.kubernetes.io/enforce=restricted")
    endpoint = _begin(kubectl, inServers=True)

    def nodes() -> str:
        hosts = (host.partition(":")[0] for host in _listed(kubectl, 2))
        return " ".join(f"{each}|{pod_address(kubectl, each.partition('.')[0])}|11211" for each in hosts)

    def everywhere(version: int) -> int:
        """The version of the list that is given everywhere, greater than this one."""
        eventually(lambda: _given(endpoint, "config get cluster"), lambda found: found[1:2] == [nodes()])
        due = _given(endpoint, "config get cluster")
        assert int(due[0]) > version
        for number in range(2):
            address = pod_address(kubectl, f"{NAME}-{number}")
            eventually(partial(_given, address, "get AmazonElastiCache:cluster"), due.__eq__)
        return int(due[0])

    version = everywhere(0)
    before = kubectl.uid(f"pod/{NAME}-0")
    kubectl("delete", "pod", f"{NAME}-0")
    eventually(lambda: kubectl.uid(f"pod/{NAME}-0"), lambda found: found != before, ignoring=LabError)
    kubectl.wait(f"pod/{NAME}-0", "condition=Ready")
    later = everywhere(version)
    # Endpoints that start anew have the same, also while nobody leads.
    system("scale", "deployment", OPERATOR, "--replicas=0")
    try:
        kubectl("delete", "pods", "--selector", f"memcached_cr={NAME}.discovery", "--wait=true")
        kubectl("rollout", "status", f"deployment/{ENDPOINT}", "--timeout=60s")
        given = eventually(lambda: _given(endpoint, "config get cluster"), bool)
        assert given == [str(later), nodes()]
    finally:
        system("scale", "deployment", OPERATOR, "--replicas=2")
        system("rollout", "status", f"deployment/{OPERATOR}", "--timeout=60s")


def _with_dns(node: Node, folder: Path) -> list[str | Path]:
    """Runs a command that resolves names as pods do, the cluster's alone."""
    file = folder / "resolv.conf"
    file.write_text(f"nameserver {node.addresses.dns}\nsearch cluster.local\noptions ndots:5\n")
    mounted = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", mounted, file]


def _given(address: str, request: str) -> list[str]:
    """The lines of the list that is given there, none where it is not."""
    with contextlib.suppress(OSError):
        first, *lines = answer(address, f"{request}\r\n") or [""]
        return lines[:2] if first.startswith(("CONFIG", "VALUE")) else []
    return []


def _addresses(endpoint: str, size: int) -> set[str]:
    """The addresses in the list of the endpoint once it has so many servers."""

    def addresses() -> set[str]:
        return {each.split("|")[1] for each in " ".join(_given(endpoint, "config get cluster")[1:]).split()}

    return eventually(addresses, lambda found: len(found) == size)


def _reads(address: str) -> int:
    (reads,) = (int(line.split()[2]) for line in answer(address, "stats\r\n") if line.startswith("STAT cmd_get "))
    return reads


def _read_anew(addresses: Iterable[str]) -> None:
    """Wait until each of these servers has been asked for some rounds."""
    due = {each: _reads(each) + 200 for each in addresses}
    eventually(lambda: {each: _reads(each) for each in due}, lambda now: all(now[each] > due[each] for each in due))


def _begin(kubectl: Kubectl, **auto: bool) -> str:
    """The address of the endpoint of two servers, once it is ready."""
    discovery: dict[str, Any] = {"autoDiscovery": auto}
    kubectl.apply(memcached(NAME, 2, workload="StatefulSet", discovery=discovery, drainPeriodSeconds=DRAIN_S))
    _listed(kubectl, 2)
    eventually(lambda: kubectl("get", "deployment", ENDPOINT, check=False), bool)
    kubectl("rollout", "status", f"deployment/{ENDPOINT}", "--timeout=60s")
    endpoint = str(kubectl.get("service", ENDPOINT)["spec"]["clusterIP"])
    # The node's rules follow the pods' readiness a moment later.
    eventually(lambda: _given(endpoint, "config get cluster"), bool)
    return endpoint


def _scale(kubectl: Kubectl, size: int) -> None:
    kubectl("patch", "memcached", NAME, "--type=merge", "-p", f'{{"spec":{{"size":{size}}}}}')


def _listed(kubectl: Kubectl, size: int) -> list[str]:
    """The list once it has so many servers."""
    return eventually(
        lambda: kubectl.get("memcached", NAME).get("status", {}).get("serverList", []), lambda found: len(found) == size
    )


def _runs(address: str) -> bool:
    """Whether a server answers, as it does while it drains."""
    with contextlib.suppress(OSError):
        return bool(answer(address, "version\r\n"))
    return False
