"""What a node leaves behind: nothing, however it ends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.node import remains
from lab.state import sweep
from operator_runtime.testing.waiting import DEADLINE_S, eventually
from tests.e2e.node_process import NodeProcess, leftovers, machine, processes, start_node


@pytest.fixture
def before() -> dict[str, object]:
    """What a node could change of the machine, as it was."""
    return machine()


@pytest.fixture
def node_process(real_machine: None, before: object, tmp_path: Path) -> Iterator[NodeProcess]:
    with start_node([sys.executable, "-m", "lab", "node", "--bare"], tmp_path) as found:
        yield found


def test_a_node_that_is_asked_to_end_leaves_nothing(node_process: NodeProcess, before: dict[str, object]) -> None:
    state_dir = node_process.state_dir
    assert any("containerd" in line for line in leftovers(state_dir))
    assert remains.find(state_dir) != []
    node_process.process.send_signal(signal.SIGTERM)
    assert node_process.process.wait(DEADLINE_S) == 0
    assert leftovers(state_dir) == []
    assert not node_process.kubeconfig.exists()
    assert machine() == before


def test_a_node_whose_owner_is_killed_leaves_nothing(node_process: NodeProcess, before: dict[str, object]) -> None:
    state_dir = node_process.state_dir
    node_process.process.kill()
    eventually(lambda: leftovers(state_dir), lambda found: found == [])
    assert machine() == before


def test_a_node_whose_watchdog_died_too_is_swept_by_the_next_lab(
    node_process: NodeProcess, before: dict[str, object]
) -> None:
    state_dir = node_process.state_dir
    for pid in processes(state_dir, "lab.state"):
        os.kill(pid, signal.SIGKILL)
    node_process.process.kill()
    node_process.process.wait()
    assert any("containerd" in line for line in leftovers(state_dir))
    sweep(node_process.base)
    assert leftovers(state_dir) == []
    assert machine() == before
