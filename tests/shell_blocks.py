"""The shell blocks of a document: which commands a reader types, and what is said to come out.

A block of another language that has a title (```python title="shop.py") is a file, which its reader writes.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import yaml

_BLOCK = re.compile(
    r"(?:^[ ]*<!-- (?P<mark>[^>]*?)\s-->\n)?"
    r"^(?P<indent>[ ]*)```(?P<language>console|sh)\n(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r'^```\w+ title="(?P<path>[^"]+)"\n(?P<body>.*?)^```$', re.MULTILINE | re.DOTALL)
_YAML = re.compile(r"^(?P<indent>[ ]*)```yaml[^\n]*\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_HERE_DOCUMENT = re.compile(r"<<'?(?P<end>\w+)'?[^\n]*\n(?P<body>.*?\n)(?P=end)$", re.MULTILINE | re.DOTALL)
# What differs from run to run, with what stands for it on both sides.
_VARIABLE = [
    (re.compile(pattern), word)
    for pattern, word in (
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
        (r"-[0-9a-z]{5,10}-[0-9a-z]{5}(?![0-9a-z])", "-POD"),
        (r"-[0-9a-f]{8,10}\b", "-REPLICASET"),
        (r"(?<![\w.])\d+(?:s|m|h|d)(?:\d+[smh])?\b", "AGE"),
        (r'\b(resourceVersion|reconcile)([:=]) ?"?[\w-]+"?', r"\1\2VALUE"),
        (r"https://[\d.]+:\d+", "SERVER"),
        (r"[ \t]+", " "),
    )
]
# Stands for any number of lines where it is one, and for any words within one.
ELLIPSIS = "…"


class How(Enum):
    """What is to be done with a block."""

    RUN = auto()
    NOT_RUN = auto()
    NEEDS_NODE = auto()
    BACKGROUND = auto()
    OUTPUT_VARIES = auto()
    FAILS = auto()


_MARKS = {
    "needs a node": How.NEEDS_NODE,
    "in the background": How.BACKGROUND,
    "output varies": How.OUTPUT_VARIES,
    "fails": How.FAILS,
}


@dataclass(frozen=True, slots=True)
class Step:
    """One command, or all of a block of `sh`; `shown` is what must come out, None where nothing is said about it.

    Attributes:
        writes: it writes a file that the page shows.
    """

    line: int
    command: str
    shown: str | None
    how: How
    writes: bool = False


def steps(document: str) -> Iterator[Step]:
    """All of a document's, in their order.

    Raises:
        ValueError: a comment before a block is none that is known, or a block does not begin with a prompt.
    """
    blocks = sorted((*_BLOCK.finditer(document), *_FILE.finditer(document)), key=lambda block: block.start())
    for block in blocks:
        if block.re is _FILE:
            line = document.count("\n", 0, block.start("body")) + 1
            command = f"cat > {block['path']} <<'END OF FILE'\n{block['body']}END OF FILE\n"
            yield Step(line, command, None, How.RUN, writes=True)
            continue
        mark: str | None = block["mark"]
        line = document.count("\n", 0, block.start("body")) + 1
        if mark is not None and (unseen := mark.removeprefix("first: ")) != mark:
            yield Step(line, unseen, None, How.RUN)
            mark = None
        how = _how(mark)
        body = "".join(text.removeprefix(block["indent"]) for text in block["body"].splitlines(keepends=True))
        if block["language"] == "sh":
            yield Step(line, body, None, how)
            continue
        if not body.startswith("$ "):
            raise ValueError(f"line {line}: a block of console begins with a prompt, '$ '")
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            first, *rest = part.splitlines()
            words = [first]
            while rest and rest[0].startswith("> "):  # the shell's second prompt
                words.append(rest.pop(0).removeprefix("> "))
            yield Step(line, "\n".join(words), "\n".join(rest), how)


def manifests(document: str) -> Iterator[Mapping[str, Any]]:
    """The objects that a document shows, whole, in blocks of YAML and in what is typed for a command to read."""
    shown = [textwrap.dedent(block["body"]) for block in _YAML.finditer(document)]
    shown += [typed["body"] for step in steps(document) for typed in _HERE_DOCUMENT.finditer(step.command)]
    for text in shown:
        yield from (each for each in yaml.safe_load_all(text) if isinstance(each, dict) and "kind" in each)


def files(document: str) -> dict[str, str]:
    """What a document has its reader write, by path."""
    return {block["path"]: block["body"] for block in _FILE.finditer(document)}


def _how(mark: str | None) -> How:
    if mark is None:
        return How.RUN
    if re.match(r"not run: \w", mark):
        return How.NOT_RUN
    if mark not in _MARKS:
        raise ValueError(f"<!-- {mark} --> before a shell block means nothing")
    return _MARKS[mark]


def alike(text: str) -> str:
    """The text without what differs from run to run."""
    for pattern, word in _VARIABLE:
        text = pattern.sub(word, text)
    return "\n".join(line.strip() for line in text.strip().splitlines())


def fits(shown: str, came: str) -> bool:
    """Whether that came out which is shown."""
    # Whatever lines an ellipsis stands for end in newlines of their own; the text may also end with it.
    lines = [
        line if line == ELLIPSIS else re.escape(line).replace(ELLIPSIS, ".*") for line in alike(shown).splitlines()
    ]
    pattern = "".join(r"(?:.*\n)*" if line == ELLIPSIS else f"{line}\n" for line in lines)
    return re.fullmatch(pattern, f"{alike(came)}\n" if came.strip() else "") is not None
