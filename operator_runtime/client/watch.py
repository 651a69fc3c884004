"""The rules of list and watch, as a state machine that does no I/O.

A `Watch` returns which request comes next (`next_request`), is fed what came back (`page`, `line`, `ended`), calls a
sink with what it means, and returns how long to pause. Its states, and the rules on what ended a request (410, ERROR
events, silence, backoff), are in `client.watch_ends`; moving bytes and time is the reflector's.

The way round: a *snapshot* (one streaming list, or pages where the server has no streaming lists) brings the sink
every object; then *resumed* watches carry that on from the last resourceVersion. The server's answer decides whether
a failure costs a new snapshot or only a new stream. Design and numbers follow client-go's reflector and kube-rs'
watcher, and what a real API server was seen to answer; each departure has its reason.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec

from operator_runtime.client.errors import UNDECODABLE, KubeError, MalformedAnswer, UnreadableObject
from operator_runtime.client.frames import (
    MAX_LIST_BYTES,
    MAX_PAGE_BYTES,
    PAGE_SIZE,
    FrameMetadata,
    bookmark_of,
    frame_of,
    metadata_of,
    page_of,
    refusal_of,
)
from operator_runtime.client.watch_ends import (
    BACKOFF_RESET_S,
    Cause,
    Empty,
    Listed,
    Paging,
    Patience,
    Pause,
    Recovery,
    State,
    Streaming,
    Watching,
    judge,
)

# Bookmarks come each 60 s (59.3 to 60.4 s were measured) and the server's watch cache keeps events for 75 s: a stream
# silent for longer than a bookmark's period and a margin is dead, and resuming it can still succeed.
SILENCE_LIMIT_S = 70.0
# The server ends a watch after a time drawn from here, which spreads reconnects after an API server's restart
# (client-go's MinWatchTimeout and twice that).
TIMEOUT_RANGE_S = (300.0, 600.0)
# So many times fewer objects are requested in a page that did not fit into `MAX_PAGE_BYTES`.
FEWER = 8
# After so many failures in a row of streaming lists that are not plainly transport trouble, pages are tried instead.
STREAMING_TRIES = 2


class Record(Protocol):
    """Fields that the machinery reads of a cached object; kinds add what their reconciler reads."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


R = TypeVar("R", bound=Record)
R_contra = TypeVar("R_contra", bound=Record, contravariant=True)


class WatchSink(Protocol[R_contra]):
    """Receiver of what a `Watch` delivers. All methods are synchronous and quick."""

    def begin(self) -> None:
        """A complete snapshot follows, until `complete`; an unfinished earlier one is void."""

    def put(self, record: R_contra) -> None:
        """The object exists, with this content."""

    def remove(self, record: R_contra) -> None:
        """Remove an object from the watched set: it was deleted, or stopped matching the selector."""

    def complete(self, resource_version: str) -> None:
        """The snapshot begun with `begin` is whole."""

    def unreadable(self, namespace: str, name: str, gone: bool, why: str) -> None:
        """Record an object that is there (or `gone`) but cannot be decoded; the stream goes on."""


@dataclass(frozen=True, slots=True)
class Request:
    """One GET: its query, which shows whether the answer is a stream of lines or one page."""

    query: dict[str, str]

    @property
    def streams(self) -> bool:
        """True when the answer is to be read line by line."""
        return "watch" in self.query

    @property
    def max_bytes(self) -> int:
        """Bound on the answer that is one page, or a list in one piece; the lines of a stream have their own."""
        return MAX_PAGE_BYTES if "limit" in self.query else MAX_LIST_BYTES


