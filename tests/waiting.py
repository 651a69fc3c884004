"""Waiting for what other processes do: looking again and again, with a deadline and the last finding in the message."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Generous: a loaded machine starts Python in seconds. Tests end as soon as what they wait for is there.
DEADLINE_S = 60.0
_POLL_S = 0.05


def eventually(ask: Callable[[], T], wanted: Callable[[T], bool], *, deadline_s: float = DEADLINE_S) -> T:
    """The first answer that is wanted; fails with the last one when the deadline has passed."""
    ends = time.monotonic() + deadline_s
    while not wanted(answer := ask()):
        assert time.monotonic() < ends, answer
        time.sleep(_POLL_S)
    return answer


def await_none(look: Callable[[], object | None], *, deadline_s: float = DEADLINE_S) -> None:
    """Wait until there is nothing wrong; fails with what was wrong last."""
    eventually(look, lambda wrong: wrong is None, deadline_s=deadline_s)


def until(complaint: str, look: Callable[[], bool]) -> None:
    """Wait until it is so."""
    await_none(lambda: None if look() else complaint)
