"""Numbers and quotations as Go reads and writes them: in the API server's words both are Go's."""

from __future__ import annotations

import json
import re

# 64 bits have at most 20 digits.
_INTEGER = re.compile("[+-]?[0-9]{1,20}")
_INT64 = range(-(2**63), 2**63)


def int64(text: str) -> int:
    """A decimal integer of 64 bits. Raises ValueError with the words of Go's `strconv`."""
    number = int64_or_none(text)
    if number is None:
        raise ValueError(f"strconv.ParseInt: parsing {quoted(text)}: invalid syntax")
    return number


def uint64(text: str) -> int:
    """The same without a sign."""
    number = int64_or_none(text) if text.isdecimal() else None
    if number is None:
        raise ValueError(f"strconv.ParseUint: parsing {quoted(text)}: invalid syntax")
    return number


def int64_or_none(text: str) -> int | None:
    """A decimal integer of 64 bits, or None."""
    number = int(text) if _INTEGER.fullmatch(text) else 2**63
    return number if number in _INT64 else None


def quoted(text: str) -> str:
    """Quote a text, with escapes for what cannot be printed."""
    return json.dumps(text, ensure_ascii=False)
