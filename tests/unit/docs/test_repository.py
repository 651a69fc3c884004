"""The site's hook: links that work in the repository work on the site."""

from __future__ import annotations

from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import Abort

from docs.site import repository

PROJECT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("source", "link", "on_the_site"),
    [
        ("docs/architecture.md", "[a](decisions.md#the-wire)", "[a](decisions.md#the-wire)"),
        ("docs/architecture.md", "[a](../README.md)", "[a](repository/README.md)"),
        ("docs/performance.md", "[a](../benchmarks/README.md#run)", "[a](repository/benchmarks/README.md#run)"),
        ("README.md", "[a](docs/settings.md)", "[a](../settings.md)"),
        ("README.md", "![a](docs/demo.svg)", "![a](../demo.svg)"),
        ("README.md", "[![a](docs/demo.svg)](LICENSE)", "[![a](docs/demo.svg)](LICENSE)"),
        ("benchmarks/README.md", "[a](../docs/performance.md)", "[a](../../performance.md)"),
        ("docs/architecture.md", "[the `lab/`](../lab)", "the `lab/`"),
        (
            "docs/architecture.md",
            "[a](#below) [b](https://memcached.org/x)",
            "[a](#below) [b](https://memcached.org/x)",
        ),
        (
            "docs/a.md",
            "`^[a-z](../README.md)$` [`a`](../README.md)",
            "`^[a-z](../README.md)$` [`a`](repository/README.md)",
        ),
        ("docs/a.md", "``a`b`` [a](../README.md) `c`", "``a`b`` [a](repository/README.md) `c`"),
        ("docs/a.md", "```sh\n[a](../README.md)\n```", "```sh\n[a](../README.md)\n```"),
    ],
)
def test_a_link_means_the_same_file_on_the_site(source: str, link: str, on_the_site: str) -> None:
    assert repository.with_links_of_the_site(f"Before\n{link}\n", source, PROJECT) == f"Before\n{on_the_site}\n"


def test_what_pages_link_to_belongs_to_the_site_and_so_does_what_that_links_to(
    tmp_path: Path,
) -> None:
    texts = {
        "docs/a.md": "[to](../README.md) [to](b.md) [to](../lab)",
        "docs/b.md": "",
        "README.md": "[to](docs/b.md) [to](LICENSE) [back](README.md) [nowhere](GONE.md)",
        "LICENSE": "[no](OTHER.md)",
        "OTHER.md": "",
        "lab/x.py": "",
    }
    for path, text in texts.items():
        file = tmp_path / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert repository.linked(iter(["docs/a.md"]), tmp_path) == ["LICENSE", "README.md"]


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