class Watch(Generic[R]):
    """One list-and-watch of one scope (a namespace or all of them) and one selector.

    Each line changes the state in place, so that none is made for it. `failures` counts the requests that ended since
    the watch last worked: since a snapshot was complete, or a line was good.
    """

    def __init__(
        self,
        decode: Callable[[msgspec.Raw], R],
        sink: WatchSink[R],
        *,
        label_selector: str = "",
        field_selector: str = "",
        page_size: int = PAGE_SIZE,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """`decode` raises msgspec.DecodeError where it cannot read an object; selectors are as in the API's query."""
        self._decode = decode
        self._sink = sink
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        self._selector = {name: selector for name, selector in selectors.items() if selector}
        self._uniform = uniform
        # How a snapshot is requested, by what this server's answers have shown: objects in a page, or all in one piece
        # where there are no streaming lists; whether there are, as far as is known, and how many failed in a row.
        self._page_size, self._whole = page_size, False
        self._streaming, self._streaming_failures = True, 0
        self._patience = Patience(uniform)
        self._state: State = Empty()
        self.failures = 0

    @property
    def resource_version(self) -> str:
        """Version of the snapshot and what was received since, "" until a snapshot is complete."""
        state = self._state
        return state.resource_version if isinstance(state, Watching | Listed) else ""

    def next_request(self) -> Request:
        match self._state:
            case Watching(version) | Listed(version):
                self._state = Watching(version)
                return Request(self._watch_query(resourceVersion=version))
            case Paging(token) if token:
                return self._page_request(token)
        self._state = Streaming() if self._streaming else Paging()
        self._sink.begin()
        if not self._streaming:
            return self._page_request("")
        # No resourceVersion: the snapshot is as fresh as the moment of the request, never an old replica's.
        return Request(self._watch_query(sendInitialEvents="true", resourceVersionMatch="NotOlderThan"))

    def page(self, body: bytes) -> bool:
        """Take one page; True when the snapshot is complete.

        Raises:
            MalformedAnswer: not a list, or one without a resourceVersion.
            ApiError: a `Status` delivered as 200.
        """
        page = page_of(body)
        for item in page.items or ():
            self._deliver(item, gone=False)
        if page.metadata.continue_:
            self._state = Paging(page.metadata.continue_)
            return False
        self._complete(Listed(page.metadata.resourceVersion))
        return True

    def line(self, line: bytes) -> None:
        """Take one line of a stream.

        Raises:
            ApiError: the server ends the stream with an ERROR event, or with a bare `Status`.
            MalformedAnswer: not a watch event.
        """
        frame = frame_of(line)
        match frame.type:
            case "ADDED" | "MODIFIED":
                version = self._deliver(frame.object, gone=False)
            case "DELETED":
                version = self._deliver(frame.object, gone=True)
            case "BOOKMARK":
                self._bookmark(bookmark_of(frame.object))
                return
            case _:
                raise refusal_of(frame, line)
        state = self._state
        if isinstance(state, Watching):
            state.events += 1
            if version:
                state.resource_version = version
                self.failures = 0
        elif isinstance(state, Streaming):
            state.events += 1

    def last_line(self, rest: bytes) -> None:
        """Take what came after the last newline: a whole event that lost its newline, or half of one, which is dropped.

        The half is not lost: the resumed watch begins before it.

        Raises:
            MalformedAnswer: not even half an event; otherwise as `line`.
        """
        rest = rest.strip()
        if not rest:
            return
        try:
            self.line(rest)
        except MalformedAnswer:
            if not rest.startswith(b"{"):
                raise

    def ended(self, error: KubeError | None, lasted_s: float, received_bytes: int) -> Pause:
        """Decide what comes next and when, as the request ended by itself (`error` None) or by a failure.

        Args:
            error: what ended it, from the client, from `line` or from `page`.
            lasted_s: seconds since it was sent.
            received_bytes: bytes of the answer's body; 0 from a stream means that it was silent from end to end.
        """
        if lasted_s >= BACKOFF_RESET_S and received_bytes:
            self._patience.server_works()
        if error is None and isinstance(self._state, Paging | Listed):
            self._patience.server_works()
            return Pause(0.0, Cause.CLOSED, 0)
        self.failures += 1
        cause, recovery = judge(self._state, error, lasted_s, received_bytes, self.failures)
        self._recover(recovery)
        if cause is Cause.CLOSED:
            self._patience.all_is_well()
            self.failures = 0
            return Pause(0.0, cause, 0)
        return Pause(self._patience.pause_s(cause, error), cause, self.failures)

    def _recover(self, recovery: Recovery) -> None:
        match recovery:
            case Recovery.NONE:
                return
            case Recovery.SMALLER_PAGES:
                self._page_size = max(self._page_size // FEWER, 1)
                return
            case Recovery.RELIST_WHOLE:
                self._whole = True
            case Recovery.DOUBT_STREAMING:
                self._streaming_failures += 1
                self._streaming = self._streaming_failures < STREAMING_TRIES
            case Recovery.NO_STREAMING:
                self._streaming = False
        self._state = Empty()

    def _complete(self, state: Listed | Watching) -> None:
        self._state = state
        self._whole = False
        self._streaming_failures = self.failures = 0
        self._sink.complete(state.resource_version)

    def _page_request(self, token: str) -> Request:
        paging = {} if self._whole else {"limit": str(self._page_size)}
        return Request(self._selector | paging | ({"continue": token} if token else {}))

    def _watch_query(self, **more: str) -> dict[str, str]:
        timeout_s = int(self._uniform(*TIMEOUT_RANGE_S))
        return {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(timeout_s), **self._selector, **more}

    def _deliver(self, raw: msgspec.Raw, *, gone: bool) -> str:
        """Deliver one object to the sink, and return its version, which for a `gone` one is that of its leaving."""
        try:
            record = self._decode(raw)
        except UNDECODABLE as error:
            metadata = metadata_of(raw)
            problem = error.problem if isinstance(error, UnreadableObject) else str(error)
            self._sink.unreadable(metadata.namespace, metadata.name, gone, problem)
            return metadata.resourceVersion
        if gone:
            self._sink.remove(record)
        else:
            self._sink.put(record)
        return record.resource_version

    def _bookmark(self, bookmark: FrameMetadata) -> None:
        state = self._state
        if isinstance(state, Watching):
            state.resource_version = bookmark.resourceVersion
            self.failures = 0
        elif isinstance(state, Streaming) and bookmark.ends_snapshot:
            self._complete(Watching(bookmark.resourceVersion, state.events))
