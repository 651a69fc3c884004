"""The operator as its users run it: a process with flags, variables, signals and a log."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

from operator_runtime.diagnostics.report_pace import FIRST_PAUSE_S
from operator_runtime.testing.waiting import DEADLINE_S

PROJECT = Path(__file__).parents[1]
# Many run at the same time, and each would take the same two ports. A test that wants them names them.
NO_PORTS = {
    "MEMCACHED_OPERATOR_HEALTH_PROBE_BIND_ADDRESS": "0",
    "MEMCACHED_OPERATOR_METRICS_BIND_ADDRESS": "0",
}
# The addresses of a test's pods are nobody's. A test whose pods are real says so.
_QUERIES_NO_SERVERS = {"MEMCACHED_OPERATOR_SERVER_STATS_INTERVAL_S": "0"}
MODULE = "memcached_operator"
IN_SYNC = "caches are in sync"


class OperatorProcess:
    """`python -m memcached_operator`, or of another module, with its log, line by line as it comes."""

    def __init__(self, *arguments: str, environment: Mapping[str, str], module: str = MODULE) -> None:
        """
        Args:
            arguments: after `python -m memcached_operator`.
            environment: added to PATH, no ports, no asking and nothing else: no variable of the developer's has a say.
            module: another operator than Memcached's.
        """
        self.lines: list[str] = []
        self._changed = threading.Condition()
        own = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(PROJECT)}
        bare = {**own, **NO_PORTS, **_QUERIES_NO_SERVERS}
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env={**bare, **environment},
            cwd="/",  # it depends on no folder
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return "".join(self.lines)

    def wait_for_log(self, *texts: str, after: int = 0) -> str:
        """The first line after line number `after` that holds all `texts`; fails with the whole log."""
        ends = time.monotonic() + DEADLINE_S
        with self._changed:
            while True:
                for line in self.lines[after:]:
                    if all(text in line for text in texts):
                        return line
                left_s = ends - time.monotonic()
                ended = self._process.poll() is not None and not self._reader.is_alive()
                if left_s <= 0 or ended:
                    state = f"ended with {self._process.returncode}" if ended else "is running"
                    raise AssertionError(f"no log line with {texts}; the operator {state}. Its log:\n{self.log}")
                self._changed.wait(min(left_s, 1.0))

    def ready(self) -> OperatorProcess:
        """Wait until its caches are in sync."""
        self.wait_for_log(IN_SYNC)
        return self

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def wait(self, deadline_s: float = DEADLINE_S) -> int:
        """Its exit code, once it has ended and its log is complete."""
        try:
            code = self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the operator did not end within {deadline_s} s. Its log:\n{self.log}") from None
        self._reader.join(deadline_s)
        return code

    def stop(self) -> int:
        """End it as Kubernetes does; its exit code."""
        if self._process.poll() is None:
            self.send(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it as the kernel does when memory is short."""
        if self._process.poll() is None:
            self._process.kill()
        self.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as log:
            for line in log:
                with self._changed:
                    self.lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()


def logged_in_a_loop(lines: Sequence[str]) -> list[str]:
    """Which of these lines, that say one thing, came before the pause was over in which it is not said again."""
    pause = timedelta(seconds=FIRST_PAUSE_S - 1.0)
    return [later for sooner, later in pairwise(lines) if logged_at(later) - logged_at(sooner) < pause]


def logged_at(line: str) -> datetime:
    """When a line of an operator's log was written."""
    return datetime.fromisoformat(line.split(maxsplit=1)[0])
