"""Pure: detection of objects that another client writes against us in a loop, and rare reconciles of their owner.

Drift is put right at once. In a loop, each write of the other client would cause one of ours, for ever. So an
object that needs its `REPAIRS`th repair within `WINDOW_S` is contested, until no other client has changed it for
`WINDOW_S`.

The owner of a contested object is reconciled once in `CONTESTED_EVERY_S`. Such a reconcile makes one write at most, a
repair of an owned object or of the owner's status, and two in a row never both repair an owned object. What it had no
write left for has the next one that may repair. What the user changes (a new `metadata.generation`) is not held back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from operator_runtime.cache.store import ObjectKey
from operator_runtime.diagnostics.report_pace import ReportPace
from operator_runtime.owned.per_key_state import KeyedStates

# A person who tries to edit a field gives up before; a loop is here within a second.
REPAIRS = 5
WINDOW_S = 60.0
CONTESTED_EVERY_S = 1.0

DesiredDigest = Callable[[], Hashable]
"""What is desired of an object, or a digest of it. It is called only where it decides."""
Verb = Literal["changed", "deleted", "made"]
"""What another client did to an object, and a repair undoes."""


class Undone(NamedTuple):
    """Change that a repair undoes, with the object's name; the fields of one that was changed."""

    verb: Verb
    name: str
    fields: Sequence[str] = ()

    def __str__(self) -> str:
        return f"{self.verb} {', '.join(self.fields) or f'the {self.name}'}"

    def note(self, who: str, owner: str) -> str:
        often = f"{REPAIRS} times within {WINDOW_S:.0f} s. Repairs are now limited to one per second. Stop that client."
        match self.verb:
            case "changed":
                fields = ", ".join(self.fields)
                remedy = f"To change a field permanently, change the {owner}."
                return f"{who} keeps changing {fields} of the {self.name}: corrected {often} {remedy}"
            case "deleted":
                remedy = f"To delete it permanently, change or delete the {owner}."
                return f"{who} keeps deleting the {self.name}: recreated {often} {remedy}"
            case "made":
                return f"{who} keeps creating the {self.name}, which the {owner} does not specify: deleted {often}"


@dataclass(slots=True, eq=False)
class _Repairs:
    """Repairs of one object, which was last put right to `digest`, for a generation of the owner.

    `drift_s` has the last times when it was put right after another client had changed it.
    """

    digest: Hashable = None
    last_s: float = 0.0
    drift_s: deque[float] = field(default_factory=lambda: deque(maxlen=REPAIRS))

    def is_drift(self, desired: Hashable) -> bool:
        """Report whether another client caused this: the same was desired before. What is new is believed once."""
        return desired is None or self.digest == desired

    def within(self, now: float) -> int:
        return sum(now < each + WINDOW_S for each in self.drift_s)

    @property
    def over_s(self) -> float:
        """Time from which no other client has changed it for long enough."""
        return self.drift_s[-1] + WINDOW_S if self.drift_s else 0.0


@dataclass(slots=True)
class _Loop:
    """An owner of contested objects.

    Attributes:
        generation: of the owner at the last reconcile, at `reconciled_s`.
        undone: what another client did to each of `contested`; `notes` has the note of the event for each.
        free: the user changed the owner just before the last reconcile, which is then as any other.
        rests: the last reconcile may not repair owned objects, as the one before did.
        wrote: the last reconcile has had its one write.
        waiting: owned objects for which a reconcile had no write left, in their order.
        next_object: for which of these the present reconcile has its write; None: for whichever comes first.
        repairs: how many there were since the first object is contested.
    """

    generation: int = 0
    reconciled_s: float = 0.0
    contested: list[_Repairs] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    free: bool = False
    rests: bool = False
    wrote: bool = False
    waiting: list[Hashable] = field(default_factory=list)
    next_object: Hashable = None
    repairs: int = 0
    reminder: ReportPace = field(default_factory=ReportPace)


