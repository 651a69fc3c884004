"""A demo as people run it: a process with a terminal or without, and what it leaves behind."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lab.cache import cache_dir
from lab.programs.kubernetes import kubectl_path
from memcached_operator.demo.script import STEPS
from tests.operator_process import PROJECT

ALL_CAME_TRUE = f"{len(STEPS)} of {len(STEPS)} steps succeeded"
# Where it stays, a last step makes what there is to play with.
ALL_CAME_TRUE_AND_MORE = f"{len(STEPS) + 1} of {len(STEPS) + 1} steps succeeded"
ENDED = "demo: ended; everything is cleaned up"
SIMULATED = "--no-memcached"
# Far above what anything here takes; below what a test of the demo may take.
DEADLINE_S = 240.0
KUBECONFIG_LINE = re.compile(r"export KUBECONFIG=([^\s\x1b]+)")
# Gives the program, its arguments, the terminal that is its standard input; Ctrl-C reaches it by that alone.
IN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
# The terminal that most have; and one in which the longest path fits in a line, and many writes in their panel.
SMALL, WIDE = (24, 80), (150, 240)
SHOWN_CHARACTERS = 4_000
_LEFT_SCREEN = "\x1b[?1049l"
_CTRL_C = b"\x03"


class Demo:
    """A demo that runs, and what it has said so far; a context manager that ends it."""

    def __init__(
        self,
        home: Path,
        *arguments: str,
        command: Sequence[str | Path] = (),
        module: str = "memcached_operator",
        terminal: tuple[int, int] | None = None,
    ) -> None:
        """
        Args:
            home: the folder for all that it writes, and where it runs.
            arguments: after the word `demo`.
            command: instead of this checkout's Python and `module`.
            module: of this checkout.
            terminal: rows and columns of the terminal that its input and output are; None for pipes.
        """
        self.home = home
        self._printed = ""
        self._changed = threading.Condition()
        variables = surroundings(home)
        if command:
            del variables["PYTHONPATH"]
        else:
            command = (sys.executable, "-m", module)
        line: list[str | Path] = [*command, "demo", *arguments]
        own_end, process_end = pty.openpty() if terminal else os.pipe()
        if terminal:
            fcntl.ioctl(process_end, termios.TIOCSWINSZ, struct.pack("HHHH", *terminal, 0, 0))
            line = [sys.executable, "-c", IN_TERMINAL, *line]
        self._process = subprocess.Popen(
            line,
            cwd=home,
            env=variables,
            stdin=process_end if terminal else subprocess.DEVNULL,
            stdout=process_end,
            stderr=process_end,
            start_new_session=True,
        )
        os.close(process_end)
        self._own_end = own_end
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Demo:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join(DEADLINE_S)
        os.close(self._own_end)

    @property
    def text(self) -> str:
        """What it has said so far; a terminal's ends of lines are ends of lines."""
        return self._printed.replace("\r\n", "\n")

    @property
    def lines(self) -> list[str]:
        """What it said, as lines."""
        return self.text.splitlines()

    @property
    def last_screen(self) -> str:
        """What is left in the terminal when the live view has gone, without colours."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.text.rpartition(_LEFT_SCREEN)[2])

    def wait_for(self, text: str) -> None:
        """Wait until it has said that, within a line."""
        with self._changed:
            found = self._changed.wait_for(lambda: text in self._printed or not self._reader.is_alive(), DEADLINE_S)
        assert found, f"{text!r} was not said in time, but: {self.text[-SHOWN_CHARACTERS:]}"
        assert text in self.text, f"it ended without: {self.text[-SHOWN_CHARACTERS:]}"

    def kubeconfig(self) -> Path:
        """The one that it shows, as soon as it does."""
        self.wait_for("pods are ")
        found = KUBECONFIG_LINE.search(self.text)
        assert found is not None, self.text
        return Path(found[1])

    def kubectl(self, *arguments: str, input: str | None = None) -> str:
        """Run the real kubectl with the kubeconfig that it shows; its standard output."""
        finished = subprocess.run(
            [kubectl_path(), "--kubeconfig", self.kubeconfig(), *arguments],
            env={"HOME": str(self.home)},
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def press_ctrl_c(self) -> None:
        """As the user of its terminal."""
        os.write(self._own_end, _CTRL_C)

    def wait(self) -> int:
        """Its exit code, once all that it said is read."""
        code = self._process.wait(DEADLINE_S)
        self._reader.join(DEADLINE_S)
        return code

    def processes(self) -> dict[int, str]:
        """Command lines of the processes that it started and of its own: each has its folder in its surroundings."""
        mark, found = os.fsencode(self.home), {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    line = (entry / "cmdline").read_bytes()
                    if mark in line or mark in (entry / "environ").read_bytes():
                        found[int(entry.name)] = line.replace(b"\0", b" ").decode()
                except OSError:
                    continue  # it ended meanwhile, or is another user's
        return found

    def folders(self) -> list[Path]:
        """Folders with the state of API servers."""
        return [*self.home.glob("memcached-operator-simulator-*/*/"), *self.home.glob("memcached-operator-*/lab-*")]

    def left_nothing(self) -> bool:
        """Whether neither a process nor a folder is there; fails and says which."""
        assert self.processes() == {}
        assert self.folders() == []
        return True

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")  # a chunk can end within a character
        try:
            while chunk := os.read(self._own_end, 65536):
                with self._changed:
                    self._printed += decoder.decode(chunk)
                    self._changed.notify_all()
        except OSError:
            pass  # a terminal that nobody has open any more
        with self._changed:
            self._changed.notify_all()


Demos = Callable[..., Demo]


def surroundings(home: Path) -> dict[str, str]:
    """The variables of a demo of this checkout: few, and settings that it has to ignore."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{home}:{PROJECT}",
        "HOME": str(home),
        "TMPDIR": str(home),
        "XDG_CACHE_HOME": str(cache_dir().parents[1]),
        "TERM": "xterm-256color",
        "WATCH_NAMESPACE": "elsewhere",
        "OPERATOR_NAME": "other",
        "MEMCACHED_OPERATOR_LOG_LEVEL": "error",
    }


def needs_memcached() -> None:
    if shutil.which("memcached") is None and not os.environ.get("CI"):
        pytest.skip("no memcached on the PATH")


def await_ends(demo: Demo) -> None:
    """Wait until all processes of a demo have ended, also those that it was just starting; nobody's children now."""
    ends = time.monotonic() + DEADLINE_S
    while left := demo.processes():
        for pid, line in left.items():
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            ended, _, _ = select.select([descriptor], [], [], max(0.0, ends - time.monotonic()))
            os.close(descriptor)
            assert ended, f"process {pid} still runs: {line}"
