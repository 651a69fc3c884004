"""What proves a commit: a run of what CI runs, on HEAD, elsewhere."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import gate

Checkout = Callable[[str], Path]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """Makes a checkout with this ``.ci/run``, committed."""

    def make(script: str) -> Path:
        root = tmp_path / "project"
        (root / ".ci").mkdir(parents=True)
        (root / ".ci" / "run").write_text(script)
        (root / ".gitignore").write_text(".cache/\n")
        for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message=first"]):
            who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
            subprocess.run(["git", *who, *words], cwd=root, check=True)
        return root

    return make


def head(root: Path) -> str:
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_a_commit_that_passes_is_recorded_with_a_line_each(
    checkout: Checkout, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    root = checkout("set -e; [[ $CI == true && ! -e scratch && -z ${VIRTUAL_ENV:-} ]]; ! read -r; echo it runs in $PWD")
    assert [gate.prove(root), gate.prove(root)] == [0, 0]
    lines = (root / ".cache" / gate.PASSED).read_text().splitlines()
    assert [line.split()[0] for line in lines] == [head(root)] * 2
    ran = (root / ".cache" / gate.LOG).read_text()
    assert ran.startswith(f"it runs in {root.parent}/project-gate-")
    assert b"gate: %s passed" % head(root)[:12].encode() in capfdbinary.readouterr().out
    assert [path.name for path in root.parent.iterdir()] == ["project"]
