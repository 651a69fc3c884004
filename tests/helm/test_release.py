"""The chart's life on a cluster: installed, upgraded, rolled back, uninstalled, and the kind along with it.

No pod runs: the cluster has no node here, so that nothing is waited for and the permissions are tried by an
operator that runs beside it, as the account of the release.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.packaging.chart import CHART
from lab.packaging.manifests import MANIFESTS
from lab.programs.go_tools import ToolError
from lab.programs.helm import MAJORS, helm
from operator_runtime.testing.waiting import DEADLINE_S
from tests.cluster import Cluster, another, await_established, make_namespace
from tests.definitions import MEMCACHEDS, forget
from tests.operator_process import OperatorProcess

pytestmark = pytest.mark.cluster("kubernetes")  # Helm sends protobuf, which the simulator does not read

RELEASE = "memcached-operator"
SIMPLE = ["--set", "rbac.tenantRoles=false"]

Helm = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def apart(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster of this module's own: the CRD comes and goes here, and other tests need theirs."""
    with another(cluster) as other:
        yield other


@pytest.fixture
def namespace(apart: Cluster) -> str:
    """A fresh namespace whose name is not used twice."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    make_namespace(apart, name)
    return name


@pytest.fixture(params=MAJORS, ids=lambda major: f"helm{major}")
def major(request: pytest.FixtureRequest) -> int:
    """The release of Helm."""
    return int(request.param)


@pytest.fixture
def release(apart: Cluster, namespace: str, tmp_path: Path, major: int) -> Iterator[Helm]:
    """Helm in a fresh namespace; what it installed there is gone afterwards, and so is the CRD."""

    def run(*arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
        how |= {"kubeconfig": apart.kubeconfig_path, "variables": {"HOME": str(tmp_path)}, "major": major}
        return helm("--namespace", namespace, *arguments, **how)

    forget(apart)
    yield run
    run("uninstall", RELEASE, "--ignore-not-found")
    forget(apart)


def objects(cluster: Cluster, namespace: str) -> set[str]:
    """What there is of the operator's in the namespace and in the cluster."""
    found = cluster.kubectl(
        *("get", "deployments,serviceaccounts,roles,rolebindings", "-n", namespace),
        *("-l", "app.kubernetes.io/managed-by=Helm", "-o", "name"),
    ).stdout.split()
    wide = cluster.kubectl(
        *("get", "clusterroles,clusterrolebindings"), *("-l", "app.kubernetes.io/managed-by=Helm", "-o", "name")
    ).stdout.split()
    return {name.replace(".rbac.authorization.k8s.io", "") for name in [*found, *wide]}


def get(cluster: Cluster, *what: str) -> Any:
    return json.loads(cluster.kubectl("get", *what, "-o", "json").stdout)


def test_a_release_is_installed_upgraded_and_uninstalled_without_a_trace(
    apart: Cluster, namespace: str, release: Helm
) -> None:
    printed = release("install", RELEASE, str(CHART), *SIMPLE).stdout
    assert "watches all namespaces" in printed
    assert "kind: Memcached" in printed
    everywhere = {
        "clusterrole/memcached-operator",
        "clusterrolebinding/memcached-operator",
        "deployment.apps/memcached-operator",
        "role/memcached-operator-leader-election",
        "rolebinding/memcached-operator-leader-election",
        "serviceaccount/memcached-operator",
    }
    assert objects(apart, namespace) == everywhere
    await_established(apart.kubectl, f"crd/{MEMCACHEDS}")

    printed = release(
        "upgrade", RELEASE, str(CHART), *SIMPLE, f"--set=watchNamespaces={{{namespace}}},replicas=1"
    ).stdout
    assert f"watches {namespace}." in printed
    assert objects(apart, namespace) == {
        "deployment.apps/memcached-operator",
        "role/memcached-operator",
        "rolebinding/memcached-operator",
        "serviceaccount/memcached-operator",
    }, "what is no longer needed is gone"
    assert get(apart, "deployment", RELEASE, "-n", namespace)["spec"]["replicas"] == 1

    release("rollback", RELEASE, "1")
    assert objects(apart, namespace) == everywhere

    release("uninstall", RELEASE)
    assert objects(apart, namespace) == set()
    assert get(apart, "crd", MEMCACHEDS)["spec"]["names"]["kind"] == "Memcached", (
        "nobody's Memcacheds go with a release"
    )


