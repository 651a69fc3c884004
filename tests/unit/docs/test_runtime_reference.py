"""The runtime's reference, which mkdocstrings fills from docstrings."""

from __future__ import annotations

import re
from pathlib import Path

import operator_runtime

REFERENCE = Path(__file__).parents[3] / "docs" / "runtime-reference.md"


def test_every_exported_name_has_its_place_in_the_reference() -> None:
    named = re.findall(r"^::: operator_runtime\.(\w+)$", REFERENCE.read_text(), re.MULTILINE)
    assert sorted(named) == sorted(operator_runtime.__all__)


def test_every_member_that_the_reference_leaves_out_exists() -> None:
    entries = re.findall(r"^::: operator_runtime\.(\w+)\n    options: (.+)$", REFERENCE.read_text(), re.MULTILINE)
    for owner, options in entries:
        for member in re.findall(r"!\^(\w+)\$", options):
            assert hasattr(getattr(operator_runtime, owner), member), f"{owner}.{member}"
