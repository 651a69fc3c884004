"""Prove a commit: what CI runs, on HEAD, in a clean clone beside the tree.

``./dev gate`` is this. What is not committed does not count. A commit that passed gets a line in ``.cache/gate-passed``
with its hash, when the run began, and how long it took. The exit code is that of ``.ci/run``, whose output is kept in
``.cache/gate.log`` too.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_FOLDER = Path(".cache")
PASSED = "gate-passed"
LOG = "gate.log"


def prove(root: Path) -> int:
    """Run ``.ci/run`` of a checkout's HEAD and note a commit that passed; the exit code.

    Args:
        root: the checkout; what is not committed in it is told, and has no part in the run.
    """
    commit = _git(root, "rev-parse", "HEAD")
    if _git(root, "status", "--porcelain"):
        print("gate: what is not committed does not count", file=sys.stderr)
    kept = root / _FOLDER
    kept.mkdir(exist_ok=True)
    began, started_s = datetime.now(UTC), time.monotonic()
    with _clone(root, commit) as clone:
        code = _run(clone, kept / LOG)
    took_s = time.monotonic() - started_s
    if code == 0:
        with (kept / PASSED).open("a") as notes:
            notes.write(f"{commit} {began:%Y-%m-%dT%H:%M:%SZ} {took_s:.0f} s\n")
    result = "passed" if code == 0 else f"failed (exit code {code})"
    print(f"gate: {commit[:12]} {result} in {took_s / 60:.1f} minutes; its output: {kept / LOG}", flush=True)
    return code


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def _clone(root: Path, commit: str) -> Iterator[Path]:
    """A clone with all of the history, as CI's; removed at the end."""
    name = f"{root.name}-gate-"
    with tempfile.TemporaryDirectory(prefix=name, dir=root.parent, ignore_cleanup_errors=True) as folder:
        clone = Path(folder) / root.name
        _git(root, "clone", "--quiet", "--no-checkout", str(root), str(clone))
        _git(clone, "checkout", "--quiet", "--detach", commit)
        yield clone


def _run(clone: Path, log: Path) -> int:
    # The clone makes an environment of its own, not by this one's Python.
    here = Path(sys.prefix) / "bin"
    path = os.pathsep.join(part for part in os.environ["PATH"].split(os.pathsep) if Path(part) != here)
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    with (
        log.open("wb") as kept,
        subprocess.Popen(
            ["bash", ".ci/run"],
            cwd=clone,
            env={**environment, "PATH": path, "CI": "true"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as running,
    ):
        assert running.stdout is not None
        for line in running.stdout:
            for output in (kept, sys.stdout.buffer):
                output.write(line)
                output.flush()
    return running.returncode


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit("gate: it takes no arguments, and proves HEAD")
    if shutil.which("git") is None:
        sys.exit("gate: there is no git on the PATH")
    sys.exit(prove(ROOT))
