"""What the tests of the queue share: a backoff without chance, and looks at all that a queue holds."""

from __future__ import annotations

from typing import Any

from operator_runtime.client.retry import Backoff
from operator_runtime.workqueue.queue import WorkQueue


def steady_backoff() -> Backoff:
    return Backoff(first_s=1.0, longest_s=16.0, uniform=max)


def hand_out(queue: WorkQueue[str], key: str) -> None:
    """Have a key in work."""
    queue.add(key)
    assert queue.get_nowait() == key


def take_all(queue: WorkQueue[str]) -> list[str]:
    """Every key that is handed out now, each finished before the next."""
    taken = []
    while (key := queue.get_nowait()) is not None:
        taken.append(key)
        queue.done(key)
    return taken


def failures_of(queue: WorkQueue[Any], key: object) -> int:
    """Counted failures of a key since it last worked."""
    failures = queue._failures.get(key)
    return 0 if failures is None else failures.own + failures.bounded


def held(queue: WorkQueue[str]) -> list[object]:
    return [part for name, part in vars(queue).items() if isinstance(part, dict | list) and part and name != "_backoff"]
