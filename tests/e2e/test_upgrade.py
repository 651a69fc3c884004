"""From an earlier operator to today's, each by the install file and the image of its own checkout."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.audit import Mark
from lab.image import images
from lab.node.node import Node
from operator_runtime.testing.waiting import eventually
from tests.cluster import Cluster
from tests.e2e.conftest import uninstall
from tests.e2e.node_cluster import (
    INSTALL,
    MEMCACHED,
    OPERATOR,
    PROJECT,
    SYSTEM,
    fresh_namespace,
    leader,
    nodes_of,
    operator_pods,
    pod_address,
    stores,
)
from tests.integration.conftest import memcached
from tests.integration.monitoring import Scrape
from tests.integration.requests import written
from tests.kubectl_in_namespace import Kubectl

# A commit whose servers' template is today's. Before the first release a template may change, and then this does; from
# then on it is the last release, and no longer moves with a template: an upgrade would empty everybody's caches.
EARLIER = "7c5aa5ed58e4208a0c0f5096ec978bba9bc9efcd"
EARLIER_IMAGE = f"localhost/{OPERATOR}:earlier"
# What that install file names. Another name of the same image would be another template.
_NAMED = f"image: localhost/{OPERATOR}:0.1.0\n"
_NAMED_MEMCACHED = f"value: {MEMCACHED}\n"

NAME, LASTING = "cache", "lasting"
SIZE = 3
_ACCOUNT = f"system:serviceaccount:{SYSTEM}:{OPERATOR}"
_READS = ("get", "list", "watch")
# What operators write about themselves: who leads, and what happened.
_OF_THEIR_OWN = ("leases", "events")
# A later operator may say more.
_STATUS = {f"patch memcacheds/status {NAME}", f"patch memcacheds/status {LASTING}"}

# The first test starts the node, and builds the earlier image too.
pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True, slots=True)
class Upgrade:
    """One that is done, and what was there before and after."""

    servers: Kubectl
    mark: Mark
    """Of the audit log, before it began."""
    before: dict[str, object]
    after: dict[str, object]
    written: list[str]
    """What operators, old and new, wrote meanwhile: see `_writes`."""


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout of the earlier commit."""
    found = _git("cat-file", "-e", f"{EARLIER}^{{commit}}")
    if found.returncode != 0:
        shallow = _git("rev-parse", "--is-shallow-repository").stdout.decode().strip()
        if shallow == "false":
            pytest.fail(f"the history has no commit {EARLIER}: {found.stderr.decode().strip()}")
        pytest.skip(f"this checkout has no history with commit {EARLIER}")
    archive = _git("archive", "--format=tar", EARLIER)
    assert archive.returncode == 0, archive.stderr.decode()
    folder = tmp_path_factory.mktemp("earlier")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def upgrade(node: Node, operator_images: None, earlier: Path) -> Iterator[Upgrade]:
    """Two Memcacheds whose servers were ready before; today's operator leads now, and has looked at them."""
    node.load_image(images.operator_image(EARLIER_IMAGE, source=earlier))
    install = (earlier / "manifests" / "install" / "cluster.yaml").read_text()
    assert (install.count(_NAMED), install.count(_NAMED_MEMCACHED)) == (1, 1)
    # Both releases may bear the same version.
    install = install.replace(_NAMED, f"image: {EARLIER_IMAGE}\n")
    system = Kubectl(node.plane, SYSTEM)
    try:
        with fresh_namespace(node, "e2e-upgrade") as servers:
            node.kubectl("apply", "--server-side", "-f", "-", input=install)
            _await_rollout(system, OPERATOR)
            _make_servers(servers)
            assert _images(system) == {EARLIER_IMAGE}
            before, mark = _snapshot(servers), node.plane.audit_mark()

            node.kubectl("apply", "--server-side", "-f", str(INSTALL / "cluster.yaml"))
            _await_rollout(system, OPERATOR)
            assert _images(system) == {images.IMAGE}
            leads = eventually(lambda: leader(system), lambda name: name in operator_pods(system))
            eventually(lambda: _reconciles(system, leads), lambda count: count >= 2)
            yield Upgrade(servers, mark, before, _snapshot(servers), _writes(node.plane, mark))
    finally:
        uninstall(node)
        node.kubectl("delete", "--ignore-not-found", "-f", "-", input=install)


