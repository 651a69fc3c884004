"""The bundle as OLM installs, upgrades and removes it: OLM's own programs on a real node."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from lab.image import images
from lab.node import image_store
from lab.node.node import Node
from lab.node.node_olm import CATALOG, NAMESPACE, Olm
from lab.packaging.bundle import CHANNEL, PACKAGE, bundle, read_sources, write
from lab.packaging.catalog import Release
from memcached_operator import __version__
from operator_runtime.testing.waiting import until
from tests.e2e.node_cluster import OPERATOR, OTHER_MEMCACHED, PROJECT, SYSTEM, fresh_namespace, operator_pods
from tests.integration.conftest import memcached
from tests.kubectl_in_namespace import Kubectl
from tests.shell import terminal
from tests.shell_blocks import manifests, steps

LATER = "0.1.1"
LATER_IMAGE = f"localhost/memcached-operator:{LATER}"
CSV, LATER_CSV = f"{PACKAGE}.v{__version__}", f"{PACKAGE}.v{LATER}"
OLM_API = "operators.coreos.com"

# The first test starts the node and OLM.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def olm(node: Node, operator_images: None) -> Iterator[Olm]:
    """OLM, with no catalog yet."""
    with Olm(node) as started:
        yield started


@pytest.fixture(scope="module")
def released(olm: Olm, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The committed bundle, in the catalog."""
    release = olm.load_bundle(bundle_folder(tmp_path_factory.mktemp("bundle")), "localhost/lab-bundle:1")
    olm.publish([release])
    return release


def bundle_folder(root: Path, **of: str) -> Path:
    """The bundle as ``./dev bundle`` makes it, without its Dockerfile and its scorecard."""
    write(bundle(read_sources(), **of), root)
    shutil.rmtree(root / "bundle" / "tests")
    return root / "bundle"


def subscription(kubectl: Kubectl, config: dict[str, object] | None = None) -> dict[str, object]:
    spec = {"channel": CHANNEL, "name": PACKAGE, "source": CATALOG, "sourceNamespace": NAMESPACE}
    return {
        "apiVersion": f"{OLM_API}/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": PACKAGE, "namespace": kubectl.namespace},
        "spec": {**spec, **({"config": config} if config else {})},
    }


def operator_group(kubectl: Kubectl, targets: Sequence[str]) -> dict[str, object]:
    """The namespaces that operators of kubectl's namespace watch; all without targets."""
    return {
        "apiVersion": f"{OLM_API}/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": "operators", "namespace": kubectl.namespace},
        "spec": {"targetNamespaces": list(targets)} if targets else {},
    }


def phase(home: Kubectl, name: str) -> str:
    return home("get", f"csv/{name}", "-o", "jsonpath={.status.phase}", check=False)


def await_csv(olm: Olm, home: Kubectl, name: str) -> None:
    """Wait by OLM's own status until a release is installed."""
    try:
        home.wait_field(f"subscription/{PACKAGE}", ".status.state", "AtLatestKnown")
        until(f"{name} has not succeeded", lambda: phase(home, name) == "Succeeded", deadline_s=120)
    except AssertionError as error:
        seen = home("get", "subscription,installplan,csv,pods,jobs,events", "-A", check=False)
        raise AssertionError(f"{error}\n{seen}\n{olm.logs()}") from None


@contextlib.contextmanager
def subscribed(node: Node, olm: Olm, home: Kubectl, targets: Sequence[str], **config: object) -> Iterator[None]:
    """The operator as OLM installs it for these namespaces; uninstalled at the end, as docs/olm.md has it."""
    home.apply(operator_group(home, targets), subscription(home, config))
    try:
        await_csv(olm, home, CSV)
        yield
    finally:
        node.kubectl("delete", "memcacheds", "--all", "--all-namespaces", "--cascade=foreground", check=False)
        unsubscribe(home)


def unsubscribe(home: Kubectl) -> None:
    """Uninstall what a Subscription installed."""
    home("delete", f"subscription/{PACKAGE}", "--ignore-not-found")
    home("delete", "csv", "--all")
    home.wait(f"deployment/{OPERATOR}", "delete")


