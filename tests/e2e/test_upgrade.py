"""From release to release, to today's operator and one back, each by the install file and the image of its checkout."""

from __future__ import annotations

import io
import re
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
    has,
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

RELEASES = ("1d986d8ea351cfe8b047a48d4d59791defd0f3db",)
"""Commits of the releases, oldest first; a release adds a line. Before the first one it is a commit whose servers'
template is today's, and moves with it; from then on it stays: another template would empty everybody's caches."""
# What an install file names. Another name of the same image would be another template.
_NAMED = re.compile(rf"image: localhost/{OPERATOR}:[0-9.]+\n")
_NAMED_MEMCACHED = f"value: {MEMCACHED}\n"

NAME, LASTING = "cache", "lasting"
_VALUE = "of the first release"
SIZE = 3
_ACCOUNT = f"system:serviceaccount:{SYSTEM}:{OPERATOR}"
_READS = ("get", "list", "watch")
# What operators write about themselves: who leads, and what happened.
_OF_THEIR_OWN = ("leases", "events")
# A later operator may say more.
_STATUS = {f"patch memcacheds/status {NAME}", f"patch memcacheds/status {LASTING}"}

# The first test starts the node, and builds the earlier images too.
pytestmark = pytest.mark.timeout(900)


@dataclass(frozen=True, slots=True)
class Install:
    """An operator to install: an install file, and the image that it names."""

    image: str
    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """An operator took over from another, and has looked at all there is.

    Attributes:
        mark: of the audit log, before it.
        snapshot: what is there.
        lost: servers that no longer have their value.
        written: what operators, old and new, wrote meanwhile: see `_writes`.
    """

    image: str
    mark: Mark
    snapshot: dict[str, object]
    lost: list[str]
    written: list[str]


@dataclass(frozen=True, slots=True)
class Chain:
    """All steps, of which the last leads to today's operator."""

    servers: Kubectl
    first: dict[str, object]
    """What was there before the first step."""
    steps: list[Step]


def _released(commit: str, folder: Path, node: Node) -> Install:
    """The operator of a commit, its image on the node."""
    found = _git("cat-file", "-e", f"{commit}^{{commit}}")
    if found.returncode != 0:
        shallow = _git("rev-parse", "--is-shallow-repository").stdout.decode().strip()
        if shallow == "false":
            pytest.fail(f"the history has no commit {commit}: {found.stderr.decode().strip()}")
        pytest.skip(f"this checkout has no history with commit {commit}")
    archive = _git("archive", "--format=tar", commit)
    assert archive.returncode == 0, archive.stderr.decode()
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    image = f"localhost/{OPERATOR}:{commit[:12]}"  # commits may bear the same version
    node.load_image(images.operator_image(image, source=folder))
    text = (folder / "manifests" / "install" / "cluster.yaml").read_text()
    assert (len(_NAMED.findall(text)), text.count(_NAMED_MEMCACHED)) == (1, 1)
    return Install(image, _NAMED.sub(f"image: {image}\n", text))


@pytest.fixture(scope="module")
def chain(node: Node, operator_images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    """Two Memcacheds whose servers the first release made: each release, today's operator, one back, and on again."""
    released = [_released(commit, tmp_path_factory.mktemp(commit), node) for commit in RELEASES]
    today = Install(images.IMAGE, (INSTALL / "cluster.yaml").read_text())
    system = Kubectl(node.plane, SYSTEM)
    try:
        with fresh_namespace(node, "e2e-upgrade") as servers:
            _install(node, system, released[0])
            _make_servers(servers)
            first, steps = _snapshot(servers), []
            for install in (*released[1:], today, released[-1], today):
                mark = node.plane.audit_mark()
                _install(node, system, install)
                written = _writes(node.plane, mark)
                steps.append(Step(install.image, mark, _snapshot(servers), _without_value(servers), written))
            yield Chain(servers, first, steps)
    finally:
        uninstall(node)
        node.kubectl("delete", "--ignore-not-found", "-f", "-", input=released[0].text)


def _install(node: Node, system: Kubectl, install: Install) -> None:
    """Apply it, and wait until its leader has looked at both Memcacheds, where there are any."""
    node.kubectl("apply", "--server-side", "-f", "-", input=install.text)
    _await_rollout(system, OPERATOR)
    assert _images(system) == {install.image}
    leads = eventually(lambda: leader(system), lambda name: name in operator_pods(system))
    if node.kubectl("get", "memcacheds", "--all-namespaces", "-o", "name").stdout:
        eventually(lambda: _reconciles(system, leads), lambda count: count >= 2)


def test_no_step_restarts_a_server_loses_a_key_or_changes_anything_of_what_was_made(chain: Chain) -> None:
    for step in chain.steps:
        assert step.snapshot == chain.first, step.image
        assert step.lost == [], step.image
        assert set(step.written) <= _STATUS, step.image


def test_the_upgraded_operator_acts(chain: Chain) -> None:
    chain.servers("scale", f"mcd/{NAME}", f"--replicas={SIZE + 1}")
    chain.servers.wait_field(f"mcd/{NAME}", ".status.readyReplicas", SIZE + 1)
    nodes = eventually(lambda: nodes_of(chain.servers, NAME), lambda found: len(found) == SIZE + 1)
    for pod in nodes:
        assert stores(pod_address(chain.servers, pod), "after the upgrade"), pod
    there = {f"pods/{pod}" for pod in [*nodes, *nodes_of(chain.servers, LASTING)]}
    assert there > {name for name in chain.first if name.startswith("pods/")}
    # The same look at the log that found nothing before.
    wrote = _writes(chain.servers.cluster, chain.steps[-1].mark)
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
    for pod in _servers(kubectl):
        assert stores(pod_address(kubectl, pod), _VALUE)


def _servers(kubectl: Kubectl) -> list[str]:
    return [*nodes_of(kubectl, NAME), *nodes_of(kubectl, LASTING)]


def _without_value(kubectl: Kubectl) -> list[str]:
    """The servers that have lost what was stored in them at first."""
    return [pod for pod in _servers(kubectl) if not has(pod_address(kubectl, pod), _VALUE)]


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
