"""Watches: streams of what happens to the objects of a resource, each with its place in history and its selection.

Differs from Kubernetes: Events are watched like all other kinds, where the real server reads them from etcd without a
cache; how far a reader may fall behind is counted in events and not in time.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Callable, Mapping

from kube_simulator.errors import ApiError, expired
from kube_simulator.resources import Resource
from kube_simulator.store.list_options import too_large_version
from kube_simulator.store.lists import present
from kube_simulator.store.selection import Selection, selection_of
from kube_simulator.store.store import Change, Forgotten, Store
from kube_simulator.store.watch_rules import (
    Event,
    Start,
    bookmark,
    event_of,
    next_bookmark_s,
    start_of,
    worth_a_bookmark,
)

# A watch without timeoutSeconds lasts between one and two times as long: --min-request-timeout of kube-apiserver.
_MIN_TIMEOUT_S = 1800.0
# A reader who is this far behind is given up; the real server waits a few seconds for one whose buffers are full.
MAX_UNDELIVERED_EVENTS = 10_000
# Taken at once, so that the encoding of a long streaming list lets others work in between.
BATCH_EVENTS = 500


class Stream:
    """The events of one watch, for one reader.

    Either `batch` or iteration. The objects belong to the store: they are shared and must not be changed.
    """

    def __init__(
        self,
        store: Store,
        resource: Resource,
        namespace: str,
        selection: Selection,
        *,
        clock: Callable[[], float],
        ends_at_s: float,
        start: Start,
        on_end: Callable[[Stream], None],
    ) -> None:
        self.resource = resource
        self.namespace = namespace
        """Empty for all namespaces."""
        self.selection = selection
        self.ended = False
        """Whether nothing will come but what is already on its way to the reader."""
        self._store = store
        self._clock = clock
        self._ends_at_s = ends_at_s
        self._bookmark_at_s = next_bookmark_s(clock(), ends_at_s) if start.bookmarks else math.inf
        self._on_end = on_end
        # The revision that the reader was given, by the start or by a bookmark.
        self._sent = start.revision
        self._pending: list[Event] = []
        self._most_pending = MAX_UNDELIVERED_EVENTS
        self._waiter: asyncio.Future[None] | None = None

    async def batch(self, most: int = BATCH_EVENTS) -> list[Event]:
        """The next events, at most so many, as soon as there is one; [] at the end."""
        while True:
            self._check_time()
            if self._pending or self.ended:
                taken, self._pending = self._pending[:most], self._pending[most:]
                return taken
            await self._wait()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while events := await self.batch():
            for event in events:
                yield event

    def end(self) -> None:
        """End it cleanly, from either side, after what is already on its way."""
        if not self.ended:
            self.ended = True
            self._on_end(self)
        self._wake()

    def fail(self, error: ApiError) -> None:
        """Report an error, and end."""
        if not self.ended:
            self._send(("ERROR", error.status()))
            self.end()

    def begin(self, events: list[Event], revision: int) -> None:
        """Report this first, after which the reader has seen `revision`. However much it is, it is not too much."""
        self._pending = events
        self._most_pending = len(events) + MAX_UNDELIVERED_EVENTS
        self._sent = revision

    def offer(self, change: Change) -> None:
        """Report a change, if it is any of this watch's business."""
        event = self.event_of(change)
        # What came before the start is not told even if it comes late: a watch can wait for a future version.
        if event is not None and change.revision > self._sent:
            self._send(event)
            if len(self._pending) > self._most_pending:
                self.end()

    def event_of(self, change: Change) -> Event | None:
        """Return the event of a change for this watch."""
        if self.namespace and change.object["metadata"].get("namespace") != self.namespace:
            return None
        return event_of(change, self.selection)

    def _send(self, event: Event) -> None:
        self._pending.append(event)
        self._wake()

    def _check_time(self) -> None:
        if self.ended:
            return
        now_s = self._clock()
        if now_s >= self._ends_at_s:
            self.end()
        elif now_s >= self._bookmark_at_s:
            revision = self._store.revision
            if worth_a_bookmark(revision, self._sent, self._ends_at_s - now_s):
                self._pending.append(bookmark(self.resource, revision))
                self._sent = revision
            self._bookmark_at_s = next_bookmark_s(now_s, self._ends_at_s)

    async def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        # A delay rather than a time of the loop, whose clock need not be ours.
        delay_s = max(0.0, min(self._bookmark_at_s, self._ends_at_s) - self._clock())
        timer = loop.call_later(delay_s, self._wake)
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Watches:
    """Streams of a store, and since when each collection can be watched."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """`clock` in seconds, from any beginning; `uniform` draws how long a watch lasts that does not say."""
        self._store = store
        self._clock = clock
        self._uniform = uniform
        # Dictionaries for their order: streams are told of a change in the order in which they were opened.
        self._streams: dict[str, dict[Stream, None]] = {}
        self._served_since: dict[str, int] = {}
        self._all_served_since = 0
        store.subscribe(self._on_change)

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Streams that have not ended."""
        return tuple(stream for streams in self._streams.values() for stream in streams)

    def open(self, resource: Resource, namespace: str, query: Mapping[str, str]) -> Stream:
        """Begin a watch; without a namespace, of all. Raises ApiError for what is refused before a stream begins.

        What Kubernetes refuses in the stream, with status 200, comes as an ERROR event that is also its end.
        """
        selection = selection_of(resource, query)
        start = start_of(query)
        timeout_s = float(start.timeout_s) or self._uniform(_MIN_TIMEOUT_S, 2 * _MIN_TIMEOUT_S)
        stream = Stream(
            self._store,
            resource,
            namespace,
            selection,
            clock=self._clock,
            ends_at_s=self._clock() + timeout_s,
            start=start,
            on_end=self._forget,
        )
        self._streams.setdefault(resource.collection, {})[stream] = None
        if timeout_s < 0:
            stream.end()
        elif start.initial:
            self._begin_with_the_present(stream, start)
        elif start.revision == 0:
            stream.begin([], self._store.revision)
        elif start.revision <= self._store.revision:
            self._resume(stream, start.revision)
        # Else it waits for a version that is yet to come: nothing is told until then, and nobody says so.
        return stream

    def begin_serving(self, collection: str | None = None) -> None:
        """Watch this collection, or all, from the present revision on: older ones are answered with 410 from now on.

        As after a start of the API server, which remembers nothing from before, and when a CRD is served anew because
        it was established or changed. Running streams go on: a change of a CRD ends them too, see `end_all`.
        """
        if collection is None:
            self._all_served_since = self._store.revision
        else:
            self._served_since[collection] = self._store.revision

    def end_all(self, match: Callable[[Stream], bool] | None = None) -> None:
        """End streams cleanly, all or those that match."""
        for stream in self.streams:
            if match is None or match(stream):
                stream.end()

    def _begin_with_the_present(self, stream: Stream, start: Start) -> None:
        revision = self._store.revision
        if start.revision > revision:
            stream.fail(too_large_version(start.revision, revision))
            return
        selection = stream.selection
        objects = present(self._store, stream.resource, stream.namespace, selection)
        events: list[Event] = [("ADDED", object) for object in objects if selection.matches(object)]
        if start.bookmarks:
            events.append(bookmark(stream.resource, revision, initial_events_end=True))
        stream.begin(events, revision)

    def _resume(self, stream: Stream, revision: int) -> None:
        collection = stream.resource.collection
        oldest = max(self._all_served_since, self._served_since.get(collection, 0))
        changes: list[Change] = []
        try:
            changes = self._store.changes_since(collection, revision)
        except Forgotten as forgotten:
            oldest = max(oldest, forgotten.oldest)
        if revision < oldest:
            stream.fail(expired(f"too old resource version: {revision} ({oldest})"))
            return
        events = [event for change in changes if (event := stream.event_of(change)) is not None]
        stream.begin(events, revision)

    def _on_change(self, change: Change) -> None:
        streams = self._streams.get(change.collection)
        if streams:
            for stream in tuple(streams):
                stream.offer(change)

    def _forget(self, stream: Stream) -> None:
        del self._streams[stream.resource.collection][stream]
