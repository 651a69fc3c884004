"""What a node leaves behind: nothing, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import node_remains
from lab.state import sweep
from tests.e2e.node_cluster import PROJECT
from tests.waiting import DEADLINE_S, eventually

_FOLDERS = ("/etc/cni", "/opt", "/run", "/usr/libexec", "/var/lib", "/var/log")
_SYSCTLS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")


@dataclass(frozen=True, slots=True)
class KeptUp:
    """A node that `python -m lab node` keeps up, apart from others by a folder for temporary files of its own."""

    process: subprocess.Popen[str]
    base: Path
    kubeconfig: Path

    @property
    def state_dir(self) -> Path:
        (found,) = self.base.glob("lab-*")
        return found


@pytest.fixture
def before() -> dict[str, object]:
    """What a node could change of the machine, as it was."""
    return _machine()


@pytest.fixture
def kept_up(real_machine: None, before: object, tmp_path: Path) -> Iterator[KeptUp]:
    kubeconfig = tmp_path / "kubeconfig"
    process = subprocess.Popen(
        [sys.executable, "-m", "lab", "node", "--bare", "--kubeconfig", str(kubeconfig)],
        cwd=PROJECT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        try:
            assert "Kubernetes is ready" in process.stdout.readline()
            yield KeptUp(process, tmp_path / f"memcached-operator-lab-{os.getuid()}", kubeconfig)
        finally:
            process.kill()
            process.wait()


def test_a_node_that_is_asked_to_end_leaves_nothing(kept_up: KeptUp, before: dict[str, object]) -> None:
    state_dir = kept_up.state_dir
    assert any("containerd" in line for line in _leftovers(state_dir))
    assert node_remains.find(state_dir) != []
    kept_up.process.send_signal(signal.SIGTERM)
    assert kept_up.process.wait(DEADLINE_S) == 0
    assert _leftovers(state_dir) == []
    assert not kept_up.kubeconfig.exists()
    assert _machine() == before


def test_a_node_whose_owner_is_killed_leaves_nothing(kept_up: KeptUp, before: dict[str, object]) -> None:
    state_dir = kept_up.state_dir
    kept_up.process.kill()
    eventually(lambda: _leftovers(state_dir), lambda found: found == [])
    assert _machine() == before


def test_a_node_whose_watchdog_died_too_is_swept_by_the_next_lab(kept_up: KeptUp, before: dict[str, object]) -> None:
    state_dir = kept_up.state_dir
    for pid in _processes(state_dir, "lab.state"):
        os.kill(pid, signal.SIGKILL)
    kept_up.process.kill()
    kept_up.process.wait()
    assert any("containerd" in line for line in _leftovers(state_dir))
    sweep(kept_up.base)
    assert _leftovers(state_dir) == []
    assert _machine() == before


def _leftovers(state_dir: Path) -> list[str]:
    """The folder, processes of the node, and what it has outside of both."""
    folder = [str(state_dir)] if state_dir.exists() else []
    return [*folder, *(_command_line(pid) for pid in _processes(state_dir)), *node_remains.find(state_dir)]


def _processes(state_dir: Path, program: str = "") -> list[int]:
    """Those whose command line names the folder, and those in a control group of the node."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        pid = int(entry.name)
        line = _command_line(pid)
        if program in line and (str(state_dir) in line or node_remains.cgroup_name(state_dir) in _cgroups(pid)):
            found.append(pid)
    return found


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""  # it ended meanwhile


def _cgroups(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return ""


def _machine() -> dict[str, object]:
    """Mounts, network namespaces, and what the programs of a node would write if they were not kept from it."""
    return {
        "mounts": sorted(line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()),
        "network namespaces": sorted(path.name for path in Path("/run/netns").glob("*")),
        "folders": {folder: sorted(os.listdir(folder)) for folder in _FOLDERS if Path(folder).exists()},
        "settings": {name: Path("/proc/sys", name).read_text() for name in _SYSCTLS},
    }
