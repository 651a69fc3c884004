"""A key that is reconciled without end is told of, and no other."""

from __future__ import annotations

from operator_runtime.diagnostics.reconcile_hot_loops import LIMIT, WINDOW_S, HotLoopDetector


def test_a_key_that_comes_without_end_is_told_of_in_the_midst_of_many_others() -> None:
    detector = HotLoopDetector()
    reported = []
    for number in range(2 * LIMIT):
        for key in ("loops", f"other {number}"):
            if (seconds := detector.reconciled(key, number / 100)) is not None:
                reported.append((key, round(seconds, 2)))
    assert reported
    assert {key for key, _ in reported} == {"loops"}


def test_a_key_that_comes_often_but_less_is_not_told_of() -> None:
    detector = HotLoopDetector()
    period_s = 1.1 * WINDOW_S / LIMIT
    assert {detector.reconciled("often", number * period_s) for number in range(5 * LIMIT)} == {None}


def test_many_keys_once_each_are_nothing_to_tell_of() -> None:
    detector = HotLoopDetector()
    assert {detector.reconciled(number, 0.0) for number in range(5 * LIMIT)} == {None}
