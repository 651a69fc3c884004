"""The purge of one hand-over: it may take longer than a reconcile, so it runs in a task of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from memcached_operator.features.handover.purge import PURGE_WITHIN_S, Purged
from memcached_operator.features.handover.situation import PurgeState, Server
from memcached_operator.servers.server_connection import Failure

logger = logging.getLogger(__name__)

PurgeServer = Callable[[str, float, float], Awaitable[Purged | Failure]]
"""Takes the address of a pod, a time in seconds since 1970, and seconds for all of it."""


class PurgeRun:
    """The purge of the hand-over that began to be prepared at a time.

    Attributes:
        began_s: by the clock, when its last try began.
    """

    def __init__(self, of: str) -> None:
        """
        Args:
            of: RFC 3339 time at which the hand-over began to be prepared.
        """
        self._of = of
        self.began_s = float("-inf")
        self._purged: set[str] = set()  # addresses
        self._task: asyncio.Task[None] | None = None

    def end(self) -> None:
        """Leave off what has yet to be deleted."""
        if self._task is not None:
            self._task.cancel()

    def is_of(self, start: str) -> bool:
        return self._of == start

    def state(self, servers: Sequence[Server]) -> tuple[PurgeState, frozenset[str]]:
        """Progress, and the names of ready servers that it failed at, or that were not ready when it began."""
        if self._task is None:
            return PurgeState.DUE, frozenset()
        if not self._task.done():
            return PurgeState.RUNNING, frozenset()
        ready = (each for each in servers if each.ready_since_s is not None)
        unpurged = frozenset(each.name for each in ready if each.address not in self._purged)
        return PurgeState.FAILED if unpurged else PurgeState.DONE, unpurged

    def begin(
        self,
        servers: Sequence[Server],
        unused_since_s: float,
        purge: PurgeServer,
        now_s: float,
        on_end: Callable[[], None],
    ) -> None:
        """Have servers delete what former owners have kept; none of them is waited for here.

        Args:
            unused_since_s: what was used since stays; in seconds since 1970.
            now_s: by the clock.
            on_end: called once all have answered, or have not in their time.
        """
        self.began_s = now_s

        async def run() -> None:
            purging = (purge(each.address, unused_since_s, PURGE_WITHIN_S) for each in servers)
            answers = await asyncio.gather(*purging, return_exceptions=True)
            deleted = sum(each.deleted for each in answers if isinstance(each, Purged))
            fields = {"action": "purge"}
            logger.info("deleted %d items that only former owners may have", deleted, extra={"fields": fields})
            purged = (each.address for each, answer in zip(servers, answers, strict=True) if isinstance(answer, Purged))
            self._purged.update(purged)

        self._task = asyncio.get_running_loop().create_task(run())
        self._task.add_done_callback(lambda ended: None if ended.cancelled() else on_end())
