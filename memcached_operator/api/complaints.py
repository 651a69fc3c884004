"""Complaints about a specification: how a wrong value is shown, and several of them as one message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

# Longer values of a user, and more complaints, are cut in messages: they end up in a log line, and in a condition, of
# which the API server takes 32768 characters.
_SHOWN_LENGTH: Final = 60
_SHOWN_AT_ONCE: Final = 10


class InvalidSpec(ValueError):
    """A specification that cannot be acted on; the message names each wrong field, what it holds, and the remedy."""


def shown(value: object) -> str:
    """A value of a specification as messages show it: as JSON, and cut."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return f"{text[:_SHOWN_LENGTH]}…" if len(text) > _SHOWN_LENGTH else text


def joined_complaints(complaints: Sequence[str]) -> str:
    """Complaints as one message; of many the first, and how many more there are."""
    more = len(complaints) - _SHOWN_AT_ONCE
    return "; ".join([*complaints[:_SHOWN_AT_ONCE], *([f"and {more} more"] if more > 0 else [])])
