"""The first process of a node's namespaces: `python -m lab.node.init STATE_DIR`.

It gives the node folders of its own in the place of the machine's, says its process id as the machine sees it, and
then only takes leave of orphans. When it ends, the kernel ends every process of the node, and with the last of them
the mounts and the network go.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# Where the container runtime, the kubelet and the CNI plugins write unless each is told otherwise, and some cannot be.
_OWN_FOLDERS = ("/run", "/var/lib", "/var/log")
# The kubelet sets these for the whole machine, where they would outlive the node. It finds them set instead.
_TUNABLES: Mapping[str, int] = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}


def main(state_dir: Path) -> None:
    """Make the node's folders, and stay."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    pid = os.readlink("/proc/self")  # of the machine's /proc, so the machine's number
    _mount("-t", "proc", "proc", "/proc")
    for folder in _OWN_FOLDERS:
        own = state_dir / "node" / folder.strip("/").replace("/", "-")
        own.mkdir(parents=True)
        _mount("--bind", str(own), folder)
    for name, value in _TUNABLES.items():
        file = state_dir / "node" / "sysctl" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
        _mount("--bind", str(file), f"/proc/sys/{name}")
    print(pid, flush=True)
    while True:
        signal.sigwait({signal.SIGCHLD})
        while _reap():
            pass


def _reap() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
