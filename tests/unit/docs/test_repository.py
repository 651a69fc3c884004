"""The site's hook: links that work in the repository work on the site."""

from __future__ import annotations

from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import Abort

PROJECT = Path(__file__).parents[3]


def site(tmp_path: Path, page: str) -> MkDocsConfig:
    """A site with the project's own settings and hook: one page, and two files beside docs/."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(page)
    (tmp_path / "README.md").write_text("# A project\n\n## The demo\n")
    (tmp_path / "LICENSE").write_text("Do what you like.")
    return load_config(
        str(PROJECT / "mkdocs.yml"),
        docs_dir=str(tmp_path / "docs"),
        site_dir=str(tmp_path / "site"),
        nav=["index.md"],
        strict=True,
    )


@pytest.mark.parametrize(
    "page", ["[x](gone.md)", "[x](#gone)", "[x](../README.md#gone)", '<img src="https://img.example/x.png">']
)
def test_a_build_ends_where_a_link_leads_nowhere_or_something_comes_from_elsewhere(tmp_path: Path, page: str) -> None:
    with pytest.raises(Abort):
        build(site(tmp_path, page))


def test_a_build_takes_files_from_outside_along(tmp_path: Path) -> None:
    build(site(tmp_path, "# A page\n\n[x](../README.md#the-demo) and [y](../LICENSE)"))
    assert 'href="repository/index.html#the-demo"' in (tmp_path / "site" / "index.html").read_text()
    assert (tmp_path / "site" / "repository" / "LICENSE").read_text() == "Do what you like."
