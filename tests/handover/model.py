"""What one memcached could have answered, and what only several that disagree can: histories of keys, judged.

A history has the commands on one key, by concurrent clients, each with when it was sent and when it was answered. Each
value names all writes that made it: the one that set it, and those that joined something to it. So a value that was
read is too old exactly if some write began after the last of its writes was answered, was answered before the read
began, and is not in it. That is what a client can rely on: two that overlap may take effect in either order. It is no
proof of linearizability: while a write is under way, one reader may see it and a later one not yet.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

_SLACK_S = 3.0
"""By how much a lifetime moves: memcached's seconds at each end, and as a copy is made."""
_TEXT = re.compile(r"(?P<before>(?:\d+,)*)(?:#(?P<base>\d+)/(?P<length>\d+)/(?P<padding>x*))?(?P<after>(?:,\d+)*)")
BITS = 40
"""Of a number, those below are what was added to it or taken from it, and those above say who set it."""
MASK = (1 << BITS) - 1
NO_ANSWER = "no answer"
UNSAID = "MN"
"""The answer to a command that wants none, and then to one that has no other."""
EMPTY = 0
"""In the place of who set it, for a value that `mg N` created."""


class Effect(StrEnum):
    """What a command that succeeded does to a key."""

    READS = "reads"
    SETS = "sets"
    JOINS = "joins"
    DELETES = "deletes"
    MARKS_STALE = "marks stale"
    TOUCHES = "touches"


class Status(StrEnum):
    """How a command was answered."""

    DONE = "done"
    FOUND = "found"
    REFUSED = "refused"
    """As the value is another, or as there is one."""
    MISSED = "missed"
    """As there is no value."""
    UNKNOWN = "unknown"
    """An error, or no answer: it may take effect, now or later."""


class Fault(StrEnum):
    """What is wrong with an answer."""

    STALE = "an older value"
    RESURRECTED = "a deleted value"
    EXPIRED = "an expired value"
    CUT = "a value that nobody stored"
    FLAGS = "other flags"
    PHANTOM = "success where nothing was"
    OVER_NEWER = "a write that was to fail, over a newer value"
    TURNS = "a value again after another"
    FRESH = "an invalidated value as a good one"
    LOST = "a miss of a live key"
    SPURIOUS = "a refusal of what has not changed"


NEVER = frozenset(
    {
        *(Fault.STALE, Fault.RESURRECTED, Fault.EXPIRED, Fault.CUT),
        *(Fault.FLAGS, Fault.PHANTOM, Fault.OVER_NEWER, Fault.FRESH, Fault.TURNS),
    }
)
"""Those that no loss of servers or memory excuses."""


@dataclass(slots=True, eq=False)
class Operation:
    """A command and its answer.

    Attributes:
        number: identifies it, and is what it leaves in the value.
        via: the server that it was sent to.
        sent_s, answered_s: by one clock.
        lifetime_s: that it gives the key, 0 for ever; None for none.
        needs: there must be a value for it to succeed (True), or none (False).
        token: the read whose CAS it names.
        value, flags, stale: what was read.
        is_meta: it is told whether a value is stale.
        bit: that it adds to a number.
        raw: the answer.
    """

    number: int
    name: str
    effect: Effect
    via: int
    sent_s: float
    answered_s: float = 0.0
    status: Status = Status.UNKNOWN
    lifetime_s: int | None = None
    needs: bool | None = None
    token: Operation | None = None
    value: str | None = None
    flags: int | None = None
    cas: str = ""
    stale: bool = False
    is_meta: bool = False
    bit: int = 0
    raw: str = ""

    @property
    def writes(self) -> bool:
        return self.effect in (Effect.SETS, Effect.JOINS, Effect.DELETES)

    @property
    def reaches_peers(self) -> bool:
        """Peers receive it."""
        return self.effect is not Effect.READS


