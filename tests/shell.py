"""A terminal in a checkout, and a reader who types what a document says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sysconfig
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.programs import kubernetes
from operator_runtime.testing.waiting import DEADLINE_S, eventually
from tests.operator_process import IN_SYNC, NO_PORTS, PROJECT
from tests.shell_blocks import How, Step, alike, fits, steps

# What a document may name of the repository; a copy, as the guides' `sed -i` changes them.
_FOLDERS = ("manifests", "charts", "examples")
# A command that only reads. What it shows may take a moment to be so: a permission is in force a moment after it was
# granted, and `kubectl wait` ends at once where a new CustomResourceDefinition has no conditions yet.
_READ = re.compile(
    r"(\./dev )?kubectl (get|describe|events|top|wait|auth can-i)\b(?!.*( -w\b|--watch\b|;|&&|\|[^|]*kubectl|\$\())"
)
# Outside of the 60 s of a `kubectl wait`, of which a block may have some; well within the time of a page.
_COMMAND_S = 150.0
# Between two reads.
_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """What a command printed, standard error included, and its exit code: that of the last one that failed."""

    code: int
    text: str


class Shell:
    """One bash for a whole page, so that what it exports stays; a context manager."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._folder = folder
        self._background: list[int] = []
        self._count = 0

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        for group in [*self._background, self._process.pid]:
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def run(self, command: str) -> CommandOutput:
        """Run it to its end; a deadline ends the shell, and the test with it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._count += 1
        mark = f"=== end of command {self._count} ==="
        counted = f"failed=0; trap 'failed=$?' ERR\neval {shlex.quote(command)} </dev/null"
        self._process.stdin.write(f"{counted}\nprintf '\\n{mark} %s\\n' $failed\n")
        self._process.stdin.flush()
        alarm = threading.Timer(_COMMAND_S, self._process.kill)
        alarm.start()
        lines: list[str] = []
        try:
            for line in self._process.stdout:
                if line.startswith(mark):
                    return CommandOutput(int(line.split()[-1]), "".join(lines))
                lines.append(line)
        finally:
            alarm.cancel()
        raise AssertionError(f"no end of\n{command}\nIt printed:\n{''.join(lines)}")

    def begin(self, command: str) -> None:
        """Start an operator that runs on, and return when it works."""
        log = self._folder / f"background-{len(self._background)}.log"
        log.touch()
        came = self.run(f"setsid bash -c {shlex.quote(command)} >{log} 2>&1 & echo $!")
        self._background.append(int(came.text))
        eventually(log.read_text, lambda text: IN_SYNC in text)


def terminal(folder: Path, kubeconfig: Path, programs: Mapping[str, Path], *, author: bool = False) -> Shell:
    """A terminal in a copy of what documents name of the checkout, for the cluster of that kubeconfig.

    Args:
        folder: an empty one for the copy.
        programs: what a reader has beside kubectl and ./dev, by the names that they are called by.
        author: the reader installs this project, and writes an operator on it.
    """
    for name in _FOLDERS:
        shutil.copytree(PROJECT / name, folder / name)
    # Not ./dev itself, which may set up .venv first: a test installs nothing.
    just = f"{PROJECT}/.venv/bin/just --justfile {PROJECT}/justfile"
    (folder / "dev").write_text(f'#!/bin/sh\nexec {just} "$@"\n')
    (folder / "dev").chmod(0o755)
    path = folder / "bin"
    path.mkdir()
    every: dict[str, str | Path] = {"kubectl": kubernetes.kubectl_path(), **programs}
    for name, program in every.items():
        (path / name).symlink_to(program)
    own = folder / "kubeconfig"  # `kubectl config` may change it
    shutil.copy(kubeconfig, own)
    environment = {
        "PATH": f"{path}:{PROJECT / '.venv' / 'bin'}:{os.environ['PATH']}",
        "HOME": os.environ["HOME"],  # where the control plane's programs are kept
        "KUBECACHEDIR": str(folder / "kubectl-cache"),
        "KUBECONFIG": str(own),
        **NO_PORTS,
        **(_authors_variables(folder / "packages") if author else {}),
    }
    return Shell(folder, environment)


def _authors_variables(packages: Path) -> dict[str, str]:
    """What has `pip install` take this checkout, and find all that it requires: nothing comes by the network.

    Args:
        packages: a new folder for links to all that is installed where the tests run, but for this project.
    """
    packages.mkdir()
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if "memcached_operator" not in package.name and package.suffix != ".pth":
            (packages / package.name).symlink_to(package)
    return {
        "CHECKOUT": str(PROJECT),
        "PYTHONPATH": str(packages),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads the variable as what the flag stores: isolation is off
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        **{f"GREETING_OPERATOR_{what}_BIND_ADDRESS": "0" for what in ("HEALTH_PROBE", "METRICS")},
    }


def do(shell: Shell, where: str, step: Step, *, on_a_node: bool) -> None:
    """One step, and whether it came out as it says."""
    where = f"{where}, line {step.line}: {step.command}"
    if step.how is How.NOT_RUN or (step.how is How.NEEDS_NODE and not on_a_node):
        return
    if step.how is How.BACKGROUND:
        shell.begin(step.command)
        return
    ends = time.monotonic() + (DEADLINE_S if only_reads(step.command) else 0)
    while (wrong := _wrong(step, shell.run(step.command))) is not None and time.monotonic() < ends:
        time.sleep(_PAUSE_S)
    assert wrong is None, f"{where}\n{wrong}"


def only_reads(command: str) -> bool:
    """Whether each line of a command only reads, so that it may be typed again."""
    return all(_READ.match(line) for line in command.replace("\\\n", " ").strip().splitlines())


def _wrong(step: Step, came: CommandOutput) -> str | None:
    if (came.code != 0) != (step.how is How.FAILS):
        return f"ended with {came.code}:\n{came.text}"
    if step.shown is None or step.how is How.OUTPUT_VARIES or fits(step.shown, came.text):
        return None
    return f"should print:\n{alike(step.shown)}\nand printed:\n{came.text}"


def read(shell: Shell, page: str, *, before: Sequence[str] = (), on_a_node: bool = False) -> None:
    """Do a page from top to bottom.

    Args:
        before: what its reader has done before.
        on_a_node: whether containers really run.
    """
    for command in before:
        do(shell, "before", Step(0, command, None, How.RUN), on_a_node=on_a_node)
    for step in steps((PROJECT / page).read_text()):
        do(shell, page, step, on_a_node=on_a_node)
