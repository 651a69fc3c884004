"""Pace of the reports on something that goes on: at once, and again after a growing pause."""

from __future__ import annotations

# After a minute, then after twice as long each time, up to an hour: enough to be found in any log that is rotated
# daily, too little to drown the rest.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 60.0, 3600.0


class ReportPace:
    """Pure: pace of the reports on one thing that goes wrong, each time that it does. Make a new one when it is over.

    A pause begins with `first_s` and doubles up to `LONGEST_PAUSE_S`. A thing that did not happen for so long is
    reported as at first.
    """

    __slots__ = ("_first_s", "_last", "_pause_s", "_quiet_until")

    def __init__(self, first_s: float = FIRST_PAUSE_S) -> None:
        self._first_s = self._pause_s = first_s
        self._quiet_until = self._last = float("-inf")

    def due(self, now: float) -> bool:
        """Record that it happens, and report whether to log it now. If so, the next pause begins."""
        if now - self._last > LONGEST_PAUSE_S:
            self._pause_s = self._first_s
        self._last = now
        if now < self._quiet_until:
            return False
        self._quiet_until = now + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        return True