@dataclass(slots=True)
class History:
    """One key's. ``kind``: "text", "binary" (its key), numbers that go "up" or "down", or "plain": of a mark's size."""

    key: str
    kind: str
    operations: list[Operation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with an answer, and the command that shows it."""

    fault: Fault
    key: str
    read: Operation
    by: Operation | None = None

    def __str__(self) -> str:
        return f"{self.fault}: {self.key}: {_line(self.read)}" + (f"; after {_line(self.by)}" if self.by else "")


def _line(operation: Operation) -> str:
    times = f"{operation.sent_s:.4f}-{operation.answered_s:.4f}"
    return f"{operation.number} {operation.name} at {operation.via} {times} {operation.status} {operation.raw[:80]!r}"


def padded(number: int, length: int) -> str:
    """A text that an operation sets."""
    return f"#{number}/{length}/{'x' * length}"


def judge(history: History) -> Iterator[Finding]:
    """All that is wrong in a history."""
    judged = _Judge(history)
    for operation in history.operations:
        yield from judged.of(operation)


def counted(histories: Iterable[History]) -> tuple[Counter[Fault], list[Finding]]:
    """How often what is wrong in them, and each."""
    findings = [finding for history in histories for finding in judge(history)]
    return Counter(finding.fault for finding in findings), findings


class _Judge:
    def __init__(self, history: History) -> None:
        self._history = history
        self._by_number = {each.number: each for each in history.operations}
        self._took_effect = [each for each in history.operations if each.status is Status.DONE]
        self._writes = [each for each in self._took_effect if each.writes]
        self._unknown = [each for each in history.operations if each.status is Status.UNKNOWN and each.writes]
        changing = (Effect.TOUCHES, Effect.MARKS_STALE)
        self._touches = [each for each in history.operations if each.effect in changing]
        self._members = {each.number: self._members_of(each) for each in history.operations}
        self._seen_s: dict[int, float] = {}
        for each in history.operations:
            for member in self._members[each.number] or ():
                self._seen_s[member.number] = min(self._seen_s.get(member.number, each.answered_s), each.answered_s)

    def of(self, operation: Operation) -> Iterator[Finding]:
        if operation.value is not None:
            yield from self._of_value(operation)
        if operation.status is Status.MISSED or (operation.status is Status.DONE and operation.needs is False):
            yield from self._of_absence(operation)
        if operation.status is Status.DONE and operation.needs:
            yield from self._of_presence(operation)
        if operation.status is Status.REFUSED and operation.needs is False:
            yield from self._of_presence(operation)
        if operation.token is not None:
            yield from self._of_token(operation)

    def _members_of(self, operation: Operation) -> Sequence[Operation] | None:
        """The writes that made the value; None if nobody can have made it."""
        value = operation.value
        if value is None:
            return None
        try:
            numbers = list(_numbers(value, self._history.kind, self._by_number))
        except ValueError:
            return None
        members = [self._by_number.get(number) for number in numbers if number != EMPTY]
        if numbers[0] == EMPTY:
            creating = [each for each in self._history.operations if each.name == "mg N"]
            creating = [each for each in creating if each.status in (Status.DONE, Status.UNKNOWN)]
            created = [each for each in creating if each.sent_s < operation.answered_s]
            members.insert(0, max(created, key=lambda each: each.sent_s, default=None))
        found = [member for member in members if member is not None]
        if len(found) != len(members) or any(each.sent_s > operation.answered_s for each in found):
            return None
        return found

    def _ended_s(self, write: Operation) -> float:
        """When it has taken effect at the latest."""
        if write.status is Status.DONE or write.raw == UNSAID:
            return write.answered_s
        return self._seen_s.get(write.number, float("inf"))

    def _of_value(self, read: Operation) -> Iterator[Finding]:
        members = self._members[read.number]
        if members is None or any(each.status not in (Status.DONE, Status.UNKNOWN) for each in members):
            yield Finding(Fault.CUT, self._history.key, read)
            return
        base = members[0]
        if read.flags is not None and read.flags != (base.flags or 0):
            yield Finding(Fault.FLAGS, self._history.key, read, base)
        yield from self._of_age(read, [each for each in members if each is not read] or members, read.sent_s)
        yield from self._of_turns(read)
        for index, member in enumerate(members[1:], start=1):
            if self._history.kind in ("text", "binary"):
                yield from self._of_age(member, members[:index], member.sent_s, members)
        sources = [base, *(each for each in self._touches if each.answered_s > base.sent_s)]
        sources = [each for each in sources if each.sent_s < read.answered_s and each.lifetime_s is not None]
        ends = [each.answered_s + (each.lifetime_s or float("inf")) for each in sources]
        if ends and max(ends) + _SLACK_S < read.sent_s:
            yield Finding(Fault.EXPIRED, self._history.key, read, base)
        if read.is_meta and not read.stale:
            ended_s = max(map(self._ended_s, members))
            for mark in self._took_effect:
                if mark.effect is Effect.MARKS_STALE and ended_s < mark.sent_s and mark.answered_s < read.sent_s:
                    yield Finding(Fault.FRESH, self._history.key, read, mark)
                    break

    def _of_age(
        self, read: Operation, members: Sequence[Operation], sent_s: float, known: Sequence[Operation] = ()
    ) -> Iterator[Finding]:
        ended_s = max(map(self._ended_s, members))
        for write in self._writes:
            if write in members or write in known or write is read:
                continue
            if ended_s < write.sent_s and write.answered_s < sent_s:
                fault = Fault.RESURRECTED if write.effect is Effect.DELETES else Fault.STALE
                yield Finding(fault, self._history.key, read, write)
                return

    def _of_turns(self, read: Operation) -> Iterator[Finding]:
        """Two values that are each read after the other, when both had been written: two servers have one each."""
        if not read.value or read.effect is Effect.JOINS:
            return
        reads = [each.answered_s for each in self._history.operations if each.value == read.value]
        first_s = max(min(reads), max(map(self._ended_s, self._members[read.number] or ()), default=float("inf")))
        for other in self._history.operations:
            if other.value in (None, read.value) or not first_s < other.sent_s < other.answered_s < read.sent_s:
                continue
            members, own = self._members[other.number] or (), self._members[read.number] or ()
            if any(each.status is Status.UNKNOWN for each in members):
                continue  # it may have been seen, and taken back
            written_s = max(map(self._ended_s, members), default=float("inf"))
            if written_s < read.sent_s and not set(members) <= set(own):
                yield Finding(Fault.TURNS, self._history.key, read, other)
                return

    def _of_absence(self, read: Operation) -> Iterator[Finding]:
        """A miss, or what succeeds only where nothing is."""
        lasting = [
            each
            for each in self._writes
            if each.effect is Effect.SETS and each.answered_s < read.sent_s and each is not read
        ]
        if not lasting:
            return
        write = max(lasting, key=lambda each: each.sent_s)
        lives = [each.lifetime_s for each in (write, *self._touches) if each.lifetime_s is not None]
        if any(life and write.sent_s + life - _SLACK_S < read.answered_s for life in lives):
            return
        for other in (*self._took_effect, *self._unknown):
            if other is write or other is read or (other.answered_s < write.sent_s and other.status is Status.DONE):
                continue
            if other.sent_s > read.answered_s:
                continue
            if other.effect in (Effect.DELETES, Effect.MARKS_STALE) or other.status is Status.UNKNOWN:
                return
            if other.reaches_peers and self._met(other):
                return
        yield Finding(Fault.LOST, self._history.key, read, write)

    def _met(self, one: Operation) -> bool:
        """Whether it overlaps with another by another list: both may be lost."""
        return any(each.via != one.via and _overlap(one, each) for each in self._took_effect if each is not one)

    def _of_presence(self, operation: Operation) -> Iterator[Finding]:
        """What succeeds only where a value is, or is refused as there is one."""
        deletes = [
            each for each in self._writes if each.effect is Effect.DELETES and each.answered_s < operation.sent_s
        ]
        makers = [each for each in (*self._writes, *self._unknown) if each.effect is Effect.SETS]
        makers = [each for each in makers if each.sent_s < operation.answered_s and each is not operation]
        for delete in deletes:
            if delete is operation:
                continue
            if all(self._ended_s(each) < delete.sent_s for each in makers):
                yield Finding(Fault.PHANTOM, self._history.key, operation, delete)
                return

    def _of_token(self, operation: Operation) -> Iterator[Finding]:
        token = operation.token
        members = self._members[token.number] if token is not None else None
        if token is None or not members:
            return
        if operation.status is Status.DONE:
            for finding in self._of_age(operation, members, operation.sent_s):
                yield Finding(Fault.OVER_NEWER, self._history.key, operation, finding.by)
        elif operation.status is Status.REFUSED:
            for other in (*self._took_effect, *self._unknown):
                changes = other.writes or other.effect is Effect.MARKS_STALE
                late = other.status is Status.UNKNOWN or other.answered_s > token.sent_s
                if changes and late and other.sent_s < operation.answered_s and other is not operation:
                    return
            yield Finding(Fault.SPURIOUS, self._history.key, operation, token)


def _overlap(one: Operation, other: Operation) -> bool:
    return one.sent_s < other.answered_s and other.sent_s < one.answered_s and one.reaches_peers and other.reaches_peers


def _numbers(value: str, kind: str, known: dict[int, Operation]) -> Iterator[int]:
    """The operations that a value names; the one that set it first. ValueError: it is no value of its kind."""
    if kind in ("up", "down"):
        number = int(value)
        yield number >> BITS
        rest = number & MASK if kind == "up" else ~number & MASK
        for each in known.values():
            if rest & each.bit:
                yield each.number
    elif kind == "plain":
        yield int(value)
    else:
        found = _TEXT.fullmatch(value)
        if found is None or len(found["padding"] or "") != int(found["length"] or 0):
            raise ValueError(value[:40])
        yield int(found["base"] or EMPTY)
        yield from (int(number) for number in found["after"].split(",")[1:])
        yield from (int(number) for number in reversed(found["before"].split(",")[:-1]))