def test_the_kind_goes_along_with_its_release_and_stays_when_that_goes(
    apart: Cluster, release: Helm, tmp_path: Path
) -> None:
    older = yaml.safe_load((CHART / "files" / "crd.yaml").read_text())
    [version] = older["spec"]["versions"]
    image = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].pop("image")
    old_chart = shutil.copytree(CHART, tmp_path / "older")
    (old_chart / "files" / "crd.yaml").write_text(yaml.safe_dump(older, sort_keys=False))

    def shown() -> Any:
        [served] = get(apart, "crd", MEMCACHEDS)["spec"]["versions"]
        return served["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].get("image")

    release("install", RELEASE, str(old_chart), *SIMPLE)
    await_established(apart.kubectl, f"crd/{MEMCACHEDS}")
    kept = {"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": {"name": "kept"}}
    apart.kubectl("apply", "-n", "default", "-f", "-", input=json.dumps(kept))
    assert shown() is None
    release("upgrade", RELEASE, str(CHART), *SIMPLE)
    assert shown() == image
    release("rollback", RELEASE, "1")
    assert shown() is None
    release("uninstall", RELEASE)
    assert get(apart, "mcd", "kept", "-n", "default")["kind"] == "Memcached"
    release("install", RELEASE, str(CHART), *SIMPLE)
    assert shown() == image
    apart.kubectl("delete", "mcd", "kept", "-n", "default")


def test_a_kind_that_kubectl_made_is_taken_over_when_helm_is_told_to(apart: Cluster, release: Helm, major: int) -> None:
    apart.kubectl("apply", "--server-side", "-f", str(MANIFESTS / "crd" / "cache.example.com_memcacheds.yaml"))
    await_established(apart.kubectl, f"crd/{MEMCACHEDS}")
    with pytest.raises(ToolError, match=r"CustomResourceDefinition .*exists and cannot be imported"):
        release("install", RELEASE, str(CHART), *SIMPLE)
    # Helm 4 applies on the server's side, where kubectl has the fields.
    release("install", RELEASE, str(CHART), *SIMPLE, "--take-ownership", *["--force-conflicts"] * (major == 4))
    metadata = get(apart, "crd", MEMCACHEDS)["metadata"]
    assert metadata["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    assert metadata["annotations"]["helm.sh/resource-policy"] == "keep"


def test_an_operator_with_the_release_s_account_and_environment_does_its_work_in_another_namespace(
    apart: Cluster, namespace: str, release: Helm
) -> None:
    watched = f"{namespace}-other"
    with ExitStack() as ends:
        make_namespace(apart, watched)
        ends.callback(apart.kubectl, "delete", "namespace", watched, "--wait=false")
        release("install", RELEASE, str(CHART), *SIMPLE, "--set-json", f"watchNamespaces={json.dumps([watched])}")
        await_established(apart.kubectl, f"crd/{MEMCACHEDS}")

        deployment = get(apart, "deployment", RELEASE, "-n", namespace)
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        variables = {each["name"]: each["value"] for each in container["env"] if "value" in each}
        variables |= {"POD_NAME": "operator-0", "POD_NAMESPACE": namespace}
        folder = apart.service_account_dir(namespace, deployment["spec"]["template"]["spec"]["serviceAccountName"])
        flags = [flag for flag in container["args"] if "bind-address" not in flag]  # of many tests at the same time
        operator = OperatorProcess(
            "--service-account-dir", str(folder), *flags, environment={**apart.in_cluster_environment, **variables}
        )
        ends.callback(operator.kill)

        sample = (MANIFESTS / "samples" / "cache_v1alpha1_memcached_cr.yaml").read_text()
        apart.kubectl("apply", "-n", watched, "-f", "-", input=sample)
        for what, how in (("deployment", "create"), ("memcached", "jsonpath={.status.conditions}")):
            apart.kubectl(
                *("wait", "-n", watched, f"{what}/example-memcached", f"--for={how}", f"--timeout={DEADLINE_S:.0f}s")
            )
        assert get(apart, "lease", f"{RELEASE}-lock", "-n", namespace)["spec"]["holderIdentity"]
        assert operator.stop() == 0
        # But for what an API server answers that is yet to learn of the owner's kind: the operator tries again.
        assert not re.search("forbidden(?!.*cannot find restmapping)", operator.log.lower())
        apart.kubectl("delete", "memcacheds", "--all", "-n", watched, "--cascade=foreground")


def test_everything_that_is_kubernetes_own_is_taken_by_a_strict_api_server(
    apart: Cluster, namespace: str, release: Helm
) -> None:
    values = ["metrics.secure.enabled", "metrics.service.enabled", "metrics.dashboard.enabled", "networkPolicy.enabled"]
    flags = [f"--set={value}=true" for value in values]
    made = release("template", RELEASE, str(CHART), *flags, "--set=leaderElection.mode=life").stdout
    apart.kubectl("apply", "--validate=strict", "--dry-run=server", "-n", namespace, "-f", "-", input=made)


def test_a_second_release_in_the_cluster_is_told_what_it_cannot_have_twice(
    apart: Cluster, namespace: str, release: Helm
) -> None:
    release("install", RELEASE, str(CHART))
    once = {"CustomResourceDefinition": "rbac.tenantRoles=false", "ClusterRole": "crds.enabled=false"}
    for kind, other in once.items():
        with pytest.raises(ToolError, match=rf"{kind} .*exists and cannot be imported"):
            release("install", "second", str(CHART), "--set", other)
    release("install", "third", str(CHART), "--set", ",".join(once.values()))
    release("uninstall", "third")
