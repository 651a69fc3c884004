"""Emptying of servers that were away: it may take longer than a reconcile, so it runs in a task of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable
from typing import Any, TypeAlias

from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.features.handover.purge import PURGE_WITHIN_S, Purged
from memcached_operator.servers.server_connection import Failure

EmptyServer = Callable[[str, float], Coroutine[Any, Any, Purged | Failure]]
"""Takes the address of a pod, and seconds for each part of it."""
_Key: TypeAlias = tuple[str, int, bool]


class Emptying:
    """Emptying of a Memcached's servers: twice each, however often its pod cannot say that it is done.

    A server is known by its pod and the time since which it is ready: one that starts again was away once more.
    """

    def __init__(self) -> None:
        self._tasks: dict[_Key, asyncio.Task[Purged | Failure]] = {}

    def keep(self, pods: Iterable[PodRecord]) -> None:
        """Forget all servers but those whose pods say that their items are outdated."""
        self._forget(self._tasks.keys() - {key for pod in pods if pod.outdated_items for key in _keys(pod)})

    def forget(self, addresses: Collection[str], pods: Iterable[PodRecord]) -> None:
        """Forget servers that another no longer has as a peer: their items are outdated once more."""
        self._forget({key for pod in pods if pod.address in addresses for key in _keys(pod)})

    def has_emptied(self, pod: PodRecord) -> bool:
        """Report whether a server was emptied once since it is ready."""
        first, _ = _keys(pod)
        task = self._tasks.get(first)
        return task is not None and task.done() and task.exception() is None and isinstance(task.result(), Purged)

    def result(
        self, pod: PodRecord, empty: EmptyServer, on_end: Callable[[], None], *, is_last: bool
    ) -> Purged | Failure | None:
        """Begin to empty a server, or return the result; None while that is under way. A failure is forgotten.

        Args:
            on_end: called once there is a result.
            is_last: it was emptied since it is ready.

        Raises:
            Exception: what `empty` did not expect; the next call begins anew.
        """
        key = _keys(pod)[is_last]
        if (task := self._tasks.get(key)) is None:
            task = asyncio.get_running_loop().create_task(empty(pod.address, PURGE_WITHIN_S))
            task.add_done_callback(lambda ended: None if ended.cancelled() else on_end())
            self._tasks[key] = task
        if not task.done():
            return None
        if task.exception() is not None or isinstance(task.result(), Failure):
            del self._tasks[key]
        return task.result()

    def _forget(self, keys: Iterable[_Key]) -> None:
        for key in keys:
            if (task := self._tasks.pop(key, None)) is not None:
                task.cancel()


def _keys(pod: PodRecord) -> tuple[_Key, _Key]:
    """The keys of a server's two emptyings."""
    return (pod.uid, pod.since_s, False), (pod.uid, pod.since_s, True)
