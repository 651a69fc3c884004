"""Which releases of Python there are besides the one that runs the tests."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from lab import pythons
from lab.image import bases
from lab.pythons import Python


def install(folder: Path, release: str, *, is_shim: bool = False) -> Path:
    """A program that says it is that release, or one that only says that it is not installed."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / (f"python{release}" if "versions" not in folder.parts else "python")
    program.write_text(f"#!/bin/sh\n{'exit 127' if is_shim else f'echo {release}'}\n")
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path / 'shims'}:{tmp_path / 'usr'}")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))


def test_the_system_s_goes_before_pyenv_s_and_what_only_stands_for_one_is_none(tmp_path: Path) -> None:
    assert pythons.find("3.12") is None
    of_pyenv = install(tmp_path / "pyenv" / "versions" / "3.12.1" / "bin", "3.12")
    install(tmp_path / "shims", "3.12", is_shim=True)
    assert pythons.find("3.12") == of_pyenv
    system = install(tmp_path / "usr", "3.12")
    assert pythons.find("3.12") == system


def test_one_that_is_not_there_is_lacking_by_its_release(tmp_path: Path) -> None:
    assert Python("3.14").lacking() == "no Python 3.14 on the PATH or among pyenv's"
    install(tmp_path / "usr", "3.14")
    assert Python("3.14").lacking() is None


def test_what_the_benchmark_measures_is_the_image_s_and_without_that_this_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pythons.main()
    told = capsys.readouterr()
    assert told.out.strip() == sys.executable
    assert f"as there is no Python {pythons.image_release()}" in told.err
    monkeypatch.setattr(Python, "prepare", lambda _: None)
    install(tmp_path / "usr", pythons.image_release())
    pythons.main()
    assert capsys.readouterr().out.strip() == str(Python(pythons.image_release()).program)


def test_the_releases_are_those_that_the_package_is_for_and_the_image_s_is_among_them() -> None:
    project = tomllib.loads((pythons.ROOT / "pyproject.toml").read_text())["project"]
    language = "Programming Language :: Python :: 3."
    promised = [f"3.{each.removeprefix(language)}" for each in project["classifiers"] if each.startswith(language)]
    assert promised == [project["requires-python"].removeprefix(">="), *pythons.RELEASES]
    assert pythons.image_release() in pythons.RELEASES
    assert bases.PYTHON.entrypoint == (f"/usr/bin/python{pythons.image_release()}",)
