"""What is told of an author's functions that fail, and how often."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from operator_runtime.diagnostics.callback_errors import CallbackErrors, check_plain, described
from operator_runtime.diagnostics.report_pace import FIRST_PAUSE_S
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


def test_a_failure_is_told_when_it_is_new_with_its_traceback_and_again_after_a_pause(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    callback_errors = CallbackErrors(clock)
    for number in range(4):  # errors that differ in numbers alone are one failure, whatever it is about
        callback_errors.report(chosen, f"Shop {number}", "Nothing is done.", KeyError(f"label {number}"))
    clock.advance(FIRST_PAUSE_S)
    callback_errors.report(chosen, "Shop a", "Nothing is done.", KeyError("label 7"))
    assert [line.partition(" failed for ")[2] for line in caplog.messages] == [
        "Shop 0: KeyError: 'label 0'. Nothing is done.",
        "Shop a: KeyError: 'label 7'. Nothing is done.",
    ]
    assert [record.exc_info is not None for record in caplog.records] == [True, False]


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
