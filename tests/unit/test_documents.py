"""What the documents say of the code, as far as a test can tell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memcached_operator.memcached.status import Reason

PROJECT = Path(__file__).parents[2]
DOCUMENTS = (*PROJECT.glob("*.md"), *PROJECT.glob("docs/*.md"), *PROJECT.glob("benchmarks/*.md"))
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


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/decisions.md"])
def test_each_file_that_a_document_names_is_there(name: str) -> None:
    files = {path.relative_to(PROJECT).as_posix() for path in PROJECT.glob("*/**/*.py") if ".venv" not in path.parts}
    for named in re.findall(r"`([\w./]+\.py)`", (PROJECT / name).read_text()):
        assert any(file == named or file.endswith(f"/{named}") for file in files), f"{name} names {named}"
