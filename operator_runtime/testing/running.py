"""An operator on the test's own event loop: in sync when the test goes on, shut down gracefully, its caches guarded."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from operator_runtime.cache.store import ObjectKey, Store, key_of
from operator_runtime.client.watch import Record
from operator_runtime.identity import Program
from operator_runtime.operator import Operator, serve
from operator_runtime.settings.runtime_settings import S
from operator_runtime.settings.schema import Schema
from operator_runtime.testing.waiting import DEADLINE_S, async_until

# Defaults of a test: everything is watched, no port is taken, and an end is no long wait.
_FOR_TESTS: Final[Mapping[str, object]] = {
    "watch_namespaces": (),
    "health_probe_bind_address": "0",
    "metrics_bind_address": "0",
    "shutdown_timeout_s": 5.0,
}


class OperatorEndedError(AssertionError):
    """The operator ended although the test had not ended it; its own error, where it has one, is the cause."""


def settings_of(program: Program, settings: type[S], values: Mapping[str, object]) -> S:
    """The settings that an operator is started with: the test's, else what suits tests, else the defaults.

    No environment variable counts: a developer's own would make a test of something else. Raises as `Schema` does.
    """
    return Schema(settings, program).load({**_FOR_TESTS, **values}, environ={})


@asynccontextmanager
async def running_operator(
    set_up: Callable[[Operator, S], None], program: Program, settings: S, *, deadline_s: float = DEADLINE_S
) -> AsyncIterator[Operator]:
    """Run an operator until the end of the block; see `testing.cluster.SimulatedCluster.operator`.

    The block begins when its caches are in sync and its servers listen.
    """
    stop = asyncio.Event()
    made: list[Operator] = []
    guard = CacheGuard()

    def keeping(operator: Operator, settings: S) -> None:
        made.append(operator)
        set_up(operator, settings)
        # A store has a reflector for each namespace.
        for reflector in {id(each.store): each for each in operator.manager.reflectors}.values():
            guard.watch(reflector.resource.kind, reflector.store)

    def in_sync() -> bool:
        # An operator without watches is in sync before it listens.
        return bool(made) and made[0].manager.settled

    test = asyncio.current_task()
    assert test is not None
    ended_by_itself = began = False

    def ended(_: object) -> None:
        nonlocal ended_by_itself
        if not stop.is_set():
            ended_by_itself = True
            test.cancel()

    running = asyncio.create_task(serve(settings, program, keeping, stop=stop), name=program.name)
    running.add_done_callback(ended)
    try:
        await async_until("the first lists of its watches have not come", in_sync, deadline_s=deadline_s)
        began = True
        yield made[0]
    except asyncio.CancelledError:
        # As in asyncio.timeout: a cancellation that another task requested, too, goes on.
        if not ended_by_itself or test.uncancel() > 0:
            raise
    finally:
        stop.set()
        done, _ = await asyncio.wait({running}, timeout=deadline_s)
        if not done:
            running.cancel()
            await asyncio.wait({running})
    if not done:
        raise AssertionError(f"{program.name} did not end within {deadline_s:g} s after it was stopped")
    if ended_by_itself:
        error = running.exception()
        if error is not None and not began:
            raise error
        words = "without an error" if error is None else f"{type(error).__name__}: {error}"
        raise OperatorEndedError(f"{program.name} ended before the test did: {words}") from error
    running.result()
    guard.check()


class CacheChangedError(AssertionError):
    """Change of an object in the cache; the message names each, with the place."""


class CacheGuard:
    """Keeps a copy of each version that comes into the stores it watches, and compares when that is replaced.

    What a store gives is shared by all who read it. Code that writes into a body, a label or a model there changes what
    every other reader sees, and hides from comparisons what is really on the server. An operator in production pays for
    no copies and no checks; a test does.
    """

    def __init__(self) -> None:
        # The kind, the record that came, and its copy.
        self._snapshots: dict[tuple[int, ObjectKey], tuple[str, Record, Record]] = {}
        # A dict for its order: one sentence for each place, however often it is written to.
        self._changed: dict[str, None] = {}

    def watch(self, kind: str, store: Store[Any]) -> None:
        """Guard what comes into a store from now on."""

        def changed(before: Record | None, after: Record | None) -> None:
            if before is not None and (snapshot := self._snapshots.pop((id(store), key_of(before)), None)) is not None:
                self._compare(*snapshot)
            if after is not None and (copied := _copied(after)) is not None:
                self._snapshots[id(store), key_of(after)] = kind, after, copied

        store.add_handler(changed)

    def check(self) -> None:
        """Raise CacheChangedError where an object is not as it came, or was not when its next version came."""
        for snapshot in self._snapshots.values():
            self._compare(*snapshot)
        if self._changed:
            raise CacheChangedError(
                f"{'; '.join(self._changed)}. What a store gives is shared by all who read it: change a copy, such as "
                "copy.deepcopy(obj.body), or build a new object"
            )

    def _compare(self, kind: str, record: Record, original: Record) -> None:
        if record != original:
            place = _place(original, record)
            self._changed[f"{kind} {key_of(record)} was changed in the cache, at {place}"] = None


def _copied(record: Record) -> Record | None:
    """A deep copy, None where a type of an author's own has no copy that is equal to it."""
    try:
        copied = copy.deepcopy(record)
        return copied if copied == record else None
    except Exception:
        return None


def _place(was: object, now: object) -> str:
    """Find where two values differ first, as Python would write it: `.body['data']['apples']`."""
    for step, old, new in _steps(was, now):
        if old != new:
            return step + _place(old, new)
    return ""


def _steps(was: object, now: object) -> Iterable[tuple[str, object, object]]:
    """The parts that two values have in common, each with its way there."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        return [(f"[{key!r}]", was.get(key), now.get(key)) for key in dict.fromkeys((*was, *now))]
    if isinstance(was, list | tuple) and isinstance(now, list | tuple) and len(was) == len(now):
        return [(f"[{number}]", old, new) for number, (old, new) in enumerate(zip(was, now, strict=True))]
    names: Iterable[str] = getattr(was, "__struct_fields__", ()) or getattr(type(was), "model_fields", ())
    if dataclasses.is_dataclass(was):
        names = [field.name for field in dataclasses.fields(was)]
    return [(f".{name}", getattr(was, name), getattr(now, name, None)) for name in names]
