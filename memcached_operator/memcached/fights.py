"""Pure: who fights with somebody over a field, and how rarely it is looked at then.

Putting a field right at once is what drift asks for. When another client rewrites it in a loop, that would be a write
for each of its writes, for ever. So a field that had to be put right `REPAIRS` times within `WINDOW_S` is contested,
and its Memcached is looked at once in `LOOK_S` only, until nobody has touched such a field for `QUIET_S`.

A look at a contested Memcached makes one write at most: a repair of the Deployment or one of the status, and never a
repair in two looks running, so that neither keeps the other waiting for ever. What the user asks for, which is seen by
a new `metadata.generation`, is not held back at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from operator_runtime.cache.store import ObjectKey

# A person who tries to edit a field gives up before; a loop is here within a second.
REPAIRS = 5
WINDOW_S = 60.0
# At most one write a second on a contested key.
LOOK_S = 1.0
QUIET_S = 60.0
# A fight that goes on is said again after a minute, then after twice as long each time, up to an hour: as a failure is.
FIRST_REMINDER_S = 60.0
LONGEST_REMINDER_S = 3600.0
# Histories that are kept before old ones are looked for.
_SWEEP_AT = 64


@dataclass(slots=True)
class _History:
    """The repairs of one Memcached.

    Attributes:
        generation: of the Memcached at the last repair.
        looked_generation: at the last look; another one is looked at at once.
        free: the last look was not damped, because of what the user asked for.
        repaired: when each field was last put right, `REPAIRS` times at most.
        repaired_s: when any was.
        contested: the contested fields, by when they became it.
        looked_s: when it was last looked at, since it is contested.
        held: the last look was not allowed to repair.
        wrote: the last look put something right.
        repairs: how many there were since it is contested.
    """

    generation: int
    repaired_s: float
    repaired: dict[str, list[float]] = field(default_factory=dict)
    contested: list[str] = field(default_factory=list)
    looked_s: float = 0.0
    looked_generation: int = 0
    free: bool = False
    held: bool = False
    wrote: bool = False
    repairs: int = 0
    remind_s: float = 0.0
    reminder_s: float = FIRST_REMINDER_S


class Fights:
    """Remembers the repairs of the last minute and the fights that go on; nothing of a Memcached that is left alone."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            clock: monotonic seconds.
        """
        self._clock = clock
        self._histories: dict[ObjectKey, _History] = {}
        self._sweep_at = _SWEEP_AT

    def __len__(self) -> int:
        """Memcacheds that are contested."""
        return sum(1 for history in self._histories.values() if history.contested)

    def contested(self, key: ObjectKey) -> tuple[str, ...]:
        """The contested fields, in the order in which they became it."""
        history = self._histories.get(key)
        return () if history is None else tuple(history.contested)

    def wait_s(self, key: ObjectKey, generation: int) -> float:
        """Seconds until the next look at a Memcached of that generation; 0.0 when it may be now."""
        history = self._histories.get(key)
        if history is None or not history.contested or history.looked_generation != generation:
            return 0.0
        return max(0.0, history.looked_s + LOOK_S - self._clock())

    def look(self, key: ObjectKey, generation: int) -> bool:
        """A look begins, as `wait_s` is 0.0: whether it may put the Deployment right."""
        history = self._histories.get(key)
        if history is None or not history.contested:
            return True
        history.looked_s = self._clock()
        history.free = history.looked_generation != generation
        if history.free:
            history.looked_generation = generation
            history.held = history.wrote = False
            return True
        history.held, history.wrote = history.wrote, False
        return not history.held

    def damped(self, key: ObjectKey) -> bool:
        """Whether this look is one of the rare ones at a contested Memcached: one write, and no words about it."""
        history = self._histories.get(key)
        return history is not None and bool(history.contested) and not history.free

    def wrote(self, key: ObjectKey) -> bool:
        """Whether something was put right in this look and nothing more may be written in it."""
        return self.damped(key) and self._histories[key].wrote

    def would_begin(self, key: ObjectKey, fields: Iterable[str]) -> tuple[str, ...]:
        """Which of these fields one more repair would make contested."""
        history = self._histories.get(key)
        if history is None:
            return ()
        since = self._clock() - WINDOW_S
        return tuple(
            each
            for each in fields
            if each not in history.contested and sum(at > since for at in history.repaired.get(each, ())) == REPAIRS - 1
        )

    def repaired(self, key: ObjectKey, generation: int, fields: Iterable[str], *, asked: bool) -> bool:
        """These fields were put right; whether it is time to say again that there is a fight.

        Args:
            key: the Memcached's.
            generation: its `metadata.generation`.
            fields: as `drift.Difference.path` names them.
            asked: by what is known, the user asked for this change. Believed once for each generation.
        """
        now = self._clock()
        history = self._histories.get(key)
        if history is None:
            self._sweep(now)
            history = self._histories[key] = _History(generation, now)
        elif asked and history.generation == generation:
            asked = False
        history.generation = generation
        history.repaired_s = now
        history.wrote = True
        if asked:
            return False
        history.repairs += bool(history.contested)
        for each in fields:
            times = history.repaired.setdefault(each, [])
            times.append(now)
            del times[:-REPAIRS]
            if each not in history.contested and len(times) == REPAIRS and times[0] > now - WINDOW_S:
                if not history.contested:
                    history.looked_s, history.looked_generation = now, generation
                    history.remind_s = now + FIRST_REMINDER_S
                history.contested.append(each)
        if not history.contested or now < history.remind_s:
            return False
        history.reminder_s = min(2 * history.reminder_s, LONGEST_REMINDER_S)
        history.remind_s = now + history.reminder_s
        return True

    def repairs(self, key: ObjectKey) -> int:
        """How often something was put right since the Memcached is contested."""
        history = self._histories.get(key)
        return 0 if history is None else history.repairs

    def over(self, key: ObjectKey) -> tuple[str, ...]:
        """The fields that were contested, if that is over; it is forgotten then."""
        history = self._histories.get(key)
        if history is None or not history.contested or self._clock() < history.repaired_s + QUIET_S:
            return ()
        del self._histories[key]
        return tuple(history.contested)

    def next_look_s(self, key: ObjectKey) -> float | None:
        """Seconds after which to look again at the latest; None when it is not contested."""
        history = self._histories.get(key)
        if history is None or not history.contested:
            return None
        if history.held or history.wrote:
            return LOOK_S
        return max(LOOK_S, history.repaired_s + QUIET_S - self._clock())

    def forget(self, key: ObjectKey) -> None:
        """The Memcached is gone."""
        self._histories.pop(key, None)

    def _sweep(self, now: float) -> None:
        """Forget what happened once and not again. Fights end by `over`."""
        if len(self._histories) < self._sweep_at:
            return
        self._histories = {
            key: history
            for key, history in self._histories.items()
            if history.contested or history.repaired_s > now - WINDOW_S
        }
        self._sweep_at = max(_SWEEP_AT, 2 * len(self._histories))
