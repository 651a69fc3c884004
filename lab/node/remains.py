"""Remains of a node outside its namespaces: control groups, and for a moment its link.

Both are called like the node's state folder, so that whoever removes the folder, also after a crash, finds them.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_LINKS = Path("/sys/class/net")
_POLL_S = 0.01


def cgroup_name(state_dir: Path) -> str:
    """The control group, below each hierarchy's root, that all containers of the node are in."""
    return f"memcached-operator-{state_dir.name}"


def link_name(state_dir: Path) -> str:
    """The machine's end of the node's link; the kernel takes 15 characters."""
    return state_dir.name[:15]


def make_cgroups(state_dir: Path) -> None:
    """Make the node's control group in every hierarchy; the kubelet wants to find it, and makes all below it."""
    for hierarchy in _hierarchies():
        (hierarchy / cgroup_name(state_dir)).mkdir()


def find(state_dir: Path) -> list[str]:
    """List the remains that exist, for messages and tests."""
    link = _LINKS / link_name(state_dir)
    return [str(path) for path in [*_cgroups(state_dir), link] if path.exists()]


def processes(state_dir: Path, container_id: str) -> list[int]:
    """The processes of a container of the node, by their ids on this machine."""
    for top in _cgroups(state_dir):
        for file in top.rglob(f"{container_id}/cgroup.procs"):
            if found := [int(pid) for pid in file.read_text().split()]:
                return found
    return []


def remove(state_dir: Path, deadline: float) -> None:
    """Remove what is left; the node's processes must have ended.

    Args:
        deadline: by ``time.monotonic()``. The kernel takes a moment to let go of what the last process held.
    """
    if (_LINKS / link_name(state_dir)).exists():  # gone meanwhile, it is an error that means nothing
        subprocess.run(["ip", "link", "delete", link_name(state_dir)], stderr=subprocess.DEVNULL, check=False)
    for top in _cgroups(state_dir):
        while top.exists():
            for folder, _, _ in os.walk(top, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:
                    continue  # a dying process is still in it
            if time.monotonic() > deadline:
                break
            if top.exists():
                time.sleep(_POLL_S)


def _cgroups(state_dir: Path) -> Iterator[Path]:
    yield from (path for each in _hierarchies() if (path := each / cgroup_name(state_dir)).is_dir())


def _hierarchies() -> list[Path]:
    """The one of control groups v2, or those of v1, one for each controller."""
    if (_CGROUPS / "cgroup.controllers").exists():
        return [_CGROUPS]
    return [path.parent for path in _CGROUPS.glob("*/cgroup.procs") if not path.parent.is_symlink()]
