"""The parts of a release that need no program but Python."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.image.wheels import pip_command
from lab.release import parts, stranger
from lab.release.signatures import signature_of

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


def test_sha256sum_reads_the_list_of_files(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("b", "a")]
    for file in files:
        file.write_text(file.name)
    listed = parts.sums(files, tmp_path)
    assert [line.split()[1] for line in listed.read_text().splitlines()] == ["a", "b"]
    subprocess.run(["sha256sum", "--check", "--strict", listed.name], cwd=tmp_path, check=True)


def test_a_file_that_no_list_names_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(stranger, "verify_file", lambda *_: None)
    (tmp_path / "a").write_text("")
    listed = parts.sums([tmp_path / "a"], tmp_path)
    signature_of(listed).write_text("")
    stranger.verify_sums(tmp_path, tmp_path / "key")
    (tmp_path / "b").write_text("")
    with pytest.raises(stranger.Refused, match="'b'"):
        stranger.verify_sums(tmp_path, tmp_path / "key")


@pytest.mark.parametrize(("architecture", "machine"), [("amd64", "x86_64"), ("arm64", "aarch64")])
def test_pip_takes_wheels_for_the_machine_of_the_image_alone(architecture: str, machine: str) -> None:
    command = pip_command(architecture, "lock", "folder", "3.12", 28)
    platforms = [command[at + 1] for at, word in enumerate(command) if word == "--platform"]
    assert {f"manylinux_2_{minor}_{machine}" for minor in (17, 28)} <= set(platforms)
    assert f"manylinux_2_29_{machine}" not in platforms
    assert all(each.endswith(machine) for each in platforms)
    assert command[command.index("--abi") + 1] == "cp312"


def test_a_machine_that_no_image_is_for_is_named() -> None:
    with pytest.raises(SystemExit, match="'riscv64', only for amd64 and arm64"):
        pip_command("riscv64", "lock", "folder")
