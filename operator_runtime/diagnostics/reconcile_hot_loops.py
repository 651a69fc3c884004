"""Pure: detection of keys that are reconciled without end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from operator_runtime.diagnostics.report_pace import ReportPace

# So often within so long is worth a word: ten times a second for a minute, while a key that enqueues itself is
# reconciled some hundred times a second. Nothing that people or controllers do to one object comes near it.
LIMIT, WINDOW_S = 600, 60.0


class HotLoopDetector:
    """Counts how often each key comes within a window. Most often, what the reconcile itself writes enqueues it."""

    def __init__(self) -> None:
        self._counts: Counter[Hashable] = Counter()
        self._began = float("-inf")
        self._reminder = ReportPace()

    def reconciled(self, key: Hashable, now: float) -> float | None:
        """Record a reconcile; return in how many seconds there were `LIMIT` of the key, if that is reported now."""
        if now - self._began > WINDOW_S:
            self._counts.clear()
            self._began = now
        self._counts[key] += 1
        if self._counts[key] < LIMIT:
            return None
        took_s, self._began = now - self._began, now
        self._counts.clear()
        return took_s if self._reminder.due(now) else None
