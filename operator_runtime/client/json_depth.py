"""JSON that is nested deeper than a decoder goes: cut it where no object of use has anything.

The API server takes 10,000 levels, a decoder on Python's stack some 900, and less the deeper it is called. One object
that has more, of a kind whose schema lets it in, must not stop the watch of all the others. So where a decoder gives up
it is given the same text with `null` for whatever lies deeper than `LEVELS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Objects of Kubernetes have some twenty levels; a CustomResourceDefinition's schema may have sixty.
LEVELS = 100
# Strings whole, as brackets in them mean nothing, and brackets.
_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def shallow(body: bytes, levels: int = LEVELS) -> bytes:
    """The same JSON without what lies deeper than `levels`; text that is no JSON stays as it is."""
    kept: list[bytes] = []
    depth = kept_to = 0
    for token in _TOKENS.finditer(body):
        match token[0]:
            case b"{" | b"[":
                depth += 1
                if depth == levels + 1:
                    kept += [body[kept_to : token.start()], b"null"]
            case b"}" | b"]":
                depth -= 1
                if depth == levels:
                    kept_to = token.end()
    if not kept or depth > levels:
        return body
    return b"".join([*kept, body[kept_to:]])


def decode_nested(decode: Callable[[bytes], T], body: bytes) -> T:
    """Decode the body, cut where it is nested too deeply; other errors are the decoder's."""
    try:
        return decode(body)
    except RecursionError:
        return decode(shallow(body))
