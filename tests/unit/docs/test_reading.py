"""The site as people read it: whole identifiers, tables on a phone, and a search that knows flags."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from docs.site import reading

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


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("<code>--leader-elect</code>", '<code class="word">--leader-elect</code>'),
        ("<code>a&amp;b</code>", '<code class="word">a&amp;b</code>'),
        ("<code>kubectl get pods</code>", "<code>kubectl get pods</code>"),
        (f"<code>{'x' * 41}</code>", f"<code>{'x' * 41}</code>"),
        ("<pre><code><span>x</span></code></pre>", "<pre><code><span>x</span></code></pre>"),
    ],
)
def test_an_identifier_that_goes_into_a_line_is_one_word(written: str, read: str) -> None:
    assert reading.with_whole_words(written) == read


def test_each_cell_of_a_table_says_what_its_column_is() -> None:
    row = '<tr>\n<td>a</td>\n<td style="text-align: right;"></td>\n</tr>\n'
    table = f'<table>\n<thead>\n<tr>\n<th><code>x</code> &lt; "y"</th>\n<th>b</th>\n</tr>\n</thead>\n{row}{row}</table>'
    labels = re.findall(r'<td data-label="([^"]*)"', reading.with_labelled_cells(table))
    assert labels == ["x &lt; &quot;y&quot;", "b"] * 2


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
