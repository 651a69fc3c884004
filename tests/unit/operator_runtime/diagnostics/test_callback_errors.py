"""What is told of an author's functions that fail, and how often."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from operator_runtime.diagnostics.callback_errors import CallbackErrors, check_plain, described
from operator_runtime.testing.clock import FakeClock


def chosen(number: int, *_: object) -> int:
    return number


def wrapped(function: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(function, updated=())
    def inner(*arguments: object) -> object:
        return function(*arguments)

    return inner


class Chooser:
    def __call__(self) -> None: ...


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_a_failure_brings_its_traceback_when_it_is_new_and_is_then_told_at_growing_intervals(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    callback_errors, reported_at = CallbackErrors(clock), []
    begin = clock.now
    for minute in range(200):
        for number in range(2):
            callback_errors.report(chosen, f"Shop {minute}", "Nothing is done.", KeyError(f"label {number}"))
        if caplog.records:
            reported_at.append(minute)
            has_traceback = [record.exc_info is not None for record in caplog.records]
            assert has_traceback == [minute == 0]
            caplog.clear()
        clock.advance(60.0)
    assert clock.now == begin + 200 * 60
    assert reported_at == [0, 1, 3, 7, 15, 31, 63, 123, 183]


def test_how_often_it_failed_unheard_is_told_with_the_next_line(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    callback_errors = CallbackErrors(clock)
    for _ in range(4):
        callback_errors.report(chosen, "Shop a", "Nothing is done.", KeyError("x"))
    clock.advance(60.0)
    callback_errors.report(chosen, "Shop a", "Nothing is done.", KeyError("x"))
    assert [line.partition(" failed for ")[2] for line in caplog.messages] == [
        "Shop a: KeyError: 'x'. Nothing is done.",
        "Shop a: KeyError: 'x'. Nothing is done. It failed 3 more times since this was last reported.",
    ]


def test_errors_that_quote_their_object_fill_no_memory(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    callback_errors = CallbackErrors(clock)
    for number in range(3000):
        callback_errors.report(chosen, "Shop a", "", KeyError("x" * number))
    assert len(vars(callback_errors)["_reminders"]) <= 1000


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (chosen, f"chosen ({__file__}:{chosen.__code__.co_firstlineno})"),
        (functools.partial(chosen, 1), f"chosen ({__file__}:{chosen.__code__.co_firstlineno})"),
        (wrapped(functools.partial(chosen, 1)), f"chosen ({__file__}:{chosen.__code__.co_firstlineno})"),
        (Chooser(), "Chooser"),
        (len, "len"),
    ],
    ids=["a function", "a partial", "a wrapped partial", "an object", "a builtin"],
)
def test_a_function_is_named_with_its_place_where_it_has_one(function: Callable[..., object], name: str) -> None:
    assert described(function) == name
    with pytest.raises(TypeError, match=r"^the predicate is 7, which cannot be called$"):
        check_plain(7, "the predicate")  # type: ignore[arg-type]
