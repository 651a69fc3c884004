"""docs/reliability.md names a test for each promise, and docs/threat-model.md for defences: they must be there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
RELIABILITY = (PROJECT / "docs" / "reliability.md").read_text()
THREATS = (PROJECT / "docs" / "threat-model.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)((?:::\w+)+)`", RELIABILITY + THREATS)))


def test_each_row_of_the_table_names_a_test() -> None:
    rows = [line for line in RELIABILITY.splitlines() if line.startswith("| ") and not line.startswith("| fault |")]
    assert len(rows) > 20
    assert [row for row in rows if "::test_" not in row] == []


@pytest.mark.parametrize(("file", "names"), NAMED, ids=[f"{file}{names}" for file, names in NAMED])
def test_each_test_that_a_promise_rests_on_is_there(file: str, names: str) -> None:
    found: ast.AST = ast.parse((PROJECT / file).read_text())
    for name in names.removeprefix("::").split("::"):
        inside = [
            each
            for each in ast.iter_child_nodes(found)
            if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and each.name == name
        ]
        assert inside, f"{file} has no {name}"
        found = inside[0]
