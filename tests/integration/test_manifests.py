"""What users apply, on a real API server: each file alone, each install, what users may then do, and its removal."""

from __future__ import annotations

import json
import operator
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from lab.packaging.manifests import INSTALL, MANIFESTS, NAMESPACE
from operator_runtime.testing.waiting import eventually, until
from tests.cluster import Cluster, await_established, make_namespace
from tests.definitions import MEMCACHEDS, served
from tests.integration.conftest import CRD
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import PROJECT, OperatorProcess
from tests.overlays import overlay

pytestmark = pytest.mark.cluster("kubernetes")  # the simulator serves neither PodDisruptionBudgets nor NetworkPolicies

FOLDERS = ("samples", "rbac", "operator", "tenants", "cluster", "components")
FILES = sorted(
    path
    for folder in FOLDERS
    for path in (MANIFESTS / folder).rglob("*.yaml")
    # Kinds of Prometheus' operator, which is not here.
    if path.name != "kustomization.yaml" and path.parent.name != "prometheus"
)
ROLES = ("admin", "edit", "view")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(MANIFESTS)))
def test_each_file_alone_can_be_created(kubectl: Kubectl, fresh: Cluster, path: Path) -> None:
    # A sample needs the CRD, and the others must not be there yet.
    cluster = kubectl.cluster if path.parent.name == "samples" else fresh
    finished = cluster.kubectl("create", "--dry-run=server", "-f", str(path), check=False)
    if "namespace: Required value" in finished.stderr:
        assert "kustomize fills in" in path.read_text(), "it can only be had by an overlay, and says so"
        return
    if path.is_relative_to(MANIFESTS / "components" / "cert-manager") and finished.returncode != 0:
        assert "ensure CRDs are installed first" in finished.stderr, "cert-manager's own kinds are its own to install"
        return
    assert (finished.returncode, finished.stderr) == (0, ""), "no warning either"


def test_the_guides_steps_install_and_remove_the_operator_file_by_file(fresh: Cluster) -> None:
    kubectl = Kubectl(fresh, "default")
    kubectl("create", "-f", str(CRD))
    await_established(kubectl, "crd/memcacheds.cache.example.com")
    files = [MANIFESTS / "rbac" / f"{name}.yaml" for name in ("service_account", "role", "role_binding")]
    for path in files:
        kubectl("create", "-f", str(path))
    text = (MANIFESTS / "operator" / "operator.yaml").read_text()
    kubectl("create", "-f", "-", input=text.replace("REPLACE_IMAGE", "example/operator:1"))
    kubectl.wait_field("deployment/memcached-operator", ".status.replicas", 2)
    assert {each["spec"]["containers"][0]["image"] for each in kubectl.get("pods")["items"]} == {"example/operator:1"}
    served(fresh)
    for path in [MANIFESTS / "operator" / "operator.yaml", *reversed(files), CRD]:
        kubectl("delete", "-f", str(path))
    assert left(fresh) == []


def test_the_recipes_install_an_image_and_remove_all_and_the_checkout_stays_as_it_is(fresh: Cluster) -> None:
    before = {path: path.read_bytes() for path in MANIFESTS.rglob("*.yaml")}
    recipe(fresh, "deploy", IMG="registry.example.com/operator:2")
    kubectl = Kubectl(fresh, NAMESPACE)
    # Its namespace takes restricted pods alone.
    kubectl.wait_field("deployment/memcached-operator", ".status.replicas", 2)
    assert kubectl.get("deployment/memcached-operator")["spec"]["template"]["spec"]["containers"][0]["image"] == (
        "registry.example.com/operator:2"
    )
    recipe(fresh, "deploy", IMG="registry.example.com/operator:3")
    again = kubectl.run("apply", "--server-side", "--dry-run=server", "-f", str(INSTALL / "cluster.yaml"))
    assert again.stderr == ""
    served(fresh)
    recipe(fresh, "undeploy")
    assert left(fresh) == []
    recipe(fresh, "undeploy")  # what is not there need not be removed
    assert {path: path.read_bytes() for path in MANIFESTS.rglob("*.yaml")} == before


