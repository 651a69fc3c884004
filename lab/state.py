"""The folder that holds all state of one running lab, and how nothing of it outlives its owner.

A lab's programs name its folder in their command lines, so "every process whose command line names the folder" is
the lab. A watchdog process waits for the end of a pipe that the owner alone holds open: however the owner dies, the
watchdog kills the lab and removes the folder. Should the watchdog be killed too, the next lab that starts sweeps.
What a node leaves besides is called like its folder and goes with it (``lab.node.remains``).
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

from lab import ROOT
from lab.node import remains

# Killed processes are gone within milliseconds; the rest is margin for a machine under load.
_KILL_DEADLINE_S = 10.0
_KILL_POLL_S = 0.01


class StateDir:
    """A fresh folder of this process, removed with all processes of the lab when it is closed or its owner dies.

    Invariant: the owner holds the lock of ``owner.lock`` for as long as it lives, so a folder whose lock is free
    belongs to nobody.
    """

    def __init__(self) -> None:
        base = _base_dir()
        with (base / "lock").open("w") as one_at_a_time:  # or a sweep could take a folder before its owner locks it
            fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
            sweep(base)
            self.path = Path(tempfile.mkdtemp(prefix="lab-", dir=base))
            self._lock: IO[str] = (self.path / "owner.lock").open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._watchdog = subprocess.Popen(
            [sys.executable, "-m", "lab.state", str(self.path)],
            cwd=ROOT,
            env={},
            stdin=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C at the terminal is the owner's
        )

    def close(self) -> None:
        """End the lab's processes and remove the folder; does nothing the second time."""
        if self._lock.closed:
            return
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.close()
        self._watchdog.wait()
        self._lock.close()

    def __enter__(self) -> "StateDir":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def sweep(base: Path) -> None:
    """Remove the labs under ``base`` whose owner is gone."""
    for lock_path in base.glob("*/owner.lock"):
        try:
            with lock_path.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(lock_path.parent)
        except (BlockingIOError, FileNotFoundError):
            continue  # in use, or another sweep was faster


def remove(state_dir: Path) -> None:
    """Kill every process whose command line names the folder, and delete the folder and what is called like it."""
    deadline = time.monotonic() + _KILL_DEADLINE_S
    ended: set[int] = set()
    while (processes := _processes_of(state_dir)) and time.monotonic() < deadline:
        for pid in processes:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        ended.update(processes)
        time.sleep(_KILL_POLL_S)
    # A dying process has no command line any more. The first one of a node dies last, after all its containers.
    while any(map(_is_alive, ended)) and time.monotonic() < deadline:
        time.sleep(_KILL_POLL_S)
    remains.remove(state_dir, deadline)
    shutil.rmtree(state_dir, ignore_errors=True)


def _base_dir() -> Path:
    base = Path(tempfile.gettempdir()) / f"memcached-operator-lab-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    if base.stat().st_uid != os.getuid():
        raise PermissionError(f"{base} belongs to another user: remove it, or set TMPDIR to a folder of your own")
    return base


def _processes_of(state_dir: Path) -> list[int]:
    needle = os.fsencode(state_dir)
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            if needle in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue  # it ended meanwhile, or is another user's
    return found


def _is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


def _watch(state_dir: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.stdin.buffer.read()  # returns when the owner has closed its end, by intent or by its death
    remove(state_dir)


if __name__ == "__main__":
    _watch(Path(sys.argv[1]))
