"""What a reader of the documents types does what they say, with containers that run."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.node.node import Node
from tests.shell import read, terminal


@pytest.mark.timeout(600)
def test_a_first_install_goes_as_the_tutorial_says(node: Node, operator_images: None, tmp_path: Path) -> None:
    with terminal(tmp_path, node.kubeconfig_path, {}) as shell:
        read(shell, "docs/first-install.md", on_a_node=True)
