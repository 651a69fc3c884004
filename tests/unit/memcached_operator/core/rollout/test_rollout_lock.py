"""Rollouts that nobody asked for begin one after the other."""

from __future__ import annotations

from memcached_operator.core.rollout.rollout_lock import LeftRollouts, RolloutLock
from operator_runtime import ObjectKey

A, B, C = (ObjectKey("shop", name) for name in "abc")


def rollout_lock(left: LeftRollouts = LeftRollouts()) -> tuple[RolloutLock, list[ObjectKey]]:  # noqa: B008
    woken: list[ObjectKey] = []
    return RolloutLock(lambda: left, woken.append), woken


def test_one_has_the_turn_until_it_is_done_and_the_next_is_woken_in_the_order_in_which_they_came() -> None:
    found, woken = rollout_lock()
    assert [found.take(each) for each in (B, A, C, B)] == [True, False, False, True]
    found.leave(B)
    assert woken == [A]
    assert found.take(A)
    assert not found.take(B)
    found.leave(A)
    assert woken == [A, C]


def test_one_that_asks_for_no_turn_any_more_keeps_nobody() -> None:
    found, woken = rollout_lock()
    assert found.take(A)
    assert not found.take(B)
    assert not found.take(C)
    found.leave(B)
    assert woken == []
    found.leave(A)
    assert woken == [C]


def test_a_rollout_that_somebody_began_who_led_before_goes_on_first() -> None:
    found, woken = rollout_lock(LeftRollouts(A))
    assert not found.take(B)
    assert woken == [A], "it may have ended since its status was written, and is looked at"
    assert found.take(A)
    found.leave(A)
    assert woken == [A, B]


def test_one_that_had_stopped_under_who_led_before_waits_before_it_continues() -> None:
    found, woken = rollout_lock(LeftRollouts(A, (B,)))
    assert found.has_begun(B)
    assert not found.may_continue(B)
    found.leave(A)
    assert woken == [A, B]
    assert found.may_continue(B)


def test_one_that_stops_in_the_midst_lets_the_others_go_and_waits_for_them_before_it_continues() -> None:
    found, woken = rollout_lock()
    assert found.take(A)
    assert not found.take(B)
    found.suspend(A)
    found.suspend(A)
    assert woken == [B]
    assert found.has_begun(A)
    assert found.take(B)
    assert not found.may_continue(A)
    found.leave(B)
    assert woken == [B, A]
    assert found.may_continue(A)
    assert not found.take(B)
    found.leave(A)
    assert not found.has_begun(A)


def test_one_that_never_had_the_turn_or_that_its_user_asks_for_waits_for_nobody() -> None:
    found, _ = rollout_lock()
    assert found.take(A)
    found.suspend(B)
    assert found.may_continue(B)
    found.suspend(A)
    assert found.take(B)
    found.resume(A)
    assert found.may_continue(A)


def test_a_pause_while_the_defaults_change_again_forgets_no_rollout_that_was_begun() -> None:
    found, woken = rollout_lock()
    assert found.may_begin(A, paused=False)
    found.suspend(A)
    assert not found.may_begin(A, paused=True)
    assert found.may_begin(B, paused=False)
    assert not found.may_begin(A, paused=False)
    assert not found.may_continue(A), "servers of two Memcacheds would be cold at once"
    found.leave(B)
    assert woken == [A]
    assert found.may_continue(A)


def test_one_that_is_paused_before_its_turn_begins_nothing() -> None:
    found, _ = rollout_lock()
    assert found.may_begin(A, paused=False)
    assert not found.may_begin(B, paused=False)
    assert not found.may_begin(B, paused=True)
    assert not found.has_begun(B)
