"""Shells in which the scripts of servers' pods run."""

from __future__ import annotations

import shutil

import pytest

# The official images have dash or busybox; the third one is for images of others.
SHELLS = [
    pytest.param(each, marks=[pytest.mark.slow] if each == "bash" else [])
    for each in ("dash", "busybox", "bash")
    if shutil.which(each)
]


def words_of(shell: str) -> list[str]:
    """Begin a command that the shell runs."""
    return [shell, "sh"] if shell == "busybox" else [shell]
