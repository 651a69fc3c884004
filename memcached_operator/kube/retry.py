"""When to try again: exponential backoff with jitter, and what Retry-After says."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


@dataclass(slots=True)
class Backoff:
    """Delays that double from `base_s` to `cap_s`, each drawn between half of its value and the whole of it.

    Full jitter (from zero) would let a client that came first hammer a server that has just come back; half keeps the
    clients apart and still waits.

    Attributes:
        base_s: the first delay in seconds.
        cap_s: no delay is longer than this.
        uniform: draws between two numbers; passed in so that tests decide.
    """

    base_s: float
    cap_s: float
    uniform: Callable[[float, float], float] = random.uniform
    attempts: int = field(default=0, init=False)

    def next_s(self) -> float:
        """The delay before the next try; each call counts as one failure."""
        # Above 2**30 the cap has long won; the bound keeps the power from becoming a giant integer.
        ceiling_s = min(self.cap_s, self.base_s * 2 ** min(self.attempts, 30))
        self.attempts += 1
        return self.uniform(ceiling_s / 2, ceiling_s)

    def reset(self) -> None:
        """Begin again with `base_s`."""
        self.attempts = 0


# A server that asks for more than this is obeyed only up to it: an HTTP-date far ahead is a wrong clock, not a wish.
MAX_RETRY_AFTER_S = 300.0


def parse_retry_after(value: str | None, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> float | None:
    """Seconds that a Retry-After header asks for, between 0 and `MAX_RETRY_AFTER_S`; None when it cannot be read.

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
