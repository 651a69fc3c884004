"""Errors of an author's functions while a cache takes a change: they are logged and stop nothing."""

from __future__ import annotations

import inspect
import logging
import re
import time
from collections.abc import Callable

from operator_runtime.diagnostics.report_pace import ReportPace

logger = logging.getLogger(__name__)

# Errors that differ in numbers alone are the same failure.
_DIGITS = re.compile(r"\d+")


class CallbackErrors:
    """Reports each failure when it is new, with its traceback, and then at growing intervals.

    Failures are counted by function and error, not by object: their number is bounded by the author's code, but for
    errors that quote the object, of which `_MOST` are remembered.
    """

    _MOST = 1000

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._reminders: dict[tuple[str, str], ReportPace] = {}

    def report(self, function: Callable[..., object], about: object, instead: str, error: Exception) -> None:
        """A function failed for `about` (`ConfigMap shop/a`); `instead`, to follow a colon, is what is done now."""
        name, what = described(function), f"{type(error).__name__}: {error}"
        identity = name, _DIGITS.sub("#", what)
        new = identity not in self._reminders
        if new and len(self._reminders) >= self._MOST:
            self._reminders.clear()
        if not self._reminders.setdefault(identity, ReportPace()).due(self._clock()):
            return
        logger.error("%s failed for %s: %s. %s", name, about, what, instead, exc_info=error if new else None)


def described(function: Callable[..., object]) -> str:
    """A function by its name and place: `shell_of_pod (controller.py:12)`."""
    outer = inspect.unwrap(function)
    inner = inspect.unwrap(getattr(outer, "func", outer))
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    code = getattr(inner, "__code__", None)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code is not None else str(name)


def is_coroutine_function(function: Callable[..., object]) -> bool:
    """Report whether calling it gives a coroutine, also where it is an object with an `async def __call__`."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def check_plain(function: Callable[..., object], what: str) -> None:
    """Refuse, with a TypeError, an author's function that cannot be called, or not without `await`."""
    if not callable(function):
        raise TypeError(f"{what} is {function!r}, which cannot be called")
    if is_coroutine_function(function):
        raise TypeError(f"{what} is a coroutine function, {described(function)}: write `def`, as nothing waits for it")
