"""What a reader of the documents types does what they say, with containers that run."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.node.node import Node
from tests.kubectl_in_namespace import Kubectl
from tests.pages import EXAMPLE
from tests.shell import read, terminal


@pytest.mark.timeout(600)
def test_a_first_install_goes_as_the_tutorial_says(node: Node, operator_images: None, tmp_path: Path) -> None:
    with terminal(tmp_path, node.kubeconfig_path, {}) as shell:
        read(shell, "docs/first-install.md", on_a_node=True)


@pytest.mark.timeout(600)
def test_what_there_is_to_look_at_in_trouble_is_there(node: Node, system: Kubectl, tmp_path: Path) -> None:
    with terminal(tmp_path, node.kubeconfig_path, {}) as shell:
        read(shell, "docs/troubleshooting.md", before=EXAMPLE, on_a_node=True)


@pytest.mark.timeout(600)
def test_metrics_are_there_and_can_be_kept_for_some(node: Node, system: Kubectl, tmp_path: Path) -> None:
    with terminal(tmp_path, node.kubeconfig_path, {}) as shell:
        try:
            read(shell, "docs/monitoring.md", on_a_node=True)
        finally:
            shell.run("kubectl delete -k manifests/mine")
            shell.run("kubectl delete clusterrolebinding prometheus-reads-memcached-operator")
