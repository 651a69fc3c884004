"""A hook of MkDocs: what docs/site/site.css needs to know of a page, and which page is searched first.

A narrow screen shows a row of a table as a list, so that each cell must say what it is. An identifier must not be
broken at its dashes, and a command may: a style sheet alone cannot tell the two apart.
"""

from __future__ import annotations

import html
import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

# Of the smallest phones: characters that go into a line.
_LINE = 40
# Code without a space; in a block it has attributes or other elements in it.
_WORD = re.compile(r"<code>((?:[^\s<&]|&\w+;)+)</code>")
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_ROW = re.compile(r"<tr>.*?</tr>", re.DOTALL)
_HEADING = re.compile(r"<th\b[^>]*>(.*?)</th>", re.DOTALL)
_CELL = re.compile(r"<td\b")
_TAG = re.compile(r"<[^>]+>")
# Anyone who searches for a flag wants what it means before the pages that use it.
_SEARCHED_FIRST = "settings.md"
_BOOST = 2


def with_whole_words(page: str) -> str:
    """The HTML of a page with each identifier that goes into a line marked as one word."""

    def marked(match: re.Match[str]) -> str:
        fits = len(html.unescape(match[1])) <= _LINE
        return f'<code class="word">{match[1]}</code>' if fits else match[0]

    return _WORD.sub(marked, page)


def with_labelled_cells(page: str) -> str:
    """The HTML of a page where each cell of a table bears the heading of its column."""

    def labelled(table: re.Match[str]) -> str:
        labels = [html.escape(html.unescape(_TAG.sub("", each))) for each in _HEADING.findall(table[0])]

        def row(match: re.Match[str]) -> str:
            mine = iter(labels)
            return _CELL.sub(lambda _: f'<td data-label="{next(mine, "")}"', match[0])

        return _ROW.sub(row, table[0])

    return _TABLE.sub(labelled, page)


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """MkDocs asks: what is this page's text?"""
    if page.file.src_uri == _SEARCHED_FIRST:
        page.meta["search"] = {"boost": _BOOST}
    return markdown


def on_page_content(page_html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """MkDocs asks: what is that text as HTML?"""
    return with_labelled_cells(with_whole_words(page_html))
