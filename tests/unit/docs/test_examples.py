"""What the authors' pages show in Python: their files are typed, and mistakes are told as docs/runtime.md says."""

from __future__ import annotations

import asyncio
import doctest
import io
import os
import re
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from operator_runtime import Operator, Program
from tests.shell_blocks import files
from tests.unit.operator_runtime.client.client_support import client_of
from tests.unit.operator_runtime.operator_support import settings

PROJECT = Path(__file__).parents[3]
RUNTIME = PROJECT / "docs" / "runtime.md"
_SESSION = re.compile(r"^```pycon\n(.+?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["write-your-own.md", "runtime.md"])
def test_the_files_of_a_page_are_typed_strictly(page: str, tmp_path: Path) -> None:
    for path, text in files((PROJECT / "docs" / page).read_text()).items():
        (tmp_path / path).write_text(text)
    python = sorted(str(path) for path in tmp_path.glob("*.py"))
    assert python
    options = ["--strict", f"--config-file={os.devnull}", f"--cache-dir={PROJECT / '.cache' / 'mypy-pages'}"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *python],
        env={**os.environ, "MYPYPATH": f"{tmp_path}:{PROJECT}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("page", ["write-your-own.md", "runtime.md"])
def test_the_files_of_a_page_are_formatted_and_free_of_what_ruff_finds(page: str, tmp_path: Path) -> None:
    for path, text in files((PROJECT / "docs" / page).read_text()).items():
        (tmp_path / path).write_text(text)
    # As an author's own project, where the runtime is one package of many.
    options = ["--isolated", "--no-cache", "--line-length=120", "--target-version=py311"]
    rules = "--select=ASYNC,B,C4,E,F,I,PLE,PLW,PT,RET,RUF,SIM,UP,W"
    for command in (["check", rules, "--ignore=SIM105"], ["format", "--diff"]):
        checked = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *options, "."],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_mistakes_are_told_as_the_page_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = RUNTIME.read_text()
    (tmp_path / "shops.py").write_text(files(page)["shops.py"])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shops", raising=False)

    def await_(coroutine: Coroutine[Any, Any, object]) -> object:
        return asyncio.run(coroutine)

    operator = Operator(settings(), Program("shops", "1"), client_of("https://api.invalid"))
    (session,) = _SESSION.findall(page)
    report = io.StringIO()
    example = doctest.DocTestParser().get_doctest(
        session, {"operator": operator, "await_": await_}, "docs/runtime.md", None, 0
    )
    results = doctest.DocTestRunner(verbose=False).run(example, out=report.write)
    assert results.attempted > 10
    assert results.failed == 0, report.getvalue()
    sys.modules.pop("shops", None)
