"""What the documents say of the code, as far as a test can tell."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from memcached_operator.memcached.status import Reason

PROJECT = Path(__file__).parents[2]
DOCUMENTS = (*PROJECT.glob("*.md"), *PROJECT.glob("docs/*.md"), *PROJECT.glob("benchmarks/*.md"))
OPERATIONS = (PROJECT / "docs" / "operations.md").read_text()
# Not Markdown's own: the rule of GitHub's headings, as far as ours go.
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {_NOT_IN_ANCHORS.sub("", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_each_link_inside_the_project_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", document.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        aim = (document.parent / path) if path else document
        assert aim.exists(), f"{document.name} links to {target}"
        assert not anchor or anchor in anchors(aim.read_text()), f"{document.name} links to {target}"


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_of_a_condition_has_its_place_in_the_table(reason: Reason) -> None:
    table = [line for line in (PROJECT / "docs" / "conditions.md").read_text().splitlines() if line.startswith("|")]
    assert any(f"`{reason}`" in line for line in table)


def test_what_to_do_about_each_reason_of_a_condition_is_told_and_of_no_other() -> None:
    section = OPERATIONS.partition("## Reasons of conditions")[2]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(Reason)


def complaints(source: Path) -> Iterator[str]:
    """The format of each log line of that file that is a warning or worse."""
    for node in ast.walk(ast.parse(source.read_text())):
        match node:
            case ast.Call(
                func=ast.Attribute(
                    value=ast.Name(id="log" | "logger"), attr="warning" | "error" | "critical" | "exception"
                ),
                args=[ast.Constant(value=str(format_)), *_],
            ):
                yield format_
            case _:
                pass


SOURCES = [
    source
    for source in sorted((PROJECT / "memcached_operator").rglob("*.py"))
    if not {"simulator", "demo"} & set(source.parts) and any(complaints(source))
]


def test_the_log_lines_that_ask_for_action_are_found() -> None:
    assert {"controller.py", "contests.py", "reflector.py", "process.py"} <= {source.name for source in SOURCES}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_what_to_do_about_each_warning_is_told(source: Path) -> None:
    section = OPERATIONS.partition("## Log lines that ask for action")[2].partition("\n## ")[0]
    for format_ in complaints(source):
        chunks = (chunk.strip(" :.,;()") for chunk in re.split(r"%[.\d]*[a-z]", format_))
        words = next((chunk for chunk in chunks if len(chunk) >= 4), "")
        assert words in section, f"docs/operations.md says nothing about {format_!r}"


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/decisions.md"])
def test_each_file_that_a_document_names_is_there(name: str) -> None:
    files = {path.relative_to(PROJECT).as_posix() for path in PROJECT.glob("*/**/*.py") if ".venv" not in path.parts}
    for named in re.findall(r"`([\w./]+\.py)`", (PROJECT / name).read_text()):
        assert any(file == named or file.endswith(f"/{named}") for file in files), f"{name} names {named}"
