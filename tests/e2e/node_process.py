"""A node that `./dev node` keeps up, and what it has on the machine: all of it must be gone afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.node import remains
from tests.e2e.node_cluster import PROJECT

_FOLDERS = ("/etc/cni", "/opt", "/run", "/usr/libexec", "/var/lib", "/var/log")
_SYSCTLS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")
# How what it prints begins and ends.
_READY, _LAST = "Kubernetes is ready", "Ctrl-C ends it"


@dataclass(frozen=True, slots=True)
class NodeProcess:
    """A node, apart from others by a folder for temporary files of its own.

    Attributes:
        printed: what it printed when it was up.
    """

    process: subprocess.Popen[str]
    base: Path
    kubeconfig: Path
    printed: Sequence[str]

    @property
    def state_dir(self) -> Path:
        """The node's own."""
        (found,) = self.base.glob("lab-*")
        return found

    def interrupt(self) -> None:
        """What Ctrl-C does: the signal goes to all that were started in that terminal."""
        os.killpg(self.process.pid, signal.SIGINT)


@contextmanager
def start_node(command: Sequence[str], folder: Path) -> Iterator[NodeProcess]:
    """Start a node by a command that takes `--kubeconfig`, as if in a terminal of its own; killed if it is not ended.

    Args:
        folder: for its state and the kubeconfig.
    """
    kubeconfig = folder / "kubeconfig"
    process = subprocess.Popen(
        [*command, "--kubeconfig", str(kubeconfig)],
        cwd=PROJECT,
        env=os.environ | {"TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout:
        try:
            printed = []
            for line in process.stdout:
                printed.append(line.rstrip("\n"))
                if line.startswith(_LAST):
                    break
            assert printed, "it ended without a word; its errors are above"
            assert printed[0].startswith(_READY), printed
            yield NodeProcess(process, folder / f"memcached-operator-lab-{os.getuid()}", kubeconfig, printed)
        finally:
            process.kill()
            process.wait()


def leftovers(state_dir: Path) -> list[str]:
    """The folder, processes of the node, and what it has outside of both."""
    folder = [str(state_dir)] if state_dir.exists() else []
    return [*folder, *(command_line(pid) for pid in processes(state_dir)), *remains.find(state_dir)]


def processes(state_dir: Path, program: str = "") -> list[int]:
    """Those whose command line names the folder, and those in a control group of the node."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        pid = int(entry.name)
        line = command_line(pid)
        if program in line and (str(state_dir) in line or remains.cgroup_name(state_dir) in _cgroups(pid)):
            found.append(pid)
    return found


def machine() -> dict[str, object]:
    """Mounts, network namespaces, and what the programs of a node would write if they were not kept from it."""
    return {
        "mounts": sorted(line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()),
        "network namespaces": sorted(path.name for path in Path("/run/netns").glob("*")),
        "folders": {folder: sorted(os.listdir(folder)) for folder in _FOLDERS if Path(folder).exists()},
        "settings": {name: Path("/proc/sys", name).read_text() for name in _SYSCTLS},
    }


def command_line(pid: int) -> str:
    """Of a process, its words parted by spaces; "" where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def _cgroups(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return ""
