"""The rules of list and watch, as a state machine that does no I/O.

A `Watch` says which request comes next (`next_request`), is fed what came back (`page`, `line`, `ended`), calls a sink
with what it means, and says how long to pause before the next request. All rules on 410, ERROR events, bookmarks,
resourceVersions, silence and backoff are here, so that they can be read in one place and tested as tables; moving bytes
and time is the reflector's.

The way round: a *snapshot* (one streaming list, or pages where the server has no streaming lists) brings the sink
every object; then *resumed* watches carry that on from the last resourceVersion. What the server says decides whether
a failure costs a new snapshot or only a new stream. Design and numbers follow client-go's reflector and kube-rs'
watcher, and what a real API server was seen to answer; each departure says why.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

import msgspec

from operator_runtime.client.errors import (
    UNDECODABLE,
    AnswerTooLong,
    ApiError,
    Expired,
    Forbidden,
    Invalid,
    KubeError,
    MalformedAnswer,
    NotFound,
    ResourceVersionTooLarge,
    ServerError,
    StreamStalled,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from operator_runtime.client.frames import (
    MAX_LIST_BYTES,
    MAX_PAGE_BYTES,
    PAGE_SIZE,
    bookmark_of,
    frame_of,
    metadata_of,
    page_of,
    refusal_of,
    smaller_page,
)
from operator_runtime.client.retry import Backoff

# Bookmarks come each 60 s (59.3 to 60.4 s were measured) and the server's watch cache keeps events for 75 s: a stream
# silent for longer than a bookmark's period and a margin is dead, and resuming it can still succeed.
SILENCE_LIMIT_S = 70.0
# The server ends a watch after a time drawn from here, which spreads reconnects after an API server's restart
# (client-go's MinWatchTimeout and twice that).
TIMEOUT_RANGE_S = (300.0, 600.0)
# client-go's reflector backoff, 0.8 s doubling and forgotten after two healthy minutes, but to 10 s and not 30 s: that
# is meant for the informers of every node of a cluster. An operator has three, and after an outage people wait for it.
BACKOFF_FIRST_S = 0.8
BACKOFF_LONGEST_S = 10.0
BACKOFF_RESET_S = 120.0
# A missing permission or CRD is mended by a person who is waiting for the effect: never wait longer than this. It says
# nothing about the server, so it has a count of its own: what fails first once it is mended is a first failure.
MENDABLE_LONGEST_S = 5.0
# A watch that ends sooner than this without an event is a failure (client-go's VeryShortWatchError), or we would spin.
SHORT_WATCH_S = 1.0
# After so many failures in a row of streaming lists that are not plainly transport trouble, pages are tried instead.
STREAMING_TRIES = 2
# After so many failures in a row of resuming, where the server answers but not with a watch, a new snapshot is taken.
RESUME_TRIES = 5


class Record(Protocol):
    """What the machinery needs to know of a cached object; kinds add what their reconciler reads."""

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
    """Where a `Watch` delivers. All methods are synchronous and quick."""

    def begin(self) -> None:
        """A complete snapshot follows, until `complete`; an unfinished earlier one is void."""

    def put(self, record: R_contra) -> None:
        """The object is there and looks like this."""

    def remove(self, record: R_contra) -> None:
        """The object is no longer in the watched set: deleted, or it stopped matching the selector."""

    def complete(self, resource_version: str) -> None:
        """The snapshot begun with `begin` is whole."""

    def unreadable(self, namespace: str, name: str, gone: bool, why: str) -> None:
        """The object is there (or `gone`) but cannot be decoded; the stream goes on."""


class Mode(StrEnum):
    """What the next request is."""

    STREAMING_LIST = "streaming list"
    PAGES = "paged list"
    RESUMED = "watch"


class Cause(StrEnum):
    """Why a request ended, as metrics and logs name it."""

    CLOSED = "closed"
    SHORT = "short"
    SILENT = "silent"
    EXPIRED = "expired"
    TOO_LARGE = "version_too_large"
    THROTTLED = "throttled"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    UNSUPPORTED = "unsupported"
    UNREACHABLE = "unreachable"
    MALFORMED = "malformed"
    SERVER_ERROR = "server_error"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Request:
    """One GET: its query, and whether the answer is a stream of lines or one page."""

    mode: Mode
    query: dict[str, str]

    @property
    def streams(self) -> bool:
        """True when the answer is to be read line by line."""
        return self.mode is not Mode.PAGES

    @property
    def max_bytes(self) -> int:
        """Bound on the answer that is one page, or a list in one piece; the lines of a stream have their own."""
        return MAX_PAGE_BYTES if "limit" in self.query else MAX_LIST_BYTES


@dataclass(frozen=True, slots=True)
class Pause:
    """What follows an ended request: wait `seconds`; `failures` in a row so far (0: all is well)."""

    seconds: float
    cause: Cause
    failures: int


class Watch(Generic[R]):
    """One list-and-watch of one scope (a namespace or all of them) and one selector.

    Invariants:
        `resource_version` is "" until a snapshot is complete; then it is the last one that this stream has vouched for,
        and belongs to this scope and selector alone.
        While a snapshot is being built (`_building`), nothing moves `resource_version`: a streaming list's objects come
        in key order, not in the order of their versions.
        `failures` counts ended requests since the watch last worked: since a snapshot was complete, or a line was good.
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
        """
        Args:
            decode: an object's JSON to its slim record; raises msgspec.DecodeError where it cannot.
            sink: receives the snapshot and its changes.
            label_selector: as in the API's query, "" for all objects.
            field_selector: likewise.
            page_size: objects per page where pages are needed.
            uniform: the source of jitter.
        """
        self._decode = decode
        self._sink = sink
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        self._selector = {name: selector for name, selector in selectors.items() if selector}
        self._page_size = page_size
        self._uniform = uniform
        self._backoff = Backoff(BACKOFF_FIRST_S, BACKOFF_LONGEST_S, uniform=uniform)
        self._attempts = self._attempts_to_mend = 0
        self._last_cause: Cause | None = None
        self._streaming_failures = 0
        self._unpaged = False
        self._continue = ""
        self._building = False
        self._events = 0
        self._mode = Mode.STREAMING_LIST
        self.failures = 0
        self.resource_version = ""
        self.streaming_lists = True

    def next_request(self) -> Request:
        """The GET to send now."""
        self._events = 0
        if self.resource_version:
            self._mode = Mode.RESUMED
            return Request(self._mode, self._watch_query(resourceVersion=self.resource_version))
        if self.streaming_lists:
            self._mode = Mode.STREAMING_LIST
            self._begin()
            # No resourceVersion: the snapshot is as fresh as the moment of the request, never an old replica's.
            query = self._watch_query(sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
            return Request(self._mode, query)
        self._mode = Mode.PAGES
        if not self._continue:
            self._begin()
        paging = {} if self._unpaged else {"limit": str(self._page_size)}
        resume = {"continue": self._continue} if self._continue else {}
        return Request(self._mode, self._selector | paging | resume)

    def page(self, body: bytes) -> bool:
        """Take one page; True when the snapshot is complete.

        Raises:
            MalformedAnswer: not a list, or one without a resourceVersion.
            ApiError: a `Status` delivered as 200.
        """
        page = page_of(body)
        for item in page.items or ():
            self._deliver(item, gone=False)
        self._continue = page.metadata.continue_
        if self._continue:
            return False
        self._complete(page.metadata.resourceVersion)
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
                self._events += 1
                version = self._deliver(frame.object, gone=False)
            case "DELETED":
                self._events += 1
                version = self._deliver(frame.object, gone=True)
            case "BOOKMARK":
                version = self._bookmark(frame.object)
            case _:
                raise refusal_of(frame, line)
        if version and not self._building:
            self.resource_version = version
            self.failures = 0

    def last_line(self, rest: bytes) -> None:
        """Take what came after the last newline: a whole event that lost its newline, or half of one, which is dropped.

        The half is not lost: the resumed watch begins before it.

        Raises:
            ApiError: as `line` does.
            MalformedAnswer: not even half an event.
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
        """The request ended, by itself (`error` None) or by a failure; decide what comes next and when.

        Args:
            error: what ended it, from the client, from `line` or from `page`.
            lasted_s: seconds since it was sent.
            received_bytes: bytes of the answer's body; 0 from a stream means that it was silent from end to end.
        """
        if lasted_s >= BACKOFF_RESET_S and received_bytes:
            self._attempts = 0
        if error is None and self._mode is Mode.PAGES:
            self._attempts = 0
            return Pause(0.0, Cause.CLOSED, 0)
        # A streaming list goes on as a watch once its snapshot is complete.
        mode = self._mode if self._building else Mode.RESUMED
        self.failures += 1
        cause = self._judge(error, mode, lasted_s, received_bytes)
        if cause is Cause.CLOSED:
            self._attempts = self._attempts_to_mend = self.failures = 0
            self._last_cause = None
            return Pause(0.0, cause, 0)
        delay_s = self._delay_s(cause)
        self._last_cause = cause
        if isinstance(error, ApiError) and error.retry_after_s is not None:
            delay_s = max(delay_s, error.retry_after_s + self._uniform(0.0, BACKOFF_FIRST_S))
        return Pause(delay_s, cause, self.failures)

    def _delay_s(self, cause: Cause) -> float:
        """Count one more failure of its sort, and say how long to be patient with it."""
        if cause in (Cause.FORBIDDEN, Cause.NOT_FOUND):
            self._attempts_to_mend += 1
            return min(self._backoff.delay_s(self._attempts_to_mend), MENDABLE_LONGEST_S)
        self._attempts_to_mend = 0
        self._attempts += 1
        if cause is not self._last_cause and cause in (Cause.EXPIRED, Cause.SILENT, Cause.UNSUPPORTED):
            # The remedy is known and is not more of the same, also after an outage, which ends with a 410. The count
            # goes on: a remedy that does not help is not to be tried without a pause.
            return 0.0
        return self._backoff.delay_s(self._attempts)

    def _judge(self, error: KubeError | None, mode: Mode, lasted_s: float, received_bytes: int) -> Cause:
        """Name the cause, and forget whatever must not be resumed from."""
        silent = received_bytes == 0
        match error:
            case None if mode is Mode.STREAMING_LIST:
                cause = Cause.SHORT  # it ended before its snapshot was complete
            case None if silent and lasted_s >= SHORT_WATCH_S:
                # A watch from a version ahead of the server's (an etcd restored from a backup) is answered with 200 and
                # then nothing at all, for ever: only a new snapshot gets out of it.
                self._forget()
                return Cause.SILENT
            case None if lasted_s < SHORT_WATCH_S and self._events == 0:
                cause = Cause.SHORT
            case None:
                return Cause.CLOSED
            case StreamStalled():
                if silent:
                    self._forget()
                cause = Cause.SILENT
            case Expired():
                if mode is Mode.PAGES and self._continue:
                    self._unpaged = True  # the pages take longer than the server keeps a version: ask for all at once
                self._forget()
                return Cause.EXPIRED
            case ResourceVersionTooLarge():
                self._forget()
                return Cause.TOO_LARGE
            case TooManyRequests():
                return Cause.THROTTLED
            case Unreachable():
                return Cause.UNREACHABLE
            case Unauthorized():
                return Cause.UNAUTHORIZED
            case Forbidden():
                return Cause.FORBIDDEN
            case NotFound():
                return Cause.NOT_FOUND
            case Invalid():
                cause = Cause.UNSUPPORTED
            case ServerError(status=500):
                cause = Cause.SERVER_ERROR
            case ServerError():
                return Cause.SERVER_ERROR  # a gateway, or a server that boots: says nothing about what was asked for
            case AnswerTooLong():
                self._page_size = smaller_page(self._page_size)
                return Cause.MALFORMED
            case MalformedAnswer():
                cause = Cause.MALFORMED
            case _:
                return Cause.OTHER
        if mode is Mode.STREAMING_LIST:
            # A server without streaming lists says 400 or 422; one whose etcd cannot serve them says 500 or nothing.
            self._streaming_failures += 1
            if isinstance(error, Invalid) or self._streaming_failures >= STREAMING_TRIES:
                self.streaming_lists = False
        elif isinstance(error, Invalid) or (mode is Mode.RESUMED and self.failures >= RESUME_TRIES):
            self._forget()  # a version or a continue token that the server does not even parse, or chokes on
        return cause

    def _forget(self) -> None:
        self.resource_version = ""
        self._continue = ""

    def _begin(self) -> None:
        self._building = True
        self._continue = ""
        self._sink.begin()

    def _complete(self, resource_version: str) -> None:
        self._building = False
        self._unpaged = False
        self._streaming_failures = self.failures = 0
        self.resource_version = resource_version
        self._sink.complete(resource_version)

    def _watch_query(self, **more: str) -> dict[str, str]:
        timeout_s = int(self._uniform(*TIMEOUT_RANGE_S))
        return {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(timeout_s), **self._selector, **more}

    def _deliver(self, raw: msgspec.Raw, *, gone: bool) -> str:
        """Tell the sink of one object; its version, which for a `gone` one is that of its leaving."""
        try:
            record = self._decode(raw)
        except UNDECODABLE as error:
            metadata = metadata_of(raw)
            self._sink.unreadable(metadata.namespace, metadata.name, gone, str(error))
            return metadata.resourceVersion
        if gone:
            self._sink.remove(record)
        else:
            self._sink.put(record)
        return record.resource_version

    def _bookmark(self, raw: msgspec.Raw) -> str:
        bookmark = bookmark_of(raw)
        if self._building and bookmark.ends_snapshot:
            self._complete(bookmark.resourceVersion)
        return bookmark.resourceVersion
