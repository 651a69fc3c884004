"""What the tests on a real node share: fresh namespaces, pods to look from, memcached's protocol, the leader."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

from lab.kubectl import LabError
from lab.node.node import Node
from operator_runtime.testing.waiting import eventually
from tests.cluster import make_namespace
from tests.kubectl_in_namespace import Kubectl

PROJECT = Path(__file__).parents[2]
INSTALL = PROJECT / "manifests" / "install"
SAMPLE = PROJECT / "manifests" / "samples" / "cache_v1alpha1_memcached_cr.yaml"
BUSYBOX = "docker.io/library/busybox:1.36"
# What the example's shells run, as its guide has it.
EXAMPLE_BUSYBOX = "docker.io/library/busybox:latest"
# Python with a client library, for `hashing_client`.
PYMEMCACHE = "localhost/memcached-operator-lab/pymemcache:4"
MEMCACHED = "docker.io/library/memcached:1.6.45-alpine"
# The same under another name, for which servers are replaced.
OTHER_MEMCACHED = "docker.io/library/memcached:other"

# What a container of busybox runs that has nothing to do, and ends when it is told to.
STAYS = ("sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait; done")

SYSTEM = "memcached-operator-system"
OPERATOR = "memcached-operator"
LOCK = "memcached-operator-lock"
MEMCACHED_PORT = 11211

_MEMCACHED_TIMEOUT_S = 5.0


@contextlib.contextmanager
def fresh_namespace(node: Node, name: str) -> Iterator[Kubectl]:
    """A namespace that is deleted at the end, without waiting."""
    make_namespace(node.plane, name)
    try:
        yield Kubectl(node.plane, name)
    finally:
        node.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


def run_pod(kubectl: Kubectl, name: str, *command: str) -> None:
    """Make a busybox pod that stays, and wait until it is ready."""
    pulls_none = ("--image-pull-policy=IfNotPresent", "--restart=Always")
    kubectl("run", name, f"--image={BUSYBOX}", *pulls_none, "--command", "--", *(command or STAYS))
    kubectl.wait(f"pod/{name}", "condition=Ready")


def stores(address: str, value: str) -> bool:
    """Whether a memcached keeps a value and gives it back, for an hour."""
    stored = answer(address, f"set e2e 0 3600 {len(value)}\r\n{value}\r\n")
    return stored[:1] == ["STORED"] and has(address, value)


def has(address: str, value: str) -> bool:
    """Whether a memcached has the value that `stores` stored."""
    return answer(address, "get e2e\r\n")[:3] == [f"VALUE e2e 0 {len(value)}", value, "END"]


def answer(address: str, sent: str) -> list[str]:
    """The lines that a memcached, or the endpoint of a list, answers."""
    with socket.create_connection((address, MEMCACHED_PORT), _MEMCACHED_TIMEOUT_S) as connection:
        connection.sendall(f"{sent}quit\r\n".encode())
        return connection.makefile().read().splitlines()


def pod_address(kubectl: Kubectl, pod: str) -> str:
    """A pod's IP address, which this machine reaches."""
    return str(kubectl.get("pod", pod)["status"]["podIP"])


def server_process(node: Node, kubectl: Kubectl, pod: str) -> int:
    """The process id of a server's container, once it runs."""

    def container_pid() -> int:
        with contextlib.suppress(LabError):
            return node.container_pid(kubectl.namespace, pod, "memcached")
        return 0

    return eventually(container_pid, bool)


def operator_pods(kubectl: Kubectl) -> list[str]:
    """The names of the operator's pods that are not going."""
    found = kubectl.get("pods", "-l", f"app.kubernetes.io/name={OPERATOR}")["items"]
    return sorted(pod["metadata"]["name"] for pod in found if "deletionTimestamp" not in pod["metadata"])


def leader(kubectl: Kubectl) -> str:
    """The pod that the Lease names, or nothing."""
    holder = kubectl("get", "lease", LOCK, "-o", "jsonpath={.spec.holderIdentity}", check=False)
    return holder.partition("_")[0]


def new_leader(kubectl: Kubectl, former: str) -> str:
    """Wait until another pod than that one leads; its name."""
    return eventually(lambda: leader(kubectl), lambda name: name not in ("", former))


def nodes_of(kubectl: Kubectl, name: str) -> list[str]:
    """`status.nodes` of a Memcached."""
    return list(kubectl.get("mcd", name).get("status", {}).get("nodes", ()))


def incarnations(kubectl: Kubectl) -> dict[str, tuple[str, str]]:
    """Which pod and which container each name of a pod is at present; of pods with one container."""
    return {
        pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["containerID"])
        for pod in kubectl.get("pods")["items"]
    }
