"""The process, mount and network namespaces that a node lives in, as seen from outside."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lab import ROOT
from lab.kubectl import LabError
from lab.process import Program

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


class Namespaces:
    """The namespaces that a process is the first of; they live until it is killed."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def command(self, *command: str, only_network: bool = False) -> list[str]:
        """A command as it is started from outside to run in here, or only in the network of here.

        The one in here ends when the one outside does.
        """
        if only_network:
            return ["nsenter", f"--net=/proc/{self.pid}/ns/net", "--", *command]
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--net", "--pid", "--"]
        return [*enter, "setpriv", "--pdeathsig=KILL", "--", *command]

    def program(self, name: str, command: Sequence[str], log: Path) -> Program:
        """A program in here that can be started and stopped."""
        return Program(self.command(*command), log, name=name)

    def run(
        self, *command: str, only_network: bool = False, input: str | None = None, check: bool = True, timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in here.

        Raises:
            LabError: it failed, and ``check`` is true.
            subprocess.TimeoutExpired: it did not end in time.
        """
        finished = subprocess.run(
            self.command(*command, only_network=only_network),
            env={"PATH": _PATH},
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if check and finished.returncode != 0:
            output = finished.stderr.strip() or finished.stdout.strip()
            raise LabError(f"{' '.join(command)}: exit code {finished.returncode}: {output}")
        return finished


class OwnNamespaces(Namespaces):
    """A set of fresh namespaces.

    Invariant: their first process names the state folder in its command line, so ending the folder's processes ends all
    that run in here, containers too, and what only they held: mounts, and the network with its interfaces.
    """

    def __init__(self, state_dir: Path) -> None:
        """Make them. Raises LabError: the machine does not let us."""
        log = state_dir / "node-init.log"
        with log.open("wb") as errors:
            self._unshare = subprocess.Popen(
                [
                    *("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--"),
                    *(sys.executable, "-m", "lab.node.init", str(state_dir)),
                ],
                cwd=ROOT,
                env={"PATH": _PATH},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        assert self._unshare.stdout is not None
        with self._unshare.stdout as output:
            answer = output.readline()
        if not answer:
            self._unshare.wait()
            raise LabError(f"no namespaces for a node: {log.read_text().strip()}; this takes root")
        super().__init__(int(answer))

    def close(self) -> None:
        """Collect the process that made them, once the folder's processes have been ended."""
        self._unshare.wait()
