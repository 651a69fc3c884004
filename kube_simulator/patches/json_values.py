"""Values of JSON: whether two are the same, and how Go prints one in the API server's messages."""

from __future__ import annotations

from typing import Any


def same(one: Any, other: Any) -> bool:
    """Equality of JSON values: 1 is 1.0, and, unlike in Python, true is not 1."""
    if one is other:
        return True
    if one != other:
        return False
    if isinstance(one, dict):
        if not isinstance(other, dict) or len(one) != len(other):
            return False
        return all(key in other and same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return (
            isinstance(other, list)
            and len(one) == len(other)
            and all(same(mine, theirs) for mine, theirs in zip(one, other, strict=True))
        )
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def printed(value: Any) -> str:
    """Format as Go's `%v` prints it: `map[a:1 b:[x]]`."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case dict():
            return f"map[{' '.join(f'{key}:{printed(value[key])}' for key in sorted(value))}]"
        case list():
            return f"[{' '.join(map(printed, value))}]"
    return str(value)
