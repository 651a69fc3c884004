"""Delays before another try: exponential backoff with jitter, and the header Retry-After."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def check_seconds(what: str, value: object) -> None:
    """Raise ValueError unless these are seconds, before a queue orders its keys by them.

    A NaN is neither before nor after any time, so that the keys behind it would wait for ever.
    """
    if not isinstance(value, int | float) or not value >= 0:
        raise ValueError(f"{what} is {value!r}: it must be 0 seconds or more")


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays after failures: `first_s`·2ⁿ up to `longest_s`, of which chance takes away a part.

    Attributes:
        spread: the largest part of a delay that chance may take away, 0 to 1. Full jitter (1) would let a client that
            came first hammer a server that has just come back; half keeps the clients apart and still waits.
    """

    first_s: float
    longest_s: float
    spread: float = 0.5
    uniform: Callable[[float, float], float] = random.uniform

    def delay_s(self, failures: int) -> float:
        """Seconds to wait after that many failures in a row (1 or more)."""
        # 2.0**64 seconds is beyond any bound; the cap keeps the power from overflowing after days of failures.
        full_s = min(self.first_s * 2.0 ** min(failures - 1, 64), self.longest_s)
        return self.uniform(full_s * (1.0 - self.spread), full_s)


# A server that requests more than this is obeyed only up to it: an HTTP-date far ahead is a wrong clock, not a wish.
MAX_RETRY_AFTER_S = 300.0


def parse_retry_after(value: str | None, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> float | None:
    """Seconds that a Retry-After header requests, between 0 and `MAX_RETRY_AFTER_S`; None when it cannot be read.

    RFC 9110 allows whole seconds and an HTTP-date; proxies are seen to send fractions.
    """
    if not value:
        return None
    try:
        wait_s = float(value)
    except ValueError:
        try:
            when = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
        wait_s = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - now().timestamp()
    if wait_s != wait_s:  # NaN, the one number that min and max let through
        return None
    return min(max(wait_s, 0.0), MAX_RETRY_AFTER_S)
