"""Waiting: the answer that was wanted, and what the message says when it never comes."""

from __future__ import annotations

import asyncio
import re
import threading

import pytest

from operator_runtime.testing.waiting import async_eventually, async_until, await_none, eventually, until


class NotYet(Exception):
    pass


class Answers:
    """Gives one answer after the other, and the last one for ever; raises those that are errors."""

    def __init__(self, *answers: object) -> None:
        self.left = list(answers)

    def __call__(self) -> object:
        answer = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def later(self) -> object:
        await asyncio.sleep(0)
        return self()


# Blocking


def test_a_wait_without_time_checks_once() -> None:
    assert eventually(Answers("there"), lambda answer: answer == "there", deadline_s=0) == "there"
    with pytest.raises(AssertionError):
        eventually(Answers("not there", "there"), lambda answer: answer == "there", deadline_s=0)


def test_too_late_says_what_was_awaited_and_what_was_seen_last() -> None:
    message = "not within 0 s: three replicas are ready; last seen: {'ready': 1}"
    with pytest.raises(AssertionError, match=re.escape(message)):
        eventually(Answers({"ready": 1}), lambda answer: answer == 3, what="three replicas are ready", deadline_s=0)
    with pytest.raises(AssertionError, match=re.escape("not within 0 s; last seen: a log\nof two lines")):
        eventually(Answers("a log\nof two lines"), lambda answer: answer == 3, deadline_s=0)


def test_an_error_that_means_not_yet_is_waited_out_and_any_other_ends_the_wait() -> None:
    assert eventually(Answers(NotYet(), 3), lambda answer: answer == 3, ignoring=NotYet) == 3
    with pytest.raises(AssertionError, match=re.escape("last seen: NotYet('no such shop')")):
        eventually(Answers(NotYet("no such shop")), lambda answer: answer == 3, ignoring=NotYet, deadline_s=0)
    with pytest.raises(ZeroDivisionError):
        eventually(Answers(ZeroDivisionError(), 3), lambda answer: answer == 3, ignoring=NotYet)


def test_what_is_wrong_is_waited_out_or_named() -> None:
    await_none(Answers("wrong", None))
    with pytest.raises(AssertionError, match="still so after 0 s: two are missing"):
        await_none(Answers("two are missing"), deadline_s=0)


def test_until_waits_for_another_thread_or_complains() -> None:
    done = threading.Event()
    timer = threading.Timer(0.01, done.set)
    timer.start()
    until("the timer never rang", done.is_set)
    timer.join()
    with pytest.raises(AssertionError, match="still so after 0 s: it is still there"):
        until("it is still there", lambda: False, deadline_s=0)


async def test_a_blocking_wait_on_a_running_loop_is_refused_with_the_remedy() -> None:
    with pytest.raises(RuntimeError, match="await async_eventually or async_until"):
        until("never asked", lambda: True)


# On the event loop


async def test_a_read_that_hangs_ends_at_the_deadline() -> None:
    async def hang() -> int:
        await asyncio.Event().wait()
        return 0

    with pytest.raises(AssertionError, match="an answer; last seen: nothing: the first read did not come to its end"):
        await async_eventually(hang, lambda _: True, what="an answer", deadline_s=0)


async def test_coroutine_functions_are_awaited_and_a_timeout_of_the_check_itself_is_no_deadline() -> None:
    assert await async_eventually(Answers(1, NotYet(), 3).later, lambda answer: answer == 3, ignoring=NotYet) == 3
    with pytest.raises(TimeoutError, match="of the socket"):
        await async_eventually(Answers(TimeoutError("of the socket")).later, lambda _: True)
    answers = Answers(TimeoutError("of the socket"), 3)
    assert await async_eventually(answers.later, lambda answer: answer == 3, ignoring=TimeoutError) == 3


async def test_until_on_the_loop_takes_functions_and_coroutine_functions() -> None:
    event = asyncio.Event()

    async def is_set() -> bool:
        return event.is_set()

    asyncio.get_running_loop().call_soon(event.set)
    await async_until("it was never set", event.is_set)
    await async_until("it was never set", is_set)
