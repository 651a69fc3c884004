"""End of a request of a list and watch: its cause, the recovery, the pause before the next, and the remedy in words.

All of it is values: where the watch is (`State`), what ended the request (`Cause`) and what follows (`Recovery`).
`judge` finds the latter two and changes nothing; `client.watch` applies them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, StrEnum, auto

from operator_runtime.client.errors import (
    AnswerTooLong,
    ApiError,
    AuthenticationUnavailable,
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
from operator_runtime.client.resources import Resource
from operator_runtime.client.retry import Backoff

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
# After so many failures in a row of resuming, where the server answers but not with a watch, a new snapshot is taken.
RESUME_TRIES = 5
# Whom Kubernetes takes a client for that shows no credential, or one of a kind that is not enabled, such as a password.
_ANONYMOUS = '"system:anonymous"'


@dataclass(slots=True)
class Empty:
    """Absence of a snapshot: the next request begins one."""


@dataclass(slots=True)
class Streaming:
    """Snapshot that is built by a streaming list; `events` of this request came so far.

    Its objects come in the order of their keys and not of their versions, so that there is no version before its end.
    """

    events: int = 0


@dataclass(slots=True)
class Paging:
    """Snapshot that is built by pages; the next one is requested by `continue_token`, "" for the first."""

    continue_token: str = ""


@dataclass(slots=True)
class Listed:
    """Snapshot by pages that is complete at `resource_version`; no watch of what follows is begun."""

    resource_version: str


@dataclass(slots=True)
class Watching:
    """Snapshot that is complete, and that a stream carries on. Each of its lines changes this in place.

    Attributes:
        resource_version: the last one that the stream has vouched for.
        events: how many this request has brought, those of a snapshot that it began with included.
    """

    resource_version: str
    events: int = 0


State = Empty | Streaming | Paging | Listed | Watching
"""Where a watch is. A version belongs to its scope and selector alone, and is there where it can be resumed from."""


class Cause(StrEnum):
    """Cause of a request's end, as metrics and logs name it."""

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


class Recovery(Enum):
    """Recovery from the end of a request.

    Attributes:
        NONE: the next request is for the same, or for what comes next.
        RELIST: what is held cannot be resumed from; a new snapshot.
        RELIST_WHOLE: that in one piece, as its pages take longer than the server keeps a version.
        SMALLER_PAGES: fewer objects in a page.
        DOUBT_STREAMING: a new snapshot, and by pages after some failures of streaming lists in a row.
        NO_STREAMING: a new snapshot by pages, as the server has no streaming lists.
    """

    NONE = auto()
    RELIST = auto()
    RELIST_WHOLE = auto()
    SMALLER_PAGES = auto()
    DOUBT_STREAMING = auto()
    NO_STREAMING = auto()


@dataclass(frozen=True, slots=True)
class Pause:
    """Pause after an ended request: wait `seconds`; `failures` in a row so far (0: all is well)."""

    seconds: float
    cause: Cause
    failures: int


def judge(
    state: State, error: KubeError | None, lasted_s: float, received_bytes: int, failures: int
) -> tuple[Cause, Recovery]:
    """Cause of an end, and what follows from it.

    `state` is not one of pages where a request ended by itself: a page came. `failures`: how many in a row, if this is
    one; the other arguments are as in `Watch.ended`.
    """
    silent = received_bytes == 0
    match error:
        case None if isinstance(state, Streaming):
            return Cause.SHORT, _in_doubt(state, failures)  # it ended before its snapshot was complete
        case None if silent and lasted_s >= SHORT_WATCH_S:
            # A watch from a version ahead of the server's (an etcd restored from a backup) is answered with 200 and
            # then nothing at all, for ever: only a new snapshot gets out of it.
            return Cause.SILENT, Recovery.RELIST
        case None if lasted_s < SHORT_WATCH_S and not (isinstance(state, Watching) and state.events):
            return Cause.SHORT, _in_doubt(state, failures)
        case None:
            return Cause.CLOSED, Recovery.NONE
        case StreamStalled() if silent and not isinstance(state, Streaming):
            return Cause.SILENT, Recovery.RELIST
        case StreamStalled():
            return Cause.SILENT, _in_doubt(state, failures)
        case Expired() if isinstance(state, Paging) and state.continue_token:
            return Cause.EXPIRED, Recovery.RELIST_WHOLE
        case Expired():
            return Cause.EXPIRED, Recovery.RELIST
        case ResourceVersionTooLarge():
            return Cause.TOO_LARGE, Recovery.RELIST
        case Invalid() if isinstance(state, Streaming):
            return Cause.UNSUPPORTED, Recovery.NO_STREAMING  # a server without them answers 400 or 422
        case Invalid():
            return Cause.UNSUPPORTED, Recovery.RELIST  # a version or a token that the server does not even parse
        case ServerError(status=500):
            return Cause.SERVER_ERROR, _in_doubt(state, failures)
        case AnswerTooLong():
            return Cause.MALFORMED, Recovery.SMALLER_PAGES
        case MalformedAnswer():
            return Cause.MALFORMED, _in_doubt(state, failures)
        case _:
            return _UNRELATED_CAUSES.get(type(error), Cause.OTHER), Recovery.NONE


