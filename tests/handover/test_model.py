"""What the model finds wrong in a history, as tables: a checker that finds nothing proves nothing."""

from __future__ import annotations

import pytest

from tests.handover.model import Effect, Fault, History, Operation, Status, judge, padded

HERE, THERE = 0, 1


def _set(number: int, sent_s: float, answered_s: float, via: int = HERE, *, lifetime_s: int = 0) -> Operation:
    return Operation(
        number, "set", Effect.SETS, via, sent_s, answered_s, Status.DONE, lifetime_s=lifetime_s, flags=number
    )


def _delete(number: int, sent_s: float, answered_s: float) -> Operation:
    return Operation(number, "delete", Effect.DELETES, HERE, sent_s, answered_s, Status.DONE)


def _get(number: int, sent_s: float, value: str, via: int = HERE, flags: int | None = None) -> Operation:
    read = Operation(number, "get", Effect.READS, via, sent_s, sent_s + 0.1, Status.FOUND)
    read.value, read.flags = value, flags
    return read


def _miss(number: int, sent_s: float) -> Operation:
    return Operation(number, "get", Effect.READS, HERE, sent_s, sent_s + 0.1, Status.MISSED)


def _append(number: int, sent_s: float, answered_s: float) -> Operation:
    return Operation(number, "append", Effect.JOINS, HERE, sent_s, answered_s, Status.DONE, needs=True)


FIRST, SECOND = padded(1, 2), padded(2, 2)
HISTORIES: dict[str, tuple[list[Operation], set[Fault]]] = {
    "the last value": ([_set(1, 0, 1), _set(2, 2, 3), _get(3, 4, SECOND, flags=2)], set()),
    "an older one": ([_set(1, 0, 1), _set(2, 2, 3), _get(3, 4, FIRST)], {Fault.STALE}),
    "an older one while the write is under way": ([_set(1, 0, 1), _set(2, 2, 9), _get(3, 4, FIRST)], set()),
    "either of two that overlap": ([_set(1, 0, 3), _set(2, 2, 4), _get(3, 5, FIRST), _get(4, 5, FIRST)], set()),
    "two that overlap, in turns": (
        [_set(1, 0, 3), _set(2, 2, 4, THERE), _get(3, 5, FIRST), _get(4, 6, SECOND, THERE), _get(5, 7, FIRST)],
        {Fault.TURNS},
    ),
    "a deleted one": ([_set(1, 0, 1), _delete(2, 2, 3), _get(3, 4, FIRST)], {Fault.RESURRECTED}),
    "an expired one": ([_set(1, 0, 1, lifetime_s=2), _get(2, 9, FIRST)], {Fault.EXPIRED}),
    "one whose end is cut off": ([_set(1, 0, 1), _get(2, 2, FIRST[:-1])], {Fault.CUT}),
    "other flags": ([_set(1, 0, 1), _get(2, 2, FIRST, flags=7)], {Fault.FLAGS}),
    "one joined to": ([_set(1, 0, 1), _append(2, 2, 3), _get(3, 4, FIRST + ",2")], set()),
    "one whose addition is lost": ([_set(1, 0, 1), _append(2, 2, 3), _get(3, 4, FIRST)], {Fault.STALE}),
    "an addition to an older one": (
        [_set(1, 0, 1), _set(2, 2, 3), _append(3, 4, 5), _get(4, 4.5, FIRST + ",3")],
        {Fault.STALE},
    ),
    "success where nothing is": ([_set(1, 0, 1), _delete(2, 2, 3), _append(3, 4, 5)], {Fault.PHANTOM}),
    "a miss": ([_set(1, 0, 1), _miss(2, 3)], {Fault.LOST}),
    "a miss of what two lists have overwritten": ([_set(1, 0, 3), _set(2, 2, 4, THERE), _miss(3, 5)], set()),
    "a miss of what was deleted": ([_set(1, 0, 1), _delete(2, 2, 3), _miss(3, 5)], set()),
}


@pytest.mark.parametrize("case", HISTORIES)
def test_the_model_tells_what_one_memcached_could_not_have_answered(case: str) -> None:
    operations, faults = HISTORIES[case]

    assert {finding.fault for finding in judge(History("key", "text", operations))} == faults
