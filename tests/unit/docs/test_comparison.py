"""docs/comparison.md shows code that is run, and figures that were measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.operators import PEERS
from tests.shell_blocks import files

PROJECT = Path(__file__).parents[3]
PAGE = (PROJECT / "docs" / "comparison.md").read_text()
OPERATOR_RUNTIME = files((PROJECT / "docs" / "write-your-own.md").read_text())["greeting_operator.py"]
KOPF = (PEERS / "greeting_kopf.py").read_text()
GO = (PEERS / "controller_runtime" / "greeting" / "main.go").read_text()
BLOCKS = re.findall(r"^```\w+\n(.+?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("block", "program"), [*zip(BLOCKS, (OPERATOR_RUNTIME, KOPF, GO), strict=True)], ids=("ours", "kopf", "go")
)
def test_each_block_is_part_of_the_program_that_is_run(block: str, program: str) -> None:
    for part in block.split("// …\n"):
        assert part.strip() in program


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (OPERATOR_RUNTIME, "`run`: {} lines of code"),
        (KOPF, "labels it has {} lines of code"),
        (GO, "The file has {} lines of code"),
    ],
)
def test_the_number_of_lines_is_right(program: str, words: str) -> None:
    code = [line for line in program.splitlines() if line.strip() and not line.strip().startswith(("#", "//"))]
    assert words.format(len(code)) in " ".join(PAGE.split())


def test_the_figures_are_those_of_the_performance_page() -> None:
    performance = (PROJECT / "docs" / "performance.md").read_text().splitlines()
    figures = re.findall(r"^\| .* \| \d.*", PAGE.partition("## Measurements")[2], re.MULTILINE)
    assert len(figures) > 5
    assert [line for line in figures if line not in performance] == []