def _in_doubt(state: State, failures: int) -> Recovery:
    """Recovery from a failure that may be due to the request itself.

    A server whose etcd cannot serve streaming lists answers 500 or nothing; another chokes on a version.
    """
    match state:
        case Streaming():
            return Recovery.DOUBT_STREAMING
        case Paging():
            return Recovery.NONE
        case _:
            return Recovery.RELIST if failures >= RESUME_TRIES else Recovery.NONE


_UNRELATED_CAUSES = {
    TooManyRequests: Cause.THROTTLED,
    Unreachable: Cause.UNREACHABLE,
    Unauthorized: Cause.UNAUTHORIZED,
    Forbidden: Cause.FORBIDDEN,
    NotFound: Cause.NOT_FOUND,
    ServerError: Cause.SERVER_ERROR,  # a gateway, or a server that boots
}


def remedy_for(error: KubeError | None, resource: Resource, selectors: str) -> str:
    """The remedy for what keeps a watch from working, in a sentence; "" where the error's message ends with that.

    `error` is None where the answers end without an event; `selectors` is a text.
    """
    match error:
        case NotFound():
            return f"The kind {resource.kind} is not served: install the definition (CRD) {resource.qualified_name}."
        case Forbidden(message=message) if _ANONYMOUS in message:
            return (
                "The request carried no credential that the API server takes: "
                "name a user with a token or a client certificate."
            )
        case Forbidden():
            return f"Grant list and watch on {resource.qualified_name} to the operator's account."
        case Unauthorized():
            return "Give the operator a credential that the API server accepts."
        case Unreachable():
            return "Check that the API server runs and is reachable from here."
        case AuthenticationUnavailable():
            return ""  # its message ends with the remedy
        case Invalid() if selectors:
            return f"Correct the selector {selectors!r}, which the operator's code or settings specify."
        case ApiError():
            return "See the API server's log."
        case _:
            return "Check what is between the operator and the API server: a proxy, a load balancer."


class Patience:
    """Delay before the next request, by the failures in a row."""

    def __init__(self, uniform: Callable[[float, float], float]) -> None:
        self._uniform = uniform
        self._backoff = Backoff(BACKOFF_FIRST_S, BACKOFF_LONGEST_S, uniform=uniform)
        self._attempts = self._attempts_to_mend = 0
        self._last_cause: Cause | None = None

    def server_works(self) -> None:
        """Count anew what shows something about the server."""
        self._attempts = 0

    def all_is_well(self) -> None:
        """Count anew whatever fails."""
        self._attempts = self._attempts_to_mend = 0
        self._last_cause = None

    def pause_s(self, cause: Cause, error: KubeError | None) -> float:
        """Count one more failure, and return how many seconds to wait; a wait that the server requests is a minimum."""
        delay_s = self._delay_s(cause)
        self._last_cause = cause
        if isinstance(error, ApiError) and error.retry_after_s is not None:
            delay_s = max(delay_s, error.retry_after_s + self._uniform(0.0, BACKOFF_FIRST_S))
        return delay_s

    def _delay_s(self, cause: Cause) -> float:
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
