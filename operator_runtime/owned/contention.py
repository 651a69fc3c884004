"""Pure: which fields another manager writes against us in a loop, and how rarely their owner is looked at then.

Putting a field right at once is what drift asks for. When another manager rewrites it in a loop, that would be a write
for each of its writes, for ever. So a field that had to be put right `REPAIRS` times within `WINDOW_S` is contested,
and its owner is looked at once in `LOOK_S` only, until nobody has touched such a field for `QUIET_S`.

A look at a contested owner makes one write at most: a repair of an owned object or one of the owner's status, and never
a repair of the former in two looks running, so that neither keeps the other waiting for ever. What the user asks for,
which is seen by a new `metadata.generation`, is not held back at all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from operator_runtime.cache.store import ObjectKey
from operator_runtime.diagnostics.reminder import Reminder
from operator_runtime.owned.memory import Memory

F = TypeVar("F", bound=Hashable)

# A person who tries to edit a field gives up before; a loop is here within a second.
REPAIRS = 5
WINDOW_S = 60.0
# At most one write a second on a contested key.
LOOK_S = 1.0
QUIET_S = 60.0
# Histories that are kept before old ones are looked for.
_SWEEP_AT = 64


@dataclass(slots=True)
class _History(Generic[F]):
    """The repairs for one owner.

    Attributes:
        wishes: by object, of which generation of the owner, and to what, it was last put right.
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

    wishes: dict[Hashable, tuple[int, Hashable]] = field(default_factory=dict)
    repaired_s: float = 0.0
    repaired: dict[F, list[float]] = field(default_factory=dict)
    contested: list[F] = field(default_factory=list)
    looked_s: float = 0.0
    looked_generation: int = 0
    free: bool = False
    held: bool = False
    wrote: bool = False
    repairs: int = 0
    reminder: Reminder = field(default_factory=Reminder)


class FieldContention(Generic[F]):
    """Remembers the repairs of the last minute and what is contested; nothing of an owner that is left alone."""

    def __init__(self, memory: Memory, clock: Callable[[], float]) -> None:
        """
        Args:
            memory: of the owners' controller.
            clock: monotonic seconds.
        """
        self._clock = clock
        self._histories = memory.slot(_History[F])
        self._begun, self._sweep_at = 0, _SWEEP_AT

    def __len__(self) -> int:
        """Owners of which something is contested."""
        return sum(1 for _, history in self._histories.items() if history.contested)

    def contested(self, key: ObjectKey) -> tuple[F, ...]:
        """The contested fields, in the order in which they became it."""
        history = self._histories.find(key)
        return () if history is None else tuple(history.contested)

    def wait_s(self, key: ObjectKey, generation: int) -> float:
        """Seconds until the next look at an owner of that generation; 0.0 when it may be now."""
        history = self._histories.find(key)
        if history is None or not history.contested or history.looked_generation != generation:
            return 0.0
        return max(0.0, history.looked_s + LOOK_S - self._clock())

    def allowed(self, key: ObjectKey) -> bool:
        """Whether this look may put owned objects right, as the one before did not."""
        history = self._histories.find(key)
        return history is None or not (history.contested and history.held)

    def look(self, key: ObjectKey, generation: int) -> bool:
        """A look begins, as `wait_s` is 0.0: whether it may put owned objects right."""
        history = self._histories.find(key)
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
        """Whether this look is one of the rare ones at a contested owner: one write, and no words about it."""
        history = self._histories.find(key)
        return history is not None and bool(history.contested) and not history.free

    def wrote(self, key: ObjectKey) -> bool:
        """Whether something was put right in this look and nothing more may be written in it."""
        return self.damped(key) and self._histories.of(key).wrote

    def would_begin(self, key: ObjectKey, fields: Iterable[F]) -> tuple[F, ...]:
        """Which of these fields one more repair would make contested."""
        history = self._histories.find(key)
        if history is None:
            return ()
        since = self._clock() - WINDOW_S
        return tuple(
            each
            for each in fields
            if each not in history.contested and sum(at > since for at in history.repaired.get(each, ())) == REPAIRS - 1
        )

    def repaired(
        self,
        key: ObjectKey,
        generation: int,
        fields: Iterable[F],
        *,
        asked: bool,
        of: Hashable = None,
        wish: Hashable = None,
    ) -> bool:
        """These fields were put right; whether it is time to say again that they are contested.

        Args:
            key: the owner's.
            generation: its `metadata.generation`.
            fields: of one object.
            asked: by what is known, this is what is wanted since just now. Believed once for each generation and wish.
            of: the object.
            wish: what is wanted of it, or a digest.
        """
        now = self._clock()
        history = self._histories.find(key)
        if history is None:
            self._sweep(now)
            history = self._histories.of(key)
        elif history.wishes.get(of) == (generation, wish):
            asked = False
        history.wishes[of] = (generation, wish)
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
                    history.reminder.due(now)  # it is said as it begins
                history.contested.append(each)
        return bool(history.contested) and history.reminder.due(now)

    def repairs(self, key: ObjectKey) -> int:
        """How often something was put right since the owner is contested."""
        history = self._histories.find(key)
        return 0 if history is None else history.repairs

    def over(self, key: ObjectKey) -> tuple[F, ...]:
        """The fields that were contested, if that is over; it is forgotten then."""
        history = self._histories.find(key)
        if history is None or not history.contested or self._clock() < history.repaired_s + QUIET_S:
            return ()
        self._histories.drop(key)
        return tuple(history.contested)

    def next_look_s(self, key: ObjectKey) -> float | None:
        """Seconds after which to look again at the latest; None when it is not contested."""
        history = self._histories.find(key)
        if history is None or not history.contested:
            return None
        if history.held or history.wrote:
            return LOOK_S
        return max(LOOK_S, history.repaired_s + QUIET_S - self._clock())

    def _sweep(self, now: float) -> None:
        """Forget what happened once and not again, now and then. What is contested ends by `over`."""
        self._begun += 1
        if self._begun < self._sweep_at:
            return
        for key, history in self._histories.items():
            if not history.contested and history.repaired_s <= now - WINDOW_S:
                self._histories.drop(key)
        self._begun = len(self._histories.items())
        self._sweep_at = max(_SWEEP_AT, 2 * self._begun)
