"""A hook of MkDocs: the site also has the files outside docs/ that its pages link to.

The same Markdown is read in two places. In the repository `../README.md` is a link that works; a site that is made
from docs/ has no such file. So each file of the repository that a page links to becomes part of the site, below
`repository/`: Markdown as a page, whose links are followed in turn, anything else as it is. A link to a folder, which
a site cannot show, stays as text.

Two more things that a reader of the repository has and a site has not are seen to here: diagrams are shown as the text
that they are written in, as what draws them would be loaded from elsewhere, and a page that loads anything from
elsewhere is warned of, which ends a strict build.
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

DOCS = "docs"
REPOSITORY = "repository"  # the part of the site for what lies outside docs/

# Warnings of loggers below "mkdocs" count for `--strict`.
log = logging.getLogger("mkdocs.hooks.repository")

# Fenced blocks, and code within a line: what looks like a link there is none.
_CODE = re.compile(
    r"^(?P<fence>```+|~~~+).*?^(?P=fence)[ \t]*$|(?<!`)(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s]+)\)")
_DIAGRAM = re.compile(r"^```mermaid\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
# What a browser loads by itself; a link that a reader follows is not meant.
_LOADED = re.compile(
    r"""<(?:script|img|iframe|source|link(?![^>]*\brel=["']?canonical))\b[^>]*?\b(?:src|href)=["']?(?P<url>(?:https?:)?//[^"'\s>]+)"""
)


def site_path(path: str) -> str:
    """Where the site has that file of the repository."""
    return posixpath.relpath(path, DOCS) if path.startswith(f"{DOCS}/") else f"{REPOSITORY}/{path}"


def repository_path(uri: str) -> str:
    """Of which file of the repository that page of the site is made; the inverse of `site_path`."""
    return uri.removeprefix(f"{REPOSITORY}/") if uri.startswith(f"{REPOSITORY}/") else f"{DOCS}/{uri}"


def links(markdown: str) -> Iterator[re.Match[str]]:
    """Each link that is none to elsewhere, in its order."""
    code = [match.span() for match in _CODE.finditer(markdown)]
    for match in _LINK.finditer(markdown):
        # The text of a link may be code, a link may not be in code.
        inside = any(begin < match.start("target") < end for begin, end in code)
        if not inside and not re.match(r"[a-z]+:", match["target"]):
            yield match


def aim(source: str, target: str) -> tuple[str, str]:
    """The file that a link in that file means, both from the repository's root, and the anchor with its "#"."""
    path, hash_, anchor = target.partition("#")
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path)) if path else source, hash_ + anchor


def with_links_of_the_site(markdown: str, source: str, root: Path) -> str:
    """The text of a file of the repository, whose root is given, with its links as the site needs them."""
    changed, end = [], 0
    here = posixpath.dirname(site_path(source))
    for match in links(markdown):
        path, anchor = aim(source, match["target"])
        if path == source:
            continue
        if (root / path).is_dir():
            replacement = match["text"]
        else:
            replacement = (
                f"{match['image']}[{match['text']}]({posixpath.relpath(site_path(path), here or '.')}{anchor})"
            )
        changed += [markdown[end : match.start()], replacement]
        end = match.end()
    return "".join([*changed, markdown[end:]])


def with_diagrams_as_text(markdown: str) -> str:
    """The same with each diagram folded up, as text."""

    def folded(match: re.Match[str]) -> str:
        lines = ["```text", *match["body"].splitlines(), "```"]
        return "\n".join(['??? note "The diagram, as text"', "", *(f"    {line}" for line in lines)])

    return _DIAGRAM.sub(folded, markdown)


def linked(pages: Iterator[str], root: Path) -> list[str]:
    """The files outside docs/ that those files lead to, directly or by Markdown that is outside itself."""
    found: dict[str, None] = {}
    waiting = list(pages)
    while waiting:
        source = waiting.pop()
        for match in links((root / source).read_text()):
            path, _ = aim(source, match["target"])
            if path.startswith(f"{DOCS}/") or path in found or not (root / path).is_file():
                continue
            found[path] = None
            if path.endswith(".md"):
                waiting.append(path)
    return sorted(found)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """MkDocs asks: what belongs to the site?"""
    root = Path(config.docs_dir).parent
    for path in linked((repository_path(file.src_uri) for file in files.documentation_pages()), root):
        # Not asked for in the navigation, though it may be there.
        generated = File.generated(
            config, site_path(path), abs_src_path=str(root / path), inclusion=InclusionLevel.NOT_IN_NAV
        )
        files.append(generated)
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """MkDocs asks: what is this page's text?"""
    source = repository_path(page.file.src_uri)
    return with_diagrams_as_text(with_links_of_the_site(markdown, source, Path(config.docs_dir).parent))


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    """MkDocs shows a page as it will be written."""
    for match in _LOADED.finditer(output):
        log.warning("%s loads %s from elsewhere", page.file.src_uri, match["url"])
    return output
