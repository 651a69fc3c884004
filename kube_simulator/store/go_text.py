"""Numbers and quotations as Go reads and writes them: in the API server's words both are Go's."""

from __future__ import annotations

import re

_INTEGER = re.compile("[+-]?[0-9]+")
_UNSIGNED = re.compile("[0-9]+")
_INT64 = range(-(2**63), 2**63)
_UINT64 = range(2**64)
_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def int64(text: str) -> int:
    """A decimal integer of 64 bits. Raises ValueError with the words of Go's `strconv`."""
    return _read(text, _INTEGER, _INT64, "ParseInt")


def uint64(text: str) -> int:
    """A decimal integer of 64 bits without a sign. Raises ValueError with the words of Go's `strconv`."""
    return _read(text, _UNSIGNED, _UINT64, "ParseUint")


def int64_or_none(text: str) -> int | None:
    """A decimal integer of 64 bits, or None."""
    try:
        return int64(text)
    except ValueError:
        return None


def quoted(text: str) -> str:
    """In double quotes, with escapes for what cannot be printed."""
    return f'"{"".join(map(_escaped, text))}"'


def _read(text: str, form: re.Pattern[str], numbers: range, function: str) -> int:
    if not form.fullmatch(text):
        raise ValueError(f"strconv.{function}: parsing {quoted(text)}: invalid syntax")
    digits = text.lstrip("+-").lstrip("0") or "0"
    # Python itself refuses thousands of digits; 64 bits have at most 20.
    number = int(digits[:21]) * (-1 if text.startswith("-") else 1)
    if number not in numbers:
        raise ValueError(f"strconv.{function}: parsing {quoted(text)}: value out of range")
    return number


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
