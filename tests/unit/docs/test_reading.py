"""The site as people read it: whole identifiers, tables on a phone, and a search that knows flags."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

PROJECT = Path(__file__).parents[3]
SEARCH = Path(__file__).with_name("search_on_site.js")
SETTINGS = (
    "# Settings\n\n## Deletion\n\n### `--finalizer[=true|false]`\n\nPut it there.\n\n### `--leader-elect`\n\nOne.\n"
)
TABLE = "| flag | default |\n|---|---|\n| `--finalizer` | `x y` |\n"
OTHERS = f"# Runtime\n\n## Finalizers\n\nA finalizer is a promise; each finalizer is.\n\n{TABLE}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of two pages with the project's own settings, hooks, style sheet and script."""
    folder = tmp_path_factory.mktemp("site")
    docs = folder / "docs"
    (docs / "site").mkdir(parents=True)
    for name in ("site.css", "search.js"):
        shutil.copy(PROJECT / "docs" / "site" / name, docs / "site")
    (docs / "settings.md").write_text(SETTINGS)
    (docs / "index.md").write_text(OTHERS)
    config = load_config(
        str(PROJECT / "mkdocs.yml"),
        docs_dir=str(docs),
        site_dir=str(folder / "site"),
        nav=["index.md", "settings.md"],
        strict=True,
    )
    build(config)
    return folder / "site"


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
