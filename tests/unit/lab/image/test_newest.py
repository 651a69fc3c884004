"""A stand-in has unstable's package where that runs, and else the one that it had."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from lab.cache import BuildError
from lab.image import debian, newest

PROGRAM = "usr/bin/cached"
_RUNS = "#!/bin/sh\necho cached 2\n"
_FAILS = "#!/bin/sh\necho GLIBC_9.99 not found >&2\nexit 1\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The files of a stand-in, whose loader runs what it is given."""
    root = tmp_path / "root"
    _write(root / "usr/lib/some-linux-gnu/ld-linux-some.so.1", '#!/bin/sh\nshift 2\nexec "$@"\n')
    _write(root / PROGRAM, "the release's")
    return root


@pytest.fixture
def unstable(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Say what unstable's program is."""

    def has(program: str) -> None:
        monkeypatch.setattr(debian, "fetched", lambda names, cache, release: Path(release, *names))
        monkeypatch.setattr(debian, "unpack", lambda folder, names, root: _write(root / PROGRAM, program))

    return has


def test_one_that_runs_takes_the_place(root: Path, unstable: Callable[[str], None], tmp_path: Path) -> None:
    unstable(_RUNS)
    newest.put("cached", PROGRAM, root, tmp_path)
    assert (root / PROGRAM).read_text() == _RUNS


@pytest.mark.parametrize(("program", "why"), [(_FAILS, "GLIBC_9.99 not found"), ("\0", "does not run")])
def test_one_that_does_not_run_leaves_the_release_s(
    root: Path,
    unstable: Callable[[str], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    program: str,
    why: str,
) -> None:
    unstable(program)
    newest.put("cached", PROGRAM, root, tmp_path)
    assert (root / PROGRAM).read_text() == "the release's"
    said = capsys.readouterr().err
    assert said.startswith("lab: cached stays that of Debian trixie; sid's is not used: it does not run")
    assert why in said


def test_one_that_cannot_be_had_leaves_the_release_s(
    root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fetched(names: Iterable[str], cache: Path, release: str) -> Path:
        raise BuildError(f"no {release}")

    monkeypatch.setattr(debian, "fetched", fetched)
    newest.put("cached", PROGRAM, root, tmp_path)
    assert (root / PROGRAM).read_text() == "the release's"
    assert "no sid" in capsys.readouterr().err


def test_files_without_a_libc_run_nothing(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="no dynamic loader"):
        newest.command(tmp_path, tmp_path / PROGRAM)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
