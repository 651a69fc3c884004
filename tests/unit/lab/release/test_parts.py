"""The parts of a release that need no program but Python."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.image.wheels import pip_command
from lab.release import parts

CHANGELOG = """# Changelog

## Unreleased

- Later.

## 0.2.0 - 2026-10-01

- Second.

## 0.1.0 - 2026-09-01

- First.
"""


@pytest.mark.parametrize(("version", "told"), [("0.2.0", "- Second."), ("0.1.0", "- First."), ("0.3.0", "- Later.")])
def test_the_notes_are_the_part_of_the_changelog_about_the_version(version: str, told: str) -> None:
    assert parts.notes(CHANGELOG, version) == f"# memcached-operator {version}\n\n{told}\n"


def test_a_changelog_without_a_part_about_it_makes_no_release() -> None:
    with pytest.raises(parts.NotReleasable, match=r"0\.1\.0"):
        parts.notes("# Changelog\n", "0.1.0")


def test_a_checkout_with_changes_makes_no_release(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / "new").write_text("")
    monkeypatch.setattr(parts, "ROOT", tmp_path)
    with pytest.raises(parts.NotReleasable, match=r"\?\? new"):
        parts.commit()


def test_a_machine_that_no_image_is_for_is_named() -> None:
    with pytest.raises(SystemExit, match="'riscv64', only for amd64 and arm64"):
        pip_command("riscv64", "lock", "folder")