@pytest.mark.parametrize("mode", ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"])
def test_a_subscription_installs_an_operator_that_works_in_each_install_mode(
    mode: str, node: Node, olm: Olm, released: Release
) -> None:
    with (
        fresh_namespace(node, f"olm-home-{mode.lower()}") as home,
        fresh_namespace(node, f"olm-shop-{mode.lower()}") as shop,
    ):
        targets = {
            "OwnNamespace": [home],
            "SingleNamespace": [shop],
            "MultiNamespace": [home, shop],
            "AllNamespaces": [],
        }[mode]
        resources = {"requests": {"cpu": "11m", "memory": "99Mi"}}
        env = [{"name": "LOG_FORMAT", "value": "json"}]
        with subscribed(node, olm, home, [each.namespace for each in targets], env=env, resources=resources):
            watched = targets or [home, shop]
            for namespace in watched:
                namespace.apply(memcached("cache", 1))
                namespace.wait("mcd/cache", "condition=Ready")
            for other in {home, shop} - set(watched):
                other.apply(memcached("cache", 1))
                assert other.names("deployments", "-l", "memcached_cr") == []
            assert_configured(home, resources)
            assert {"memcached-admin", "memcached-edit", "memcached-view"} <= set(
                node.kubectl("get", "clusterroles", "-o", "jsonpath={.items[*].metadata.name}").stdout.split()
            )
            assert home.names("poddisruptionbudget") == [f"poddisruptionbudget.policy/{OPERATOR}"]


def assert_configured(home: Kubectl, resources: Mapping[str, object]) -> None:
    """The operator's pods have what the Subscription's `spec.config` says, and may do all that they try."""
    for pod in operator_pods(home):
        [container] = home.get("pod", pod)["spec"]["containers"]
        assert container["resources"]["requests"] == resources["requests"]
        log = home("logs", pod).splitlines()
        assert all(isinstance(json.loads(line), dict) for line in log)
        assert not [line for line in log if "forbidden" in line.lower()]


def test_an_image_changes_in_place_under_an_operator_that_olm_installed(
    node: Node, olm: Olm, released: Release, other_memcached: None
) -> None:
    with fresh_namespace(node, "olm-home") as home, subscribed(node, olm, home, []):
        spec = {"workload": "StatefulSet", "warmRestart": True, "rollout": {"minReadySeconds": 0}}
        home.apply(memcached("cache", 3, **spec))
        home.wait("mcd/cache", "condition=Ready")
        before = {pod: uid for pod, (uid, _) in servers(home).items()}
        home.apply(memcached("cache", 3, **spec, image=OTHER_MEMCACHED))
        home.wait("mcd/cache", "condition=Progressing=False")
        home.wait("mcd/cache", "condition=Ready")
        assert {pod: uid for pod, (uid, _) in servers(home).items()} == before
        images_now = {
            container["image"]
            for pod in before
            for container in home.get("pod", pod)["spec"]["containers"]
            if container["name"] == "memcached"
        }
        assert images_now == {OTHER_MEMCACHED}


def servers(kubectl: Kubectl) -> dict[str, tuple[str, str]]:
    """The memcached pods, each with its uid and its memcached's container."""
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            next(s["containerID"] for s in pod["status"]["containerStatuses"] if s["name"] == "memcached"),
        )
        for pod in kubectl.get("pods", "-l", "memcached_cr")["items"]
    }


def test_uninstalling_leaves_memcacheds_and_their_servers(node: Node, olm: Olm, released: Release) -> None:
    with fresh_namespace(node, "olm-left") as home, subscribed(node, olm, home, []):
        home.apply(memcached("cache", 1))
        home.wait("mcd/cache", "condition=Ready")
        before = servers(home)
        unsubscribe(home)
        assert servers(home) == before
        assert home.names("mcd") == ["memcached.cache.example.com/cache"]
        # And who subscribes again has the same servers.
        home.apply(subscription(home))
        await_csv(olm, home, CSV)
        home("scale", "mcd/cache", "--replicas=2")
        home.wait_field("mcd/cache", ".status.readyReplicas", 2)
        assert servers(home).items() >= before.items()


def test_the_commands_of_the_page_install_and_remove_it(
    node: Node, olm: Olm, released: Release, tmp_path: Path
) -> None:
    page = (PROJECT / "docs" / "olm.md").read_text()
    _, _, part = page.partition("\n## Run it\n")
    part = part.partition("\n## Which namespaces it watches\n")[0]
    source, group, subscribed_to = manifests(part)
    # The page's catalog is an image, which no registry has here.
    served = {**source, "spec": {"sourceType": source["spec"]["sourceType"], "address": olm.address}}
    with fresh_namespace(node, SYSTEM), terminal(tmp_path, node.kubeconfig_path, {}) as shell:
        node.kubectl(
            "apply",
            "-f",
            "-",
            input=json.dumps({"kind": "List", "apiVersion": "v1", "items": [served, group, subscribed_to]}),
        )
        for step in steps(part):
            ran = shell.run(step.command)
            assert ran.code == 0, f"{step.command}{ran.text}\n{olm.logs()}"
        left = node.kubectl("get", "crd/memcacheds.cache.example.com", check=False)
        assert "not found" in left.stderr
        node.kubectl("delete", "-f", "-", input=json.dumps(served))


# The last: the catalog has the later release from here on.
def test_a_later_bundle_upgrades_without_a_gap_and_without_a_restart_of_a_server(
    node: Node, olm: Olm, released: Release, tmp_path: Path
) -> None:
    image_store.tag(node.namespaces, images.IMAGE, LATER_IMAGE)
    with fresh_namespace(node, "olm-upgraded") as home, subscribed(node, olm, home, []):
        home.apply(memcached("cache", 2), memcached("lasting", 2, workload="StatefulSet"))
        for name in ("cache", "lasting"):
            home.wait(f"mcd/{name}", "condition=Ready")
        before = servers(home)
        folder = bundle_folder(tmp_path, version=LATER, image=LATER_IMAGE)
        olm.publish([released, olm.load_bundle(folder, "localhost/lab-bundle:2")])
        size = 2

        def upgraded() -> bool:
            nonlocal size
            # Reconciled within each of these steps, whichever operator leads.
            size = 3 if size == 2 else 2
            home("scale", "mcd/cache", f"--replicas={size}")
            home.wait_field("deployment/cache", ".spec.replicas", size)
            return phase(home, LATER_CSV) == "Succeeded" and home.names("csv") == [
                f"clusterserviceversion.{OLM_API}/{LATER_CSV}"
            ]

        until("the later release is not there", upgraded, deadline_s=120)
        assert {
            container["image"]
            for pod in operator_pods(home)
            for container in home.get("pod", pod)["spec"]["containers"]
        } == {LATER_IMAGE}
        home("scale", "mcd/cache", "--replicas=2")
        home.wait_field("mcd/cache", ".status.replicas", 2)
        after = servers(home)
        assert {name: after[name] for name in before} == before
