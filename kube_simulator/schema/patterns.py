"""Regular expressions in Go's words: of a schema's `pattern`, and of `matches`, `find` and `findAll` in CEL.

RE2 itself reads and matches them, of which Go's engine is a port: both take the same, mean the same by it, and need a
time that is linear in the text. Where the two part is settled here, or told as `UnknownPattern`, so that nothing is
taken or refused that Kubernetes answers otherwise.

Differs from Kubernetes: 501 for names of Unicode classes that RE2 does not have (`\\p{Letter}`), for a pattern that it
finds too large, for more than 500 groups, for names of groups that are not ASCII, and for `\\B`, which RE2 finds within
characters too; characters that came with the last versions of Unicode may be of another class.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Protocol, cast

import re2


class InvalidPattern(ValueError):
    """The pattern is none; the message is Go's: ``error parsing regexp: missing closing ]: `[a` ``."""


class UnknownPattern(Exception):
    """Go may know the pattern, and the simulator does not; the message says what of it."""


class Pattern(Protocol):
    """A compiled pattern."""

    def search(self, text: str, /) -> Match | None:
        """The first match in a text."""


class Match(Protocol):
    """Where a pattern was found."""

    def start(self) -> int: ...
    def end(self) -> int: ...
    def group(self) -> str: ...


# What RE2 says of a pattern that is none, and what Go's regexp/syntax says of the same.
_GO_WORDS: Final = {
    "invalid escape sequence": "invalid escape sequence",
    "invalid character class": "invalid character class",
    "invalid character class range": "invalid character class range",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
# Quoted text, an escaped character, a class: what looks like syntax in them is none.
_CLASS: Final = r"\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]"
_NO_SYNTAX: Final = re.compile(rf"\\Q.*?(?:\\E|$)|\\p\{{[^}}]*\}}|\\.|{_CLASS}", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\Q.*?(?:\\E|$)|\\(.)", re.DOTALL)
_NEITHER: Final = r"\i"  # an escape that is none in both
_NAMED: Final = re.compile(r"\(\?P?<([^>]*)>")
# From 100 million on Go reads a count as too large, and RE2 the braces as plain text.
_HUGE_COUNT: Final = re.compile(r"\{(?:\d+,)?\d{9,}(?:,\d*)?\}")
# Go counts each group and each repetition, 1,000 in all.
_MOST_GROUPS: Final = 500


@lru_cache(maxsize=4096)
def compiled(text: str) -> Pattern:
    """A pattern, ready to be searched for.

    Raises:
        InvalidPattern: Go knows it for none.
        UnknownPattern: Go may take it.
    """
    plain = _NO_SYNTAX.sub(lambda found: " " * len(found[0]), text)
    escapes = {found[1] for found in _ESCAPE.finditer(text)}
    if "B" in escapes:
        raise UnknownPattern(r"the simulator does not know `\B`")
    if plain.count("(") > _MOST_GROUPS:
        raise UnknownPattern(f"the simulator takes at most {_MOST_GROUPS} groups in a pattern")
    if any(not name.isascii() for name in _NAMED.findall(plain)) or _HUGE_COUNT.search(plain):
        raise UnknownPattern("the simulator does not know this name of a group, or this count")
    options = re2.Options()
    options.log_errors = False
    try:
        return cast(Pattern, re2.compile(_without_bytes(text), options))
    except re2.error as error:
        said, _, part = error.args[0].decode(errors="replace").partition(": ")
        words = _GO_WORDS.get(said)
        if words is None or part.startswith((r"\p{", r"\P{")):
            raise UnknownPattern(f"the simulator's RE2 says: {said} {part}".rstrip()) from error
        if part in ("(?<=", "(?<!"):  # to Go, what looks behind is a name that is none
            named = max(plain.find(part), text.find(part))
            words, part = "invalid named capture", text[named : text.find(">", named) + 1 or None]
        part = part.replace(_NEITHER, r"\C")
        raise InvalidPattern(f"error parsing regexp: {words}: `{part}`") from error


def _without_bytes(text: str) -> str:
    """The pattern with an escape that is none in the place of `\\C`, one byte, which RE2 knows and Go does not."""
    return _ESCAPE.sub(lambda found: _NEITHER if found[1] == "C" else found[0], text)


def find_all(pattern: Pattern, text: str) -> list[str]:
    """All matches that do not overlap. An empty one right behind another is none, as in Go."""
    found, end = [], -1
    for match in cast("re2._Regexp", pattern).finditer(text):
        if match.start() != match.end() or match.start() != end:
            found.append(match.group())
        end = match.end()
    return found
