"""What `./dev` alone says: every recipe, in the groups of the justfile, on one screen; and how what it runs is left."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.demo_process import IN_TERMINAL
from tests.operator_process import PROJECT

_COLUMNS, _ROWS = 80, 24
_PROMPT_ROWS = 1
_STAYS = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
print("up", *sys.argv[1:], flush=True)
signal.sigwait({signal.SIGINT})
print("stopped", flush=True)
"""
# Far above what it takes.
_DEADLINE_S = 60.0


def _said() -> str:
    return subprocess.run([PROJECT / "dev"], capture_output=True, text=True, check=True).stdout


def _recipes() -> dict[str, set[str]]:
    """Names by group, as just has them."""
    dump = subprocess.run(
        [Path(sys.executable).with_name("just"), "--justfile", PROJECT / "justfile", "--dump", "--dump-format=json"],
        capture_output=True,
        check=True,
    ).stdout
    groups: dict[str, set[str]] = {}
    for name, recipe in json.loads(dump)["recipes"].items():
        (group,) = (each["group"] for each in recipe["attributes"] if isinstance(each, dict) and "group" in each)
        groups.setdefault(group, set()).add(name)
    return groups


def test_alone_it_fits_a_screen() -> None:
    lines = _said().splitlines()
    assert len(lines) + _PROMPT_ROWS <= _ROWS
    assert max(map(len, lines)) <= _COLUMNS


def test_alone_it_names_each_recipe_once_in_its_group() -> None:
    _, *parts = re.split(r"^(\w+)\n", _said(), flags=re.MULTILINE)
    named = {}
    for group, text in zip(parts[::2], parts[1::2], strict=True):
        leading = re.findall(r"^    ([a-z-]+)  ", text, flags=re.MULTILINE)
        others = re.findall(r"(?:^    (?:also|from sources):|^    (?=[a-z-]+ [a-z-]+$))(.*)", text, flags=re.MULTILINE)
        names = [*leading, *" ".join(others).split()]
        assert len(names) == len(set(names))
        named[group.lower()] = set(names)
    assert named == _recipes()


@pytest.mark.parametrize("recipe", ["demo", "cluster", "node", "run", "run-example", "docs-serve"])
def test_what_is_left_by_ctrl_c_has_the_last_word_and_its_own_exit_code(tmp_path: Path, recipe: str) -> None:
    checkout = _checkout(tmp_path, recipe)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", IN_TERMINAL, checkout / "dev", recipe, "two words"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        assert _read(ours, "up two words\r\n")
        os.write(ours, b"\x03")
        assert _read(ours, None).endswith("stopped\r\n")
        assert process.wait(_DEADLINE_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _checkout(folder: Path, recipe: str) -> Path:
    """`./dev` beside a recipe of that name which waits for Ctrl-C, and all that it looks for before it runs one."""
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "just"):
        (programs / name).symlink_to(Path(sys.executable).with_name(name))
    shutil.copy(PROJECT / "dev", folder / "dev")
    (folder / "requirements.lock").write_text("nothing\n")
    (folder / ".venv" / "stamp").write_text(f"{folder.resolve()}\nnothing\n")
    (folder / "stays.py").write_text(_STAYS)
    command = f'@exec {sys.executable} {folder}/stays.py "$@"'
    (folder / "justfile").write_text(f"set positional-arguments\n\n{recipe} *args:\n    {command}\n")
    return folder


def _read(terminal: int, until: str | None) -> str:
    """What is said there until that, or until the end."""
    said, ends = "", time.monotonic() + _DEADLINE_S
    while until is None or until not in said:
        readable, _, _ = select.select([terminal], [], [], max(0.0, ends - time.monotonic()))
        assert readable, said
        try:
            chunk = os.read(terminal, 4096)
        except OSError:  # nobody has it open any more
            chunk = b""
        if not chunk:
            assert until is None, said
            break
        said += chunk.decode()
    return said