def test_an_install_of_another_group_has_that_name_throughout(fresh: Cluster, tmp_path: Path) -> None:
    sources = ("lab", "memcached_operator", "operator_runtime", "kube_simulator", "manifests", "charts")
    for name in ("justfile", "pyproject.toml", "CHANGELOG.md", *sources):
        source = PROJECT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    recipe(fresh, "manifests", tmp_path, GROUP="cache.acme.io")
    kubectl = Kubectl(fresh, NAMESPACE)
    fresh.kubectl("apply", "--server-side", "-f", str(tmp_path / "manifests" / "install" / "cluster.yaml"))
    await_established(kubectl, "crd/memcacheds.cache.acme.io")
    for made in (*(tmp_path / "manifests" / "install").iterdir(), *(tmp_path / "bundle").rglob("*.yaml")):
        assert "cache.example.com" not in made.read_text(), made
    deployment = kubectl.get("deployment/memcached-operator")
    variables = {
        each["name"]: each.get("value", "") for each in deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    }
    operator = OperatorProcess(
        *("--service-account-dir", str(fresh.service_account_dir(NAMESPACE, "memcached-operator"))),
        environment={**fresh.in_cluster_environment, **variables, "POD_NAMESPACE": NAMESPACE},
    )
    try:
        operator.ready()
        spec: dict[str, object] = {"discovery": {"configMap": {}}, "service": {}}
        own = {"metadata": {"name": "shop", "namespace": "default"}, "spec": spec}
        team = Kubectl(fresh, "default")
        team.apply({"apiVersion": "cache.acme.io/v1alpha1", "kind": "Memcached", **own})
        team.wait_field("mcd/shop", ".status.replicas", 1)
        made = team.get("mcd,deployments,services,configmaps,poddisruptionbudgets", "-l", "memcached_cr=shop")
        shop = team.get("mcd", "shop")
    finally:
        operator.kill()
    assert "cache.acme.io/applied" in json.dumps(made)
    assert "cache.example.com" not in json.dumps([made, shop]) + operator.log
    team("delete", "mcd", "shop")
    recipe(fresh, "undeploy", tmp_path, GROUP="cache.acme.io")
    assert left(fresh) == []


def recipe(cluster: Cluster, name: str, project: Path = PROJECT, **variables: str) -> None:
    """Run a recipe of the justfile on this cluster."""
    finished = subprocess.run(
        [Path(sys.executable).with_name("just"), "--justfile", project / "justfile", name],
        env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig_path), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr


def left(cluster: Cluster) -> list[str]:
    """What of ours is still there."""
    kinds = "clusterroles,clusterrolebindings,roles,rolebindings,deployments,serviceaccounts,poddisruptionbudgets,crd"
    found = cluster.kubectl("get", kinds, "--all-namespaces", "-o", "name").stdout.split()
    namespaces = cluster.kubectl("get", "namespaces", "-o", "name").stdout.split()
    return [each for each in [*found, *namespaces] if "memcached" in each]


@pytest.fixture
def tenants(installed: Cluster, kubectl: Kubectl) -> Iterator[Callable[[str], list[str]]]:
    """Users who have one of the built-in ClusterRoles in the namespace; gives kubectl's arguments to be one of them."""
    installed.kubectl("apply", "-f", str(INSTALL / "crds.yaml"), "--server-side", "--force-conflicts")
    for role in ROLES:
        kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--user={role}-of-{kubectl.namespace}")

    def impersonating(role: str) -> list[str]:
        return [f"--as={role}-of-{kubectl.namespace}"]

    for role in ROLES:  # the controller-manager adds ours to the built-in ones
        until(
            f"{role} has no permission on Memcacheds",
            lambda role=role: may(kubectl, impersonating(role), "get", "mcd"),  # type: ignore[misc]
        )
    yield impersonating
    for role in ROLES:
        installed.kubectl("delete", "clusterrole", f"memcached-{role}")


