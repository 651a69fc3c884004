"""The lab itself: what the other integration tests take for granted."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from operator_runtime.testing.waiting import DEADLINE_S
from tests.e2e.node_process import command_line

pytestmark = pytest.mark.cluster("kubernetes")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def lab_up(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """``python -m lab up`` that has said it is ready, and the folder under which its state lies."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lab", "up", "--kubeconfig", str(tmp_path / "kubeconfig")],
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        assert "Kubernetes is ready" in process.stdout.readline()
        yield process, tmp_path / f"memcached-operator-lab-{os.getuid()}"
        process.kill()
        process.wait()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_lab_up_leaves_nothing_when_it_is_asked_to_end(
    lab_up: tuple[subprocess.Popen[str], Path], tmp_path: Path, end: signal.Signals
) -> None:
    process, base = lab_up
    assert (tmp_path / "kubeconfig").exists()
    process.send_signal(end)
    assert process.wait(DEADLINE_S) == 0
    assert process.stdout is not None
    assert process.stdout.read().endswith("\nlab: stopped; nothing of it is left\n")
    assert not (tmp_path / "kubeconfig").exists()
    assert _leftovers(base) == []


def _leftovers(base: Path) -> list[str]:
    """Folders under ``base``, and command lines that name it."""
    return [str(path) for path in base.glob("lab-*")] + [command_line(pid) for pid in _pids("", base)]


def _pids(program: str, base: Path) -> list[int]:
    entries = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return [pid for pid in map(int, entries) if str(base) in (line := command_line(pid)) and program in line]
