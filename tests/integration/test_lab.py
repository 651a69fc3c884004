"""The lab itself: what the other integration tests take for granted."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.state import sweep
from operator_runtime.testing.waiting import DEADLINE_S, eventually
from tests.cluster import Cluster
from tests.e2e.node_process import command_line

pytestmark = pytest.mark.cluster("kubernetes")

ROOT = Path(__file__).resolve().parents[2]


def test_the_audit_log_has_a_user_s_requests_since_a_mark(cluster: Cluster, namespace: str) -> None:
    bob = cluster.user_kubeconfig("bob", ["system:masters"])
    cluster.kubectl("-n", namespace, "create", "configmap", "before", kubeconfig=bob)
    mark = cluster.audit_mark()
    cluster.kubectl("-n", namespace, "create", "configmap", "after", kubeconfig=bob)
    cluster.kubectl("-n", namespace, "create", "configmap", "by-another")
    events = cluster.audit_events(since=mark, user="bob")
    made = [(each.verb, each.name, each.code) for each in events if each.resource == "configmaps"]
    assert made == [("create", "after", 201)]
    assert {each.user for each in events} == {"bob"}


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


def test_lab_up_leaves_nothing_when_it_is_killed(lab_up: tuple[subprocess.Popen[str], Path]) -> None:
    process, base = lab_up
    assert any("kube-apiserver" in line for line in _leftovers(base))
    process.kill()
    _await_no_leftovers(base)


def test_a_lab_whose_watchdog_died_too_is_swept_by_the_next(lab_up: tuple[subprocess.Popen[str], Path]) -> None:
    process, base = lab_up
    for watchdog in _pids("lab.state", base):
        os.kill(watchdog, signal.SIGKILL)
    process.kill()
    process.wait()
    assert _leftovers(base) != []
    sweep(base)
    _await_no_leftovers(base)


def _await_no_leftovers(base: Path) -> None:
    eventually(lambda: _leftovers(base), lambda left: left == [], what="nothing of it is left")


def _leftovers(base: Path) -> list[str]:
    """Folders under ``base``, and command lines that name it."""
    return [str(path) for path in base.glob("lab-*")] + [command_line(pid) for pid in _pids("", base)]


def _pids(program: str, base: Path) -> list[int]:
    entries = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return [pid for pid in map(int, entries) if str(base) in (line := command_line(pid)) and program in line]
