"""A user without a cluster starts one by `./dev node`, and goes through the README on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.image import images
from operator_runtime.testing.waiting import DEADLINE_S
from tests.e2e.node_cluster import PROJECT
from tests.e2e.node_process import leftovers, machine, start_node
from tests.shell import read, terminal

_JUST = (f"{PROJECT}/.venv/bin/just", "--justfile", f"{PROJECT}/justfile")
_OTHER = "registry.example.com/other:1"


# A node of its own, and the operator's image where it was not built yet.
@pytest.mark.timeout(1200)
def test_on_the_node_that_dev_node_starts_the_readme_goes_as_written_and_nothing_stays(
    real_machine: None, tmp_path: Path
) -> None:
    before = machine()
    nodes, checkout = tmp_path / "node", tmp_path / "checkout"
    nodes.mkdir()
    checkout.mkdir()
    with start_node([*_JUST, "node"], nodes) as node, terminal(checkout, node.kubeconfig, {}) as shell:
        state_dir = node.state_dir
        (export,) = (line for line in node.printed if line.startswith("  export KUBECONFIG="))
        shell.run("unset KUBECONFIG")
        shell.run(export)
        came = shell.run(f"./dev load {images.busybox_image(_OTHER)}")
        assert (came.code, _OTHER in came.text.splitlines()) == (0, True), came.text
        read(shell, "README.md", on_a_node=True)
        node.interrupt()
        node.process.wait(DEADLINE_S)
        assert leftovers(state_dir) == []
        assert not list(nodes.glob("kubeconfig*"))
    assert machine() == before
