"""The programs around the examples' operators: manifests, local run, probes, metrics, election."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from examples.my_own_shell import __version__
from tests.examples.conftest import EXAMPLES, Start, manifests_of
from tests.examples.shells import MANIFESTS, SYSTEM, await_condition, shell
from tests.integration.monitoring import METRICS, PROBES, Scrape, fetch, url_of
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import PROJECT, OperatorProcess

LOCK = "a9b2e162.jgato.io"


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_manifest_is_byte_for_byte_what_the_models_say(example: str) -> None:
    made = subprocess.run(
        [sys.executable, "-m", f"examples.{example}.crd"], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert made.stdout == (manifests_of(example) / "crd.yaml").read_text()


def test_the_operator_s_pods_have_the_arguments_and_the_lock_of_the_guide() -> None:
    operator = yaml.safe_load((MANIFESTS / "operator.yaml").read_text())
    (container,) = operator["spec"]["template"]["spec"]["containers"]
    assert "--leader-elect" in container["args"]
    permissions = list(yaml.safe_load_all((MANIFESTS / "rbac.yaml").read_text()))
    (role,) = [each for each in permissions if each["kind"] == "Role"]
    assert role["rules"][0]["resourceNames"] == [LOCK]
    assert container["image"] == f"localhost/my-first-operator:{__version__}"


def test_it_runs_as_on_a_laptop_and_answers_probes_and_scrapes(kubectl: Kubectl) -> None:
    operator = OperatorProcess(
        f"--kubeconfig={kubectl.cluster.kubeconfig_path}",
        f"--namespace={kubectl.namespace}",
        *(PROBES, METRICS),
        environment={},
        module="examples.my_own_shell",
    )
    try:
        operator.ready()
        kubectl.apply(shell(size=2))
        await_condition(kubectl, "ShellsNotReady")
        probes = url_of(operator, "probes")
        assert fetch(f"{probes}/healthz") == fetch(f"{probes}/readyz") == (200, "ok")
        page = Scrape(url_of(operator, "metrics")).text
        assert 'controller_runtime_reconcile_total{controller="myownshell",result="success"}' in page
        assert "memcached" not in page.replace("memcached_operator", "")
        assert "pydantic" not in Path(f"/proc/{operator.pid}/maps").read_text()
        assert operator.stop() == 0
        assert "WARN" not in operator.log
        assert "ERROR" not in operator.log
    finally:
        operator.kill()


def test_of_two_one_leads_by_the_guide_s_lock_and_the_other_takes_over(kubectl: Kubectl, start: Start) -> None:
    flags = ("--leader-elect", f"--namespace={kubectl.namespace}", f"--leader-elect-namespace={SYSTEM}")
    first = start(*flags, POD_NAME="first", POD_NAMESPACE=SYSTEM).ready()
    kubectl.apply(shell(size=1))
    await_condition(kubectl, "ShellsNotReady")
    lease = ("get", "lease", LOCK, "-n", SYSTEM, "-o", "jsonpath={.spec.holderIdentity}")
    assert kubectl.cluster.kubectl(*lease).stdout.startswith("first")
    second = start(*flags, POD_NAME="second", POD_NAMESPACE=SYSTEM).ready()
    assert first.stop() == 0
    kubectl.apply(shell("another", size=0))
    await_condition(kubectl, "ShellsReady", "another")
    assert kubectl.cluster.kubectl(*lease).stdout.startswith("second")
    assert second.stop() == 0


@pytest.mark.cluster("kubernetes")
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_manifests_are_taken_by_an_api_server_as_one(kubectl: Kubectl, example: str) -> None:
    applied = kubectl.cluster.kubectl("apply", "--server-side", "--dry-run=server", "-k", str(manifests_of(example)))
    assert f"deployment.apps/{example.replace('_', '-')} serverside-applied" in applied.stdout
