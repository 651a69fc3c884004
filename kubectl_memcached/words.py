"""Text for people: tables, amounts, keys of others that a terminal can show, and progress."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Any, Final, NamedTuple

_HASHED_DIGITS: Final = 12
_NUMBERS: Final = ["B", "KiB", "MiB", "GiB", "TiB"]
_WITHOUT: Final = "-"


class PluginError(Exception):
    """Failure that the user is told. Its message names the remedy where there is one."""


class CommandOutput(NamedTuple):
    """Result of a command.

    Attributes:
        text: for people.
        document: the same for programs.
        complete: all servers answered.
    """

    text: str
    document: Mapping[str, Any]
    complete: bool = True

    def with_failures(self, failures: Mapping[str, str]) -> CommandOutput:
        """The same with why servers did not answer, by their names."""
        text = self.text + "".join(f"{plain_text(each)}\n" for each in failures.values())
        return CommandOutput(text, {**self.document, "failures": failures}, not failures)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as kubectl prints them."""
    lines = [headings, *([plain_text(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    return "".join(
        "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n"
        for line in lines
    )


def size_text(size: float) -> str:
    """A number of bytes, such as 1.5 MiB."""
    if isnan(size):
        return _WITHOUT
    unit = 0
    while size >= 1024 and unit < len(_NUMBERS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f} B" if unit == 0 else f"{size:.1f} {_NUMBERS[unit]}"


def count_text(count: float) -> str:
    """A whole number with its thousands parted."""
    return _WITHOUT if isnan(count) else f"{count:,.0f}"


def share_text(part: float, whole: float) -> str:
    """A share in percent, "-" of nothing."""
    return f"{100 * part / whole:.1f} %" if whole > 0 else _WITHOUT


def seconds_text(seconds: float) -> str:
    """A time in its two largest units, such as 3d4h."""
    if isnan(seconds):
        return _WITHOUT
    left, parts = int(max(seconds, 0)), []
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        if left >= length:
            parts.append(f"{left // length}{unit}")
            left %= length
    return "".join(parts[:2]) or "0s"


def printable_text(content: bytes) -> str:
    """Stored bytes as text, without what a terminal would obey."""
    return plain_text(content.decode(errors="backslashreplace"))


def plain_text(text: str) -> str:
    """Somebody's text in one line, without what a terminal would obey."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def key_text(key: bytes, *, hashed: bool) -> str:
    """A key, or the first digits of its SHA-256."""
    return hashlib.sha256(key).hexdigest()[:_HASHED_DIGITS] if hashed else printable_text(key)


def show_progress(text: str) -> None:
    """Show how far a long work is, on a terminal alone; "" removes the line."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
