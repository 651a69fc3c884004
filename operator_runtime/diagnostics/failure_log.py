"""Log of keys whose reconciles fail."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from operator_runtime.client.errors import Conflict, KubeError, Unreachable
from operator_runtime.diagnostics.report_pace import ReportPace

log = logging.getLogger(__name__)


class TerminalError(Exception):
    """Failure that no retry mends until the object changes; the message has what has to change."""


class ReconcileTimeout(Exception):
    """A reconcile took longer than `reconcile_timeout_s`."""


# That the server cannot be reached is reported once for each watch; a line per key would bury it. A key that still
# meets it after this long is worth one: by then the watches are back, or someone is looking for what is affected.
_UNREACHABLE_QUIET_S = 60.0
# Watches may live on while calls are not answered: an etcd that hangs, a load balancer that sends them elsewhere. So
# one key speaks for all, when it has met this for longer than an API server takes to restart.
_UNREACHABLE_WORDS_S = 5.0

# Failures that differ in numbers alone (resourceVersions, ports, counts) are the same failure.
_DIGITS = re.compile(r"\d+")


@dataclass(slots=True)
class _Streak:
    """One key that fails: since when, how often, and what was last logged about it above DEBUG."""

    began: float
    attempts: int = 0
    conflicts: int = 0
    reported: str | None = None
    reminder: ReportPace = field(default_factory=ReportPace)


class FailureLog:
    """Log of failing keys: a line when it begins, when the reason changes, at growing intervals, and when it is over.

    An error of the API or a `TerminalError` is one line; whatever else is a bug and brings its traceback. A single
    Conflict is not worth more than DEBUG: someone else wrote first, and the next attempt sees what. Neither is a server
    that was out of reach for less than a minute, but for one key (`_speaker`) that speaks for all. The lines are
    written inside the reconcile, whose controller and key the log adds to them. Only keys that fail are held.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._streaks: dict[Hashable, _Streak] = {}
        self._speaker: Hashable = None

    def failed(self, key: Hashable, error: BaseException, retry_in_s: float | None) -> None:
        """An attempt failed; the next one comes after `retry_in_s` seconds, or, if None, when the object changes."""
        now = self._clock()
        streak = self._streaks.get(key)
        if streak is None:
            streak = self._streaks[key] = _Streak(began=now)
        streak.attempts += 1
        when = "when the object changes" if retry_in_s is None else f"in {retry_in_s:.3g} s"
        if self._is_minor(key, error, streak, now):
            log.debug("attempt %d failed, next one %s: %s", streak.attempts, when, error)
            return
        identity = _DIGITS.sub("#", f"{type(error).__name__} {error}")
        new = identity != streak.reported
        if new:
            streak.reported, streak.reminder = identity, ReportPace()
        if not streak.reminder.due(now):
            return
        expected = isinstance(error, KubeError | TerminalError | ReconcileTimeout)
        log.log(
            logging.WARNING if expected else logging.ERROR,
            "attempt %d failed, next one %s: %s",
            streak.attempts,
            when,
            error if expected else f"{type(error).__name__}: {error}",
            exc_info=None if expected or not new else error,
        )

    def worked(self, key: Hashable) -> None:
        if not self._streaks:
            return
        streak = self._streaks.pop(key, None)
        if key == self._speaker:
            self._speaker = None
        if streak is not None:
            log.log(
                logging.DEBUG if streak.reported is None else logging.INFO,
                "recovered after %d failed attempts in %.3g s",
                streak.attempts,
                self._clock() - streak.began,
            )

    def _is_minor(self, key: Hashable, error: BaseException, streak: _Streak, now: float) -> bool:
        if isinstance(error, Conflict):
            streak.conflicts += 1
            return streak.conflicts == 1
        if not isinstance(error, Unreachable):
            return False
        if self._speaker is None and now >= streak.began + _UNREACHABLE_WORDS_S:
            self._speaker = key
        return key != self._speaker and now < streak.began + _UNREACHABLE_QUIET_S
