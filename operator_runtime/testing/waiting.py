"""Waiting for a state: reading it again and again, with a deadline, and with what was seen last in the message.

A test that waits for a fixed time is slow on a fast machine and fails on a slow one. These read until it is so::

    shop = eventually(lambda: kubectl_get("shop"), lambda shop: shop["status"]["ready"] == 3, what="three are ready")
    until("no event was written", lambda: len(recorder.events) > 0)

and with an operator on the test's own event loop::

    await async_eventually(lambda: client.get(SHOPS, key), lambda shop: shop.status.ready == 3, ignoring=NotFound)
    await async_until("the shop is still there", lambda: store.get(key) is None)

`eventually`, `await_none` and `until` block their thread: for what another process or thread does. `async_eventually`
and `async_until` let the event loop run meanwhile. All fail with AssertionError. It takes no pytest.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

DEADLINE_S = 60.0
"""Generous: a loaded machine starts Python in seconds. A wait ends as soon as what it waits for is there."""
# Between two reads: short to what a person notices, long to what a read from another process costs.
_POLL_S = 0.05
# On an event loop of the same process a read costs next to nothing.
_ASYNC_POLL_S = 0.005

Errors = type[Exception] | tuple[type[Exception], ...]


def eventually(
    read: Callable[[], T],
    desired: Callable[[T], bool],
    *,
    what: str = "",
    deadline_s: float = DEADLINE_S,
    ignoring: Errors = (),
) -> T:
    """Query until the answer is as desired, and return it. Blocks the thread, and queries at least once.

    `ignoring` has errors of `read` that mean "not yet", such as NotFound.

    Raises:
        AssertionError: the deadline has passed; the message has `what` and the last answer, or the last error.
        RuntimeError: an event loop runs on this thread, and would stand still.
    """
    return _wait(read, desired, _Lateness(what, deadline_s), ignoring)


def await_none(find: Callable[[], object | None], *, deadline_s: float = DEADLINE_S) -> None:
    """Wait until there is nothing wrong: `find` returns what is, in words or as an object; else as `eventually`."""
    _wait(find, _is_none, _Lateness(None, deadline_s), ())


def until(complaint: str, holds: Callable[[], bool], *, deadline_s: float = DEADLINE_S) -> None:
    """Wait until it is so; `complaint` is what is wrong until then. Otherwise as `eventually`."""
    await_none(lambda: None if holds() else complaint, deadline_s=deadline_s)


async def async_eventually(
    read: Callable[[], Awaitable[T]],
    desired: Callable[[T], bool],
    *,
    what: str = "",
    deadline_s: float = DEADLINE_S,
    ignoring: Errors = (),
) -> T:
    """Wait as `eventually` does, and let the event loop run meanwhile; a call that hangs ends at the deadline."""
    return await _async_wait(read, desired, _Lateness(what, deadline_s), ignoring)


async def async_until(
    complaint: str, holds: Callable[[], bool] | Callable[[], Awaitable[bool]], *, deadline_s: float = DEADLINE_S
) -> None:
    """Wait as `until` does, and let the event loop run meanwhile."""

    async def wrong() -> str | None:
        given = holds()
        return None if (await given if inspect.isawaitable(given) else given) else complaint

    await _async_wait(wrong, _is_none, _Lateness(None, deadline_s), ())


def _is_none(wrong: object) -> bool:
    return wrong is None


class _Lateness:
    """Deadline of a wait, and the message when it has passed. `what` is None where the observation explains itself."""

    def __init__(self, what: str | None, deadline_s: float) -> None:
        self._what = what
        self._deadline_s = deadline_s
        self._ends_s = time.monotonic() + deadline_s

    @property
    def left_s(self) -> float:
        return self._ends_s - time.monotonic()

    def check(self, seen: object) -> None:
        if self.left_s > 0:
            return
        # A string is words already, or a log of many lines; everything else shows what it is.
        shown = seen if isinstance(seen, str) else repr(seen)
        if self._what is None:
            raise AssertionError(f"still so after {self._deadline_s:g} s: {shown}")
        what = f": {self._what}" if self._what else ""
        raise AssertionError(f"not within {self._deadline_s:g} s{what}; last seen: {shown}")


def _wait(read: Callable[[], T], desired: Callable[[T], bool], lateness: _Lateness, ignoring: Errors) -> T:
    _must_not_run_on_a_loop()
    while True:
        seen: object
        try:
            answer = read()
        except ignoring as error:
            seen = error
        else:
            if desired(answer):
                return answer
            seen = answer
        lateness.check(seen)
        time.sleep(_POLL_S)


async def _async_wait(
    read: Callable[[], Awaitable[T]], desired: Callable[[T], bool], lateness: _Lateness, ignoring: Errors
) -> T:
    seen: object = "nothing: the first read did not come to its end"
    while True:
        # A first read is given its time also where there is none.
        limit = asyncio.timeout(max(lateness.left_s, _POLL_S))
        try:
            async with limit:
                answer = await read()
        except ignoring as error:
            seen = error
        except TimeoutError:
            if not limit.expired():
                raise
        else:
            if desired(answer):
                return answer
            seen = answer
        lateness.check(seen)
        await asyncio.sleep(_ASYNC_POLL_S)


def _must_not_run_on_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "a blocking wait would stop the event loop that runs on this thread: await async_eventually or async_until"
    )
