"""MyOwnShells as tests write them and look at them."""

from __future__ import annotations

import re
from typing import Any

from operator_runtime.testing.waiting import eventually
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import PROJECT, OperatorProcess

MANIFESTS = PROJECT / "examples" / "my_own_shell" / "manifests"
SYSTEM = "my-own-shell-system"
FINALIZER = "myownshell.my-first-operator.jgato.io/finalizer"
SAMPLE = "myownshell-sample"
SHELL, DEPLOYMENT = f"myownshell/{SAMPLE}", f"deployment/{SAMPLE}"


def shell(name: str = SAMPLE, **spec: object) -> dict[str, Any]:
    """A MyOwnShell as a user writes it."""
    return {
        "apiVersion": "my-first-operator.jgato.io/v1alpha1",
        "kind": "MyOwnShell",
        "metadata": {"name": name},
        "spec": spec,
    }


def await_condition(kubectl: Kubectl, reason: str, name: str = SAMPLE) -> dict[str, Any]:
    """Wait until the condition Ready has that reason; the condition."""
    path = '.status.conditions[?(@.type=="Ready")].reason'
    kubectl.wait_field(f"myownshell/{name}", path, reason)
    found: dict[str, Any] = next(
        each for each in kubectl.get("myownshell", name)["status"]["conditions"] if each["type"] == "Ready"
    )
    return found


def await_replicas(kubectl: Kubectl, size: int) -> None:
    """Wait until the Deployment is of that size."""
    eventually(
        lambda: kubectl.get(DEPLOYMENT)["spec"]["replicas"], lambda found: found == size, what=f"{size} replicas"
    )


def await_cleanups(operator: OperatorProcess, kubectl: Kubectl, *kinds: str) -> None:
    """Wait until the log, which may be read late, says that it cleaned up after these, in this order, and no more."""
    eventually(lambda: cleanups(operator, kubectl), lambda found: found == [*kinds], what=f"cleanups of {kinds}")


def cleanups(operator: OperatorProcess, kubectl: Kubectl) -> list[str]:
    """The kinds of what it has cleaned up after in a namespace."""
    lines = [line for line in operator.lines if f"{kubectl.namespace}/{SAMPLE}" in line]
    return re.findall(r"Successfully finalized (\w+)", "".join(lines))