class Contention:
    """The repairs of the last minute, and the owners of contested objects."""

    def __init__(self, states: KeyedStates, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._repairs = states.keyed(dict[Hashable, _Repairs])
        self._loops = states.keyed(_Loop)
        self._swept_s = clock()

    def __len__(self) -> int:
        """Count the owners of a contested object."""
        return len(self._loops)

    def wait_s(self, key: ObjectKey, generation: int) -> float:
        """Seconds until the next reconcile of an owner of that generation; 0.0 where it may be now."""
        loop = self._loops.get(key)
        if loop is None or loop.generation != generation:
            return 0.0
        return max(0.0, loop.reconciled_s + CONTESTED_EVERY_S - self._clock())

    def begin(self, key: ObjectKey, generation: int) -> str:
        """Begin a reconcile; return what is over by now, "" for nothing."""
        loop, now = self._loops.get(key), self._clock()
        if loop is None:
            return ""
        if all(now >= each.over_s for each in loop.contested):
            self._loops.pop(key, None)
            return f"no longer contested: no other client has {' or '.join(loop.undone)} for {WINDOW_S:.0f} s"
        loop.reconciled_s, loop.free = now, loop.generation != generation
        loop.generation = generation
        loop.rests, loop.wrote = loop.wrote and not loop.free, False
        if not loop.rests and not loop.free:  # a free one repairs all, and leaves the order as it is
            loop.next_object = loop.waiting.pop(0) if loop.waiting else None
        return ""

    def may_repair(self, key: ObjectKey, of: Hashable) -> bool:
        """Report whether this reconcile may repair that object, which needs it.

        If not, the reconcile has had its write, or the next write is another object's, or the owner's status'.
        """
        loop = self._loops.get(key)
        if loop is None or loop.free:
            return True
        if not loop.rests and not loop.wrote and loop.next_object in (None, of):
            return True
        if of not in loop.waiting:
            loop.waiting.append(of)
        return False

    def wrote(self, key: ObjectKey) -> None:
        """Record a write of this reconcile that is no repair, such as an object in place of one that was replaced."""
        if (loop := self._loops.get(key)) is not None:
            loop.wrote = True

    def is_throttled(self, key: ObjectKey) -> bool:
        """Report whether this is one of a contested owner's rare reconciles: one write, and no message about it."""
        loop = self._loops.get(key)
        return loop is not None and not loop.free

    def is_budget_used(self, key: ObjectKey) -> bool:
        """Report whether this reconcile has had its one write."""
        loop = self._loops.get(key)
        return loop is not None and loop.wrote and not loop.free

    def requeue_after_s(self, key: ObjectKey) -> float | None:
        """Seconds after which to reconcile again at the latest; None where nothing is contested."""
        loop = self._loops.get(key)
        if loop is None:
            return None
        if loop.rests or loop.wrote or loop.waiting:
            return CONTESTED_EVERY_S
        return max(CONTESTED_EVERY_S, *(each.over_s - self._clock() for each in loop.contested))

    def is_last(self, key: ObjectKey, generation: int, of: Hashable, digest: DesiredDigest | None) -> bool:
        """Report whether one more repair of that object, which `repaired` records, makes it contested."""
        repairs, loop = (self._repairs.get(key) or {}).get(of), self._loops.get(key)
        if repairs is None or (loop is not None and repairs in loop.contested):
            return False
        if repairs.within(self._clock()) < REPAIRS - 1:
            return False
        return repairs.is_drift(_desired(generation, digest))

    def repaired(
        self,
        key: ObjectKey,
        generation: int,
        of: Hashable,
        undone: Undone,
        note: str,
        *,
        digest: DesiredDigest | None = None,
    ) -> tuple[int, Sequence[str]]:
        """Record a repair; return how many came since the object is contested, and the notes of events.

        Args:
            generation: the owner's `metadata.generation`.
            of: the object, None for the owner's status.
            note: of the event where it becomes contested.
            digest: where what is desired may be new; None where only another client can have made the object other than
                it was desired before.
        """
        now, loop = self._clock(), self._loops.get(key)
        self._sweep(now)
        repairs = self._repairs[key].setdefault(of, _Repairs())
        repairs.last_s = now
        if loop is not None and of in loop.waiting:
            loop.waiting.remove(of)  # a write for an object that needs no repair would be lost for all
        if not repairs.is_drift(desired := _desired(generation, digest)):
            repairs.digest = desired
            if loop is not None and of is not None:
                loop.wrote = True
            return 0, ()
        repairs.drift_s.append(now)
        if loop is not None:
            loop.repairs, loop.wrote = loop.repairs + 1, True
        if repairs.within(now) == REPAIRS and (loop is None or repairs not in loop.contested):
            if loop is None:
                loop = self._loops[key]
                loop.generation, loop.reconciled_s, loop.wrote = generation, now, True
                loop.reminder.due(now)  # it is reported as it begins
            loop.contested.append(repairs)
            loop.undone.append(str(undone))
            loop.notes.append(note)
            return 0, [note]
        if loop is not None and loop.reminder.due(now):
            return loop.repairs, loop.notes
        return 0, ()

    def _sweep(self, now: float) -> None:
        """Forget, once in a while, the objects of which nothing was put right for `WINDOW_S`."""
        if now < self._swept_s + WINDOW_S:
            return
        self._swept_s = now
        for key, of in [*self._repairs.items()]:
            if all(now >= each.last_s + WINDOW_S for each in of.values()):
                del self._repairs[key]


def _desired(generation: int, digest: DesiredDigest | None) -> Hashable:
    return None if digest is None else (generation, digest())
