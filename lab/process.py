"""One program of the lab as a child process whose output goes to a file."""

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

# How much of a program's log goes into the error message when it does not work.
_LOG_TAIL_LINES = 15


class Program:
    """A program that can be started, stopped and started again with the same arguments."""

    def __init__(self, command: Sequence[str], log: Path, name: str = "") -> None:
        self.name = name or Path(command[0]).name
        self.log = log
        self._command = tuple(command)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id while the program runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start the program; does nothing while it runs."""
        if self.pid is not None:
            return
        with self.log.open("ab") as log, _no_signal_blocked():
            self._process = subprocess.Popen(
                self._command,
                cwd=self.log.parent,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C at the terminal must not reach it before its owner
            )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal if the program runs."""
        if self._process is not None:
            self._process.send_signal(number)

    def wait(self, timeout_s: float) -> None:
        """Wait until the program has ended.

        Raises:
            subprocess.TimeoutExpired: it still runs.
        """
        if self._process is not None:
            self._process.wait(timeout_s)

    def kill(self) -> None:
        """End the program at once, as a crash would."""
        self.signal(signal.SIGKILL)
        self.wait(10)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the program until the end of the block, with its connections open."""
        self.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(signal.SIGCONT)

    def log_tail(self) -> str:
        """The last lines that the program wrote, for error messages."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-_LOG_TAIL_LINES:])


@contextmanager
def _no_signal_blocked() -> Iterator[None]:
    """Let what is started here have no signal blocked, whatever its parent does.

    A child inherits the mask, a container runtime hands it on to the containers, and these would not hear a SIGTERM.
    """
    before = signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
