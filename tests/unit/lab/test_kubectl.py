from pathlib import Path

import pytest

from lab import kubectl
from lab.kubectl import LabError


def _program(folder: Path, script: str) -> Path:
    program = folder / "kubectl"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def _run(program: Path, *arguments: str, check: bool = True) -> str:
    home = program.parent
    return kubectl.run(program, *arguments, kubeconfig=home / "none", home=home, input=None, check=check).stdout


def test_a_call_that_fails_raises_with_its_words(tmp_path: Path) -> None:
    program = _program(tmp_path, "echo it is not there >&2; exit 3")
    with pytest.raises(LabError, match="kubectl get pods: exit code 3: it is not there"):
        _run(program, "get", "pods")
    assert _run(program, check=False) == ""


@pytest.mark.parametrize("check", [True, False])
def test_a_call_without_end_is_ended_and_which_it_was_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: bool
) -> None:
    monkeypatch.setattr(kubectl, "_TIMEOUT_S", 0.1)
    silent = _program(tmp_path, "exec sleep 600")
    with pytest.raises(LabError, match=r"kubectl wait mcd/shop: no end within 0\.1 s; its output was: nothing"):
        _run(silent, "wait", "mcd/shop", check=check)
