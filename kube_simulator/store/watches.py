"""Watches: streams of what happens to the objects of a resource, each with its place in history and its selection."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kube_simulator.errors import ApiError, expired, internal
from kube_simulator.resources import Resource
from kube_simulator.store.lists import check, integer, present, too_large_version
from kube_simulator.store.selection import Selection, selection_of
from kube_simulator.store.store import Change, Changes, Forgotten, Store
from kube_simulator.values import Json

Event = tuple[str, Json]
"""What a stream tells: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and an object or a Status."""

# A watch without timeoutSeconds lasts between one and two times as long: --min-request-timeout of kube-apiserver.
_MIN_TIMEOUT_S: Final = 1800.0
# Measured on a real API server: the first bookmark after 59.3 to 60.4 s, later ones every 59 to 61 s.
BOOKMARK_INTERVAL_S: Final = 60.0
# And one 1.3 to 3 s before the end.
_LAST_BOOKMARK_BEFORE_END_S: Final = 2.0
# Taken at once, so that the encoding of a long streaming list lets others work in between.
BATCH_EVENTS: Final = 500


@dataclass(frozen=True, slots=True)
class Start:
    """Start of a watch, how long it may last, and whether bookmarks are requested."""

    initial: bool
    """Whether the present objects come first, as ADDED."""
    revision: int
    """The changes after it are sent; 0 is the present. With `initial` it must have been reached."""
    bookmarks: bool
    timeout_s: int
    """0 leaves it to the server; below that the watch ends at once."""


def start_of(query: Mapping[str, str]) -> Start:
    """Read the start from the query of a watch. Raises ApiError 400, 422, and 500 for a version that is no number."""

    def flag(name: str) -> bool:
        return query.get(name, "false").lower() not in ("false", "0")

    match, streaming = query.get("resourceVersionMatch", ""), "sendInitialEvents" in query
    timeout_s, version = integer(query, "timeoutSeconds"), query.get("resourceVersion") or "0"
    check(
        {
            "resourceVersionMatch: sendInitialEvents requires NotOlderThan": streaming and match != "NotOlderThan",
        }
    )
    if not version.isdecimal():
        raise internal(f'resourceVersion: Invalid value: "{version}": it is no number')
    initial = flag("sendInitialEvents") if streaming else int(version) == 0
    return Start(initial, int(version), flag("allowWatchBookmarks"), timeout_s)


def event_of(change: Change, selection: Selection) -> Event | None:
    """Return the event of a change in this selection; None if there is none.

    An object that is edited out of a selection is DELETED there: in its state before, which was selected, with the
    version of the edit.
    """
    before = change.before
    was = before is not None and selection.matches(before)
    if change.type == "DELETED":
        return ("DELETED", change.object) if was else None
    if selection.matches(change.object):
        return "MODIFIED" if was else "ADDED", change.object
    if before is None or not was:
        return None
    version = change.object["metadata"]["resourceVersion"]
    return "DELETED", {**before, "metadata": {**before["metadata"], "resourceVersion": version}}


def _bookmark(resource: Resource, revision: int, annotations: Json | None = None) -> Event:
    """A bookmark: an object of the kind with nothing but a version."""
    metadata = {"resourceVersion": str(revision), **({"annotations": annotations} if annotations else {})}
    return "BOOKMARK", {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}


class Stream:
    """The events of one watch, for one reader. The objects are the store's, and must not be changed."""

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
        self._bookmark_at_s = self._next_bookmark_s(clock()) if start.bookmarks else math.inf
        self._on_end = on_end
        # The revision that the reader was given, by the start or by a bookmark.
        self._sent = start.revision
        self._pending: list[Event] = []
        self._news = asyncio.Event()

    async def batch(self, most: int = BATCH_EVENTS) -> list[Event]:
        """The next events, at most so many, as soon as there is one; [] at the end."""
        while True:
            self._check_time()
            if self._pending or self.ended:
                taken, self._pending = self._pending[:most], self._pending[most:]
                return taken
            self._news.clear()
            # A delay rather than a time of the loop, whose clock need not be ours.
            delay_s = max(0.0, min(self._bookmark_at_s, self._ends_at_s) - self._clock())
            timer = asyncio.get_running_loop().call_later(delay_s, self._news.set)
            try:
                await self._news.wait()
            finally:
                timer.cancel()

    def end(self) -> None:
        """End it cleanly, from either side, after what is already on its way."""
        if not self.ended:
            self.ended = True
            self._on_end(self)
        self._news.set()

    def fail(self, error: ApiError) -> None:
        """Report an error, and end."""
        if not self.ended:
            self._pending.append(("ERROR", error.status()))
            self.end()

    def begin(self, events: list[Event], revision: int) -> None:
        """Report this first, after which the reader has seen `revision`."""
        self._pending = events
        self._sent = revision

    def offer(self, change: Change) -> None:
        """Report a change, if it is any of this watch's business."""
        event = self.event_of(change)
        # What came before the start is not told even if it comes late: a watch can wait for a future version.
        if event is not None and change.revision > self._sent:
            self._pending.append(event)
            self._news.set()

    def event_of(self, change: Change) -> Event | None:
        """Return the event of a change for this watch."""
        if self.namespace and change.object["metadata"].get("namespace") != self.namespace:
            return None
        return event_of(change, self.selection)

    def _next_bookmark_s(self, now_s: float) -> float:
        """Return when the next bookmark is due: after the interval, or shortly before the end if that comes first."""
        last_s = self._ends_at_s - _LAST_BOOKMARK_BEFORE_END_S
        regular_s = now_s + BOOKMARK_INTERVAL_S
        return last_s if now_s < last_s < regular_s else regular_s

    def _check_time(self) -> None:
        now_s = self._clock()
        if not self.ended and now_s >= self._ends_at_s:
            self.end()
        elif not self.ended and now_s >= self._bookmark_at_s:
            revision = self._store.revision
            # A regular one is a sign of life, even without news; the one before the end is not. A reader that waits for
            # a version that is yet to come gets none.
            regular = self._ends_at_s - now_s > _LAST_BOOKMARK_BEFORE_END_S
            if revision > self._sent or (revision == self._sent and regular):
                self._pending.append(_bookmark(self.resource, revision))
                self._sent = revision
            self._bookmark_at_s = self._next_bookmark_s(now_s)


