"""The folder of a running simulator, and that nothing of it outlives its owner."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from kube_simulator.state import state_directory


def test_a_folder_is_its_owner_s_alone_and_gone_at_the_end(tmp_path: Path) -> None:
    with state_directory(tmp_path) as first, state_directory(tmp_path) as second:
        assert first != second
        assert first.stat().st_mode & 0o077 == 0
        (first / "file").write_text("x")
    assert not first.exists()
    assert not second.exists()


def test_what_a_killed_simulator_left_is_removed_by_the_next_one_and_what_is_in_use_stays(tmp_path: Path) -> None:
    left = tmp_path / "simulator-left"
    left.mkdir()
    (left / "owner.lock").touch()
    used = tmp_path / "simulator-used"
    used.mkdir()
    with (used / "owner.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with state_directory(tmp_path):
            assert not left.exists()
            assert used.exists()


def test_by_default_it_lies_under_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with state_directory() as path:
        assert path.is_relative_to(tmp_path)
