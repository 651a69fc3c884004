"""A cgroup for one process, which says what the kernel counts for it, as for a container."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_MIB = 2**20
# The kernel lets go of a cgroup shortly after its last process has ended.
_GONE_WITHIN_S = 5.0
_POLL_S = 0.02


class Group:
    """The highest memory of a cgroup; of version 1 or 2 of cgroups, whichever counts memory on this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._peak = "memory.peak" if (folder / "memory.peak").exists() else "memory.max_usage_in_bytes"

    @classmethod
    def of(cls, pid: int) -> Group:
        """The one that a process is in, where memory is counted. Raises OSError: there is no such process."""
        lines = (line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines())
        paths = {controllers: path.lstrip("/") for _, controllers, path in lines}
        return cls(_CGROUPS / "memory" / paths["memory"] if "memory" in paths else _CGROUPS / paths[""])

    def entered_by(self, words: Sequence[str]) -> tuple[str, ...]:
        """A command that puts itself into it before it becomes the given one."""
        return ("sh", "-c", 'echo 0 >"$0" && exec "$@"', str(self._folder / "cgroup.procs"), *words)

    def peak_mib(self) -> float:
        """The process's pages, the kernel's for it, and page cache that it was the first to ask for.

        Version 2 counts what waits in sockets too; version 1 does not.
        """
        return int((self._folder / self._peak).read_text()) / _MIB

    def limit_mib(self) -> float:
        """What it may have. Raises ValueError: it has no limit."""
        name = "memory.max" if (self._folder / "memory.max").exists() else "memory.limit_in_bytes"
        return int((self._folder / name).read_text()) / _MIB


@contextlib.contextmanager
def group() -> Iterator[Group | None]:
    """A new cgroup, or None where this user may not make one."""
    parent = _CGROUPS if (_CGROUPS / "cgroup.controllers").exists() else _CGROUPS / "memory"
    folder = parent / f"memcached-operator-sizing-{os.getpid()}-{time.monotonic_ns()}"
    try:
        folder.mkdir()
    except OSError:
        yield None
        return
    try:
        yield Group(folder) if (folder / "memory.stat").exists() else None
    finally:
        _remove(folder)


def can_count() -> bool:
    """Whether this user may make one here."""
    with group() as made:
        return made is not None


def _remove(folder: Path) -> None:
    deadline = time.monotonic() + _GONE_WITHIN_S
    while True:
        try:
            folder.rmdir()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_S)
