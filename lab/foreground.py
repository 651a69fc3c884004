"""Keeping something of the lab up for a person, until Ctrl-C or until what started it is gone."""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeVar

_PARENT_CHECK_S = 1.0


class Cluster(Protocol):
    """Cluster that the foreground can stay with."""

    @property
    def kubeconfig_path(self) -> Path:
        """The administrator's."""


C = TypeVar("C", bound=Cluster)


def run_until_interrupted(
    make: Callable[[], AbstractContextManager[C]], kubeconfig: Path, started: Callable[[C], str]
) -> int:
    """Start it, print what `started` says, and stay; the exit code.

    Args:
        kubeconfig: where to put the administrator's; removed at the end.
    """
    stop_signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    parent = os.getppid()
    signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)  # from here on they are taken by sigwait
    with make() as cluster:
        kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(cluster.kubeconfig_path, kubeconfig)
        if who := os.environ.get("SUDO_UID"):  # whose kubectl is to read it
            os.chown(kubeconfig, int(who), -1)
        try:
            print(started(cluster), flush=True)
            # `just` stands between a person and this process: killed, it takes nothing along.
            while signal.sigtimedwait(stop_signals, _PARENT_CHECK_S) is None and os.getppid() == parent:
                pass
        finally:
            kubeconfig.unlink(missing_ok=True)
    print_last_line("lab: stopped; nothing of it is left")
    return 0


def print_last_line(words: str) -> None:
    """Print the last line; in a terminal not behind the ^C that it shows."""
    print("\n" * sys.stdout.isatty() + words, flush=True)
