"""Regular expressions in Go's words: of a schema's `pattern`, and of `matches` in CEL.

RE2 itself reads and matches them, of which Go's engine is a port: both take the same, mean the same by it, and need a
time that is linear in the text.

Differs from Kubernetes: 501 for whatever RE2 does not take, be it wrong or a name of a Unicode class that only Go has
(`\\p{Letter}`), and for `\\B` and `\\C`, in which the two part; characters that came with the last versions of Unicode
may be of another class.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Protocol, cast

import re2


class UnknownPattern(Exception):
    """Go may know the pattern, and the simulator does not; the message says what of it."""


class Pattern(Protocol):
    """A compiled pattern."""

    def search(self, text: str, /) -> object | None:
        """The first match in a text."""


# Quoted text, in which nothing is syntax, or an escaped character.
_ESCAPE: Final = re.compile(r"\\Q.*?(?:\\E|$)|\\(.)", re.DOTALL)


@lru_cache(maxsize=4096)
def compiled(text: str) -> Pattern:
    """A pattern, ready to be searched for. Raises UnknownPattern."""
    for escape in _ESCAPE.finditer(text):
        if escape[1] in ("B", "C"):
            raise UnknownPattern(f"the simulator does not know `{escape[0]}`")
    options = re2.Options()
    options.log_errors = False
    try:
        return cast(Pattern, re2.compile(text, options))
    except re2.error as error:
        raise UnknownPattern(f"the simulator's RE2 says: {error.args[0].decode(errors='replace')}") from error
