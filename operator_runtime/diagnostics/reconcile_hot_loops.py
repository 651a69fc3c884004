"""Pure: detection of keys that are reconciled without end."""

from __future__ import annotations

from collections.abc import Hashable

from operator_runtime.diagnostics.report_pace import ReportPace

# So often within so long is worth a word: ten times a second for a minute, while a key that enqueues itself is
# reconciled some hundred times a second. Nothing that people or controllers do to one object comes near it.
LIMIT, WINDOW_S = 600, 60.0
# Keys that are counted at a time.
_COUNTED = 32


class HotLoopDetector:
    """Counts the keys that come often, in a table that does not grow with the number of keys.

    Most often, what the reconcile itself writes enqueues the key. The algorithm is that of Misra and Gries ("Finding
    repeated elements", 1982): where all counters are taken, each loses one. A key is counted too low by at most a 33rd
    of all reconciles, and never too high.
    """

    def __init__(self) -> None:
        self._counts: dict[Hashable, int] = {}
        self._began = float("-inf")
        self._reminder = ReportPace()

    def reconciled(self, key: Hashable, now: float) -> float | None:
        """Record a reconcile; return in how many seconds there were `LIMIT` of the key, if that is reported now."""
        counts = self._counts
        if now - self._began > WINDOW_S:
            counts.clear()
            self._began = now
        count = counts.get(key, 0) + 1
        if count == 1 and len(counts) >= _COUNTED:
            for each in tuple(counts):
                if counts[each] == 1:
                    del counts[each]
                else:
                    counts[each] -= 1
            return None
        counts[key] = count
        if count < LIMIT:
            return None
        took_s, self._began = now - self._began, now
        counts.clear()
        return took_s if self._reminder.due(now) else None
