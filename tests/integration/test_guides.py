"""The guides' flow, as a reader types it: install, run locally, create, look, scale, patch, delete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integration.conftest import Operators
from tests.integration.oracle import make_ready, pods_of, wait, wait_condition
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess

pytestmark = pytest.mark.core

# With the size that a step of the guide gives it.
EXAMPLE = """\
apiVersion: "cache.example.com/v1alpha1"
kind: "Memcached"
metadata:
  name: "example-memcached"
spec:
  size: {size}
"""
# Of the guide whose own project has another API group; the group is all that differs.
SAMPLE = """\
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata:
  name: memcached-sample
spec:
  size: 2
"""


@pytest.fixture
def local_run(kubectl: Kubectl, operators: Operators) -> OperatorProcess:
    """The local run: OPERATOR_NAME exported, the namespace by its flag, a kubeconfig by its path."""
    flags = (f"--namespace={kubectl.namespace}",)
    return operators.start_with_kubeconfig(
        kubectl.cluster.kubeconfig_path, *flags, OPERATOR_NAME="memcached-operator"
    ).ready()


def table(text: str) -> list[dict[str, str]]:
    """The rows of a table that kubectl printed."""
    header, *rows = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    return [dict(zip(header, row, strict=True)) for row in rows]


def test_the_example_is_created_looked_at_scaled_and_deleted(
    kubectl: Kubectl, local_run: OperatorProcess, tmp_path: Path
) -> None:
    file = tmp_path / "cache_v1alpha1_memcached_cr.yaml"
    file.write_text(EXAMPLE.format(size=3))
    kubectl("apply", "-f", str(file))
    wait(kubectl, "memcached/example-memcached", ".status.replicas", 3)

    # `kubectl get pods`, and the names in the status
    pods = pods_of(kubectl, "example-memcached")
    shown = table(kubectl("get", "pods"))
    assert [row["NAME"] for row in shown] == pods
    assert all(re.fullmatch(r"example-memcached-[0-9a-z]+-[0-9a-z]{5}", pod) for pod in pods)
    document = kubectl.get("memcached/example-memcached")
    assert (document["apiVersion"], document["kind"]) == ("cache.example.com/v1alpha1", "Memcached")
    assert document["spec"]["size"] == 3
    assert document["status"]["nodes"] == pods

    # `kubectl get deployment`, once the pods run
    make_ready(kubectl, pods)
    wait_condition(kubectl, "example-memcached", "Progressing", "Complete")
    (row,) = table(kubectl("get", "deployment"))
    assert row["NAME"] == "example-memcached"
    # AVAILABLE counts servers that have been ready for spec.rollout.minReadySeconds, a minute by default.
    assert (row["READY"], row["UP-TO-DATE"]) == ("3/3", "3")
    (row,) = table(kubectl("get", "memcached"))
    assert (row["NAME"], row["SIZE"], row["READY"], row["AVAILABLE"]) == ("example-memcached", "3", "3", "True")

    # from 3 to 4, by applying the changed file
    file.write_text(EXAMPLE.format(size=4))
    kubectl("apply", "-f", str(file))
    wait(kubectl, "memcached/example-memcached", ".status.replicas", 4)
    make_ready(kubectl, pods_of(kubectl, "example-memcached"))
    wait(kubectl, "memcached/example-memcached", ".status.readyReplicas", 4)
    (row,) = table(kubectl("get", "deployment"))
    assert (row["READY"], row["UP-TO-DATE"]) == ("4/4", "4")
    assert set(pods) < set(kubectl.get("memcached/example-memcached")["status"]["nodes"])

    # cleanup
    kubectl("delete", "-f", str(file))
    kubectl.wait("deployment/example-memcached", "delete")
    kubectl("wait", "pods", "--all", "--for=delete", "--timeout=60s")
    assert local_run.stop() == 0
    assert "ERROR" not in local_run.log
