"""The site as people read it: whole identifiers, tables on a phone, a search that knows flags, links that lead on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

PROJECT = Path(__file__).parents[3]
SEARCH = Path(__file__).with_name("search_on_site.js")
SETTINGS = (
    "# Settings\n\n## Deletion\n\n### `--finalizer[=true|false]`\n\nPut it there.\n\n### `--leader-elect`\n\nOne.\n"
)
OTHERS = """\
# Runtime

## Finalizers

A finalizer is a promise; each finalizer is.

| flag | default |
|---|---|
| `--finalizer` | `x y` |

[x](../README.md#the-demo) and [y](../LICENSE)
"""


def built(folder: Path, **pages: str) -> Path:
    """A site of these pages, and of two files beside docs/, with the project's own settings, hooks and scripts."""
    docs = folder / "docs"
    (docs / "site").mkdir(parents=True)
    for name in ("site.css", "search.js"):
        shutil.copy(PROJECT / "docs" / "site" / name, docs / "site")
    for name, text in pages.items():
        (docs / f"{name}.md").write_text(text)
    (folder / "README.md").write_text("# A project\n\n## The demo\n")
    (folder / "LICENSE").write_text("Do what you like.")
    nav = [f"{name}.md" for name in pages]
    config = str(PROJECT / "mkdocs.yml")
    build(load_config(config, docs_dir=str(docs), site_dir=str(folder / "site"), nav=nav, strict=True))
    return folder / "site"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of two pages."""
    return built(tmp_path_factory.mktemp("site"), index=OTHERS, settings=SETTINGS)


def test_pages_have_the_style_sheet_and_the_script_and_the_folder_s_python_stays_away(site: Path) -> None:
    page = (site / "index.html").read_text()
    assert 'href="site/site.css"' in page
    assert 'src="site/search.js"' in page
    assert '<td data-label="flag"><code class="word">--finalizer</code></td>' in page
    assert sorted(path.name for path in (site / "site").iterdir()) == ["search.js", "site.css"]


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("--finalizer", "settings.html#--finalizertruefalse"),
        ("finalizer", "settings.html#--finalizertruefalse"),
        ("--leader-elect", "settings.html#--leader-elect"),
        ("promise -absent", "index.html#finalizers"),
    ],
)
def test_a_search_finds_the_setting_first(site: Path, query: str, place: str) -> None:
    if shutil.which("node") is None and not os.environ.get("CI"):
        pytest.skip("no node on the PATH")
    found = subprocess.run(["node", SEARCH, site, query], capture_output=True, text=True, check=True, timeout=60).stdout
    assert json.loads(found)[0] == place


def test_files_from_outside_of_docs_come_along(site: Path) -> None:
    assert 'href="repository/index.html#the-demo"' in (site / "index.html").read_text()
    assert (site / "repository" / "LICENSE").read_text() == "Do what you like."


@pytest.mark.parametrize(
    "page", ["[x](gone.md)", "[x](#gone)", "[x](../README.md#gone)", '<img src="https://img.example/x.png">']
)
def test_a_build_ends_where_a_link_leads_nowhere_or_something_comes_from_elsewhere(tmp_path: Path, page: str) -> None:
    with pytest.raises(Abort):
        built(tmp_path, index=page)
