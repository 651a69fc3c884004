"""One operator under test as a child process: started, looked at through /proc, and ended by its id.

The servers that it asks are looked at in the same way.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_STOP_DEADLINE_S = 15.0
_LOG_TAIL_LINES = 15
# An operator rests when it used no more than this in a whole window: a few timers, no work.
_REST_WINDOW_S = 1.5
_REST_CPU_S = 0.03
_POLL_S = 0.1


class OperatorDied(Exception):
    """The operator under test ended by itself; the message has its last words."""


class OperatorProcess:
    """A running operator. Its output goes to `log`; a Ctrl-C at the terminal is for the benchmark, not for it."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._log = log
        self.started_s = time.monotonic()
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=log.parent,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def cpu_s(self) -> float:
        """User and system time since the start."""
        self.check()
        return cpu_s(self._process.pid)

    def rss_mib(self) -> tuple[float, float]:
        """Resident memory now, and at its highest since the start (VmRSS, VmHWM)."""
        self.check()
        return memory_mib(Path(f"/proc/{self._process.pid}/status").read_text())

    async def died(self) -> None:
        """Wait for the end that nobody asked for, and raise OperatorDied; never returns."""
        while True:
            self.check()
            await asyncio.sleep(_POLL_S)

    def check(self) -> None:
        """Raise OperatorDied unless the process runs."""
        code = self._process.poll()
        if code is not None:
            lines = self._log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]
            raise OperatorDied(f"the operator ended with code {code}; its last words:\n" + "\n".join(lines))

    async def rests(self) -> float:
        """Wait until the process is idle; returns when it began to be, on the monotonic clock, in seconds."""
        return await rests(lambda: self.cpu_s, _REST_CPU_S)

    async def stop(self) -> None:
        """Ask the process to end, and end it for good if it does not in time; can be called twice."""
        deadline = time.monotonic() + _STOP_DEADLINE_S
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        while self._process.poll() is None:
            if time.monotonic() > deadline:
                self.kill()
            await asyncio.sleep(_POLL_S)

    def kill(self) -> None:
        """End the process at once; does nothing if it has ended."""
        self._process.kill()
        self._process.wait()


async def rests(cpu: Callable[[], float], at_most_s: float) -> float:
    """Wait until a CPU clock advances no more than this in a window; returns the window's begin (monotonic, s)."""
    began_s, used_s = time.monotonic(), cpu()
    while time.monotonic() - began_s < _REST_WINDOW_S:
        await asyncio.sleep(_POLL_S)
        now_s = cpu()
        if now_s - used_s > at_most_s:
            began_s, used_s = time.monotonic(), now_s
    return began_s


def free_port() -> int:
    """A port of 127.0.0.1 that nobody has for now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def cpu_s(pid: int) -> float:
    """User and system time of a process and all its threads."""
    return ticks(Path(f"/proc/{pid}/stat").read_text()) / _TICKS_PER_S


class Servers(Protocol):
    """Of a control plane, the process ids of what all operators ask; None: it does not run."""

    @property
    def apiserver_pid(self) -> int | None: ...

    @property
    def etcd_pid(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class ServersTime:
    """User and system time of what all operators ask, in seconds."""

    apiserver_s: float
    etcd_s: float

    @classmethod
    def now(cls, servers: Servers) -> ServersTime:
        """Since both were started."""
        apiserver, etcd = servers.apiserver_pid, servers.etcd_pid
        assert apiserver is not None, "it runs as long as its control plane"
        assert etcd is not None, "it runs as long as its control plane"
        return cls(cpu_s(apiserver), cpu_s(etcd))

    def __sub__(self, earlier: ServersTime) -> ServersTime:
        return ServersTime(self.apiserver_s - earlier.apiserver_s, self.etcd_s - earlier.etcd_s)

    @property
    def both_s(self) -> float:
        """Together."""
        return self.apiserver_s + self.etcd_s


def ticks(stat: str) -> int:
    """utime + stime of a line of /proc/PID/stat; the program's name in it may hold blanks and brackets."""
    fields = stat.rpartition(")")[2].split()
    # proc(5): state is field 3, utime 14, stime 15.
    return int(fields[11]) + int(fields[12])


def memory_mib(status: str) -> tuple[float, float]:
    """VmRSS and VmHWM of a /proc/PID/status, which says both in KiB."""
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    rss, peak = (int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return rss, peak