class Watches:
    """Streams of a store, and since when each collection can be watched."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        """`clock` in seconds, from any beginning."""
        self._store = store
        self._clock = clock
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
        timeout_s = float(start.timeout_s) or random.uniform(_MIN_TIMEOUT_S, 2 * _MIN_TIMEOUT_S)
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

    def end_all(self, collection: str | None = None) -> None:
        """End streams cleanly, all or those of a collection."""
        for stream in self.streams:
            if collection in (None, stream.resource.collection):
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
            events.append(_bookmark(stream.resource, revision, {"k8s.io/initial-events-end": "true"}))
        stream.begin(events, revision)

    def _resume(self, stream: Stream, revision: int) -> None:
        collection = stream.resource.collection
        oldest = max(self._all_served_since, self._served_since.get(collection, 0))
        changes: Changes = []
        try:
            changes = self._store.changes_since(collection, revision)
        except Forgotten as forgotten:
            oldest = max(oldest, forgotten.oldest)
        if revision < oldest:
            stream.fail(expired(f"too old resource version: {revision} ({oldest})"))
            return
        events = [event for change in changes if (event := stream.event_of(change)) is not None]
        stream.begin(events, revision)

    def _forget(self, stream: Stream) -> None:
        del self._streams[stream.resource.collection][stream]

    def _on_change(self, change: Change) -> None:
        for stream in tuple(self._streams.get(change.collection, ())):
            stream.offer(change)