def may(kubectl: Kubectl, impersonating: list[str], verb: str, what: str) -> bool:
    resource, _, subresource = what.partition("/")
    part = [f"--subresource={subresource}"] if subresource else []
    return kubectl.run("auth", "can-i", verb, resource, *part, *impersonating, check=False).stdout.strip() == "yes"


READ = {("get", "mcd"), ("list", "mcd"), ("watch", "mcd"), ("get", "mcd/status"), ("get", "mcd/scale")}
CHANGE = READ | {(verb, "mcd") for verb in ("create", "update", "patch", "delete", "deletecollection")}
CHANGE |= {("update", "mcd/scale"), ("patch", "mcd/scale")}
GOVERN = CHANGE | {("update", "mcd/status"), ("patch", "mcd/status"), ("update", "mcd/finalizers")}


def test_those_who_view_edit_and_administer_a_namespace_may_do_so_with_memcacheds(
    kubectl: Kubectl, tenants: Callable[[str], list[str]]
) -> None:
    for role, allowed in {"view": READ, "edit": CHANGE, "admin": GOVERN}.items():
        found = {(verb, what) for verb, what in GOVERN if may(kubectl, tenants(role), verb, what)}
        assert found == allowed, role
    assert not may(kubectl, ["--as=nobody"], "get", "mcd")


def test_who_administers_a_namespace_can_install_the_operator_in_it(
    kubectl: Kubectl, tenants: Callable[[str], list[str]]
) -> None:
    """Nobody may grant permissions that they do not have: each of the operator's is one of theirs."""
    finished = kubectl.run("apply", "-f", str(INSTALL / "namespaced.yaml"), *tenants("admin"), check=False)
    assert (finished.returncode, finished.stderr) == (0, ""), finished.stderr
    kubectl.wait_field("deployment/memcached-operator", ".status.replicas", 2)
    finished = kubectl.run("delete", "-f", str(INSTALL / "namespaced.yaml"), *tenants("admin"), check=False)
    assert (finished.returncode, finished.stderr) == (0, "")


@pytest.mark.parametrize("component", ["secure-metrics", "network-policy", "leader-for-life"])
def test_a_component_is_taken_whole_and_without_a_warning(kubectl: Kubectl, component: str) -> None:
    made = overlay("namespaced", components=[component], namespace=kubectl.namespace)
    finished = kubectl.run("apply", "--dry-run=server", "-f", "-", input=made, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")


def test_in_several_namespaces_it_has_its_permissions_in_each_and_nowhere_else(fresh: Cluster) -> None:
    made = overlay("cluster", components=["several-namespaces"])
    for team in ("team-a", "team-b"):
        make_namespace(fresh, team)
    assert fresh.kubectl("apply", "-f", "-", input=made).stderr == ""
    account = f"--as=system:serviceaccount:{NAMESPACE}:memcached-operator"
    for namespace, watched in {"team-a": True, "team-b": True, "default": False, NAMESPACE: False}.items():
        kubectl = Kubectl(fresh, namespace)
        # Permissions are in force some milliseconds after they are granted. By its short name kubectl may ask for the
        # kind of another group, which it had found in this cluster before.
        eventually(partial(may, kubectl, [account], "watch", MEMCACHEDS), partial(operator.eq, watched))
        assert may(kubectl, [account], "create", "leases") is (namespace == NAMESPACE)
    served(fresh)
    # A namespace that goes beside the definition of a kind waits until the API server has forgotten the kind.
    fresh.kubectl("delete", "-f", "-", "--wait=false", input=made)
    fresh.kubectl("delete", "namespace", "team-a", "team-b", "--wait=false")
    eventually(partial(left, fresh), operator.not_, what="nothing of ours is left", deadline_s=100.0)