def test_an_upgrade_restarts_no_server_and_changes_nothing_of_what_was_made(upgrade: Upgrade) -> None:
    assert upgrade.after == upgrade.before
    assert set(upgrade.written) <= _STATUS


def test_the_upgraded_operator_acts(upgrade: Upgrade) -> None:
    upgrade.servers("scale", f"mcd/{NAME}", f"--replicas={SIZE + 1}")
    upgrade.servers.wait_field(f"mcd/{NAME}", ".status.readyReplicas", SIZE + 1)
    nodes = eventually(lambda: nodes_of(upgrade.servers, NAME), lambda found: len(found) == SIZE + 1)
    for pod in nodes:
        assert stores(pod_address(upgrade.servers, pod), "after the upgrade"), pod
    there = {f"pods/{pod}" for pod in [*nodes, *nodes_of(upgrade.servers, LASTING)]}
    assert there > {name for name in upgrade.before if name.startswith("pods/")}
    # The same look at the log that found nothing before.
    wrote = _writes(upgrade.servers.cluster, upgrade.mark)
    assert {f"patch deployments {NAME}", f"patch memcacheds/status {NAME}"} <= set(wrote)


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    # A node is root's, and git trusts no checkout of somebody else's unless told so.
    command = ["git", "-c", f"safe.directory={PROJECT}", "-C", str(PROJECT), *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def _make_servers(kubectl: Kubectl) -> None:
    """Memcacheds, settled: nothing about them is going to change any more."""
    rollout = {"minReadySeconds": 0}  # until which a Deployment is not rolled out
    kubectl.apply(
        memcached(NAME, SIZE, rollout=rollout), memcached(LASTING, SIZE, workload="StatefulSet", rollout=rollout)
    )
    for name in (NAME, LASTING):
        kubectl.wait(f"mcd/{name}", "condition=Ready")
        kubectl.wait(f"mcd/{name}", "condition=Progressing=False")
    kubectl.wait(
        f"deployment/{NAME}", 'jsonpath={.status.conditions[?(@.reason=="NewReplicaSetAvailable")].status}=True'
    )


def _await_rollout(system: Kubectl, name: str) -> None:
    system("rollout", "status", f"deployment/{name}", "--timeout=55s")


def _images(system: Kubectl) -> set[str]:
    """Of the operator's pods that are not going."""
    return {
        container["image"]
        for pod in operator_pods(system)
        for container in system.get("pod", pod)["spec"]["containers"]
    }


def _reconciles(system: Kubectl, pod: str) -> float:
    """How many times an operator has reconciled a Memcached, and was done."""
    scrape = Scrape(f"http://{pod_address(system, pod)}:8080/metrics")
    return sum(scrape.values("controller_runtime_reconcile_total", controller="memcached", result="success"))


def _writes(cluster: Cluster, mark: Mark) -> list[str]:
    """All that operators have written since then, but for what concerns themselves."""
    events = cluster.audit_events(since=mark, user=_ACCOUNT)
    return written([each for each in events if each.verb not in _READS and each.resource not in _OF_THEIR_OWN])


def _snapshot(kubectl: Kubectl) -> dict[str, object]:
    """By name: the version of each object that an operator had written, and which container each server is."""
    found: dict[str, object] = {}
    # A status has a version too, but no generation.
    for kind, version in {
        "memcacheds": "generation",
        "deployments": "resourceVersion",
        "replicasets": "resourceVersion",
        "statefulsets": "resourceVersion",
    }.items():
        for each in kubectl.get(kind)["items"]:
            found[f"{kind}/{each['metadata']['name']}"] = each["metadata"][version]
    for pod in kubectl.get("pods")["items"]:
        (status,) = pod["status"]["containerStatuses"]
        identity = pod["metadata"]["uid"], status["containerID"], status["restartCount"]
        found[f"pods/{pod['metadata']['name']}"] = identity
    return found
