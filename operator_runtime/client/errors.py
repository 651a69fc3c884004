"""The closed set of things that can go wrong on the wire, and the one function that tells them apart.

Callers `match` on these classes; no status code is read again. A real API server answers with an HTTP status and a
`Status` body, an ERROR event in the middle of a watch, a `Status` under HTTP 200, and text where a proxy or an
unregistered path speaks.
"""

from __future__ import annotations

import re

import msgspec

from operator_runtime.client.retry import MAX_RETRY_AFTER_S, check_seconds

# What decoding bytes from the wire can raise: also text that is no UTF-8, and nesting deeper than Python's stack.
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class StatusCause(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True):
    """`Status.details`: the object that the answer is about."""

    name: str | None = None
    kind: str | None = None
    causes: tuple[StatusCause, ...] | None = None
    retryAfterSeconds: int | None = None


class ApiStatus(msgspec.Struct, frozen=True):
    """`meta/v1 Status`, as far as it is read. Every field may be missing: proxies shorten it."""

    kind: str | None = None
    status: str | None = None
    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: StatusDetails | None = None


class KubeError(Exception):
    """Anything that keeps an API call or a watch from succeeding."""


class Unreachable(KubeError):
    """Failure without an answer: refused, reset, no route, DNS, TLS, timeout. Whether a write happened is not known."""


class StreamStalled(KubeError):
    """A watch stream carried no byte for longer than it may."""


class MalformedAnswer(KubeError):
    """Bytes that are not what the API speaks: HTML with 200, a line over the bound, a truncated body."""


class AnswerTooLong(MalformedAnswer):
    """Answer of more bytes than are read of one; of a list, fewer objects at once may fit."""


class AuthenticationUnavailable(KubeError):
    """Lack of a credential: a token file is missing, an exec plugin fails. The message names it and the remedy."""


class UnreadableObject(msgspec.DecodeError, KubeError):
    """An object's JSON does not fit its kind's type; the message names object, field and problem.

    A watch reports it once, keeps what it knew of the object, and goes on. `name` has its kind, namespace and name.
    """

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, problem)
        self.name = name
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.name}: {self.problem}"


class WriteRefused(KubeError):
    """Refusal to send a write of this process now: it does not lead, or its right to write has run out."""


class ApiError(KubeError):
    """The API server answered, and the answer is no.

    Attributes:
        status: HTTP status code, or `Status.code` of an ERROR event.
        reason: `Status.reason`, "" when the server gave none.
        retry_after_s: seconds to wait at least, None when the server did not send it.
        causes: the fields that the answer is about.
        name: of the object that the answer is about, "" where it names none.
    """

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        retry_after_s: float | None = None,
        causes: tuple[StatusCause, ...] = (),
        name: str = "",
    ) -> None:
        super().__init__(status, reason, message)
        if retry_after_s is not None:
            check_seconds("retry_after_s", retry_after_s)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        self.causes = causes
        self.name = name

    def __str__(self) -> str:
        return f"{self.status} {self.reason or type(self).__name__}: {self.message or 'no message'}"


class Expired(ApiError):
    """410: the resourceVersion or the continue token is too old (reason Expired or Gone)."""


class ResourceVersionTooLarge(ApiError):
    """504 Timeout with cause ResourceVersionTooLarge: the server is behind the resourceVersion that was requested."""


class TooManyRequests(ApiError):
    """429: the server requests patience."""


class Unauthorized(ApiError):
    """401: the credential is missing, wrong or out of date."""


class Forbidden(ApiError):
    """403: RBAC, a quota, an admission plugin or a terminating namespace refuses. Or a policy or an admission webhook
    does, with whichever code it likes."""


class NotFound(ApiError):
    """404: no such object, or no such kind."""


class Conflict(ApiError):
    """409: a precondition (resourceVersion, uid, a field's manager) does not hold, or the name is taken."""


class Invalid(ApiError):
    """400 or 422, or an apply's 500: the request itself is wrong; sending it again cannot help."""


class ServerError(ApiError):
    """500, 502, 503, 504: the server or something before it is in trouble; or 403 of a kind that it is yet to know."""


# Errors that show nothing about the object of the request: whatever its content, the same request may go well a moment
# later, as soon as the server, the way to it, or this client's credential and permissions are in order. A Forbidden may
# come of an admission plugin that dislikes the object; which, no client can tell from a permission that is missing.
NOT_ABOUT_THE_OBJECT: tuple[type[KubeError], ...] = (
    Unreachable,
    StreamStalled,
    MalformedAnswer,
    AuthenticationUnavailable,
    WriteRefused,
    Unauthorized,
    Forbidden,
    Expired,
    ResourceVersionTooLarge,
    TooManyRequests,
    ServerError,
)

_BY_STATUS: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: TooManyRequests,
}


# How an apply is answered, with 500, of which a field does not exist or has another type (structuredmerge.go of
# kube-apiserver); sending it again cannot help.
_WRONG_BODY = "failed to create typed patch object"

# How a write is answered that an admission webhook or a policy denies, by the code that its author chose: 400 where a
# webhook names none, 422 where a ValidatingAdmissionPolicy names no reason, and also 401, 404, 409, 410 and 413, none
# of which means then what it means else (webhook/errors/statuserror.go, policy/validating/dispatcher.go and
# policy/generic/policy_dispatcher.go of k8s.io/apiserver). One that answers 429 or 5xx requests another try.
_DENIED = re.compile(
    r"""admission webhook "[^"]*" denied the request|"""
    r"""policy ['"][^'"]*['"]( with binding ['"][^'"]*['"])? denied request: """,
    re.IGNORECASE,
)

# How a write is answered, with 403, whose object has an owner of a kind that the admission plugin for owner references
# does not know yet. It reads anew which kinds there are every 30 s (options/admission.go of k8s.io/apiserver), so that
# the same request goes well by then.
_YET_TO_KNOW_THE_OWNER = "because cannot find RESTMapping for "


def classify(
    status: int,
    reason: str = "",
    message: str = "",
    retry_after_s: float | None = None,
    causes: tuple[StatusCause, ...] = (),
    name: str = "",
) -> ApiError:
    """The one place that turns a code and a reason into an error of the closed set."""
    kind: type[ApiError]
    if 400 <= status < 500 and status != 429 and _DENIED.search(message):
        kind = Forbidden
    elif reason in ("Expired", "Gone"):
        kind = Expired
    elif any(cause.reason == "ResourceVersionTooLarge" for cause in causes):
        kind = ResourceVersionTooLarge
    elif status == 500 and message.startswith(_WRONG_BODY):
        kind = Invalid
    elif status == 403 and _YET_TO_KNOW_THE_OWNER in message:
        kind = ServerError
    elif status in _BY_STATUS:
        kind = _BY_STATUS[status]
    elif status >= 500:
        kind = ServerError
    else:
        kind = ApiError
    return kind(status, reason, message, retry_after_s, causes, name)


_decode_status = msgspec.json.Decoder(ApiStatus).decode

# A text answer ("404 page not found", a proxy's HTML) is quoted in the message up to here: enough to recognise it.
_QUOTED_TEXT_CHARS = 200


def classify_status(status: ApiStatus, *, http_status: int = 0, retry_after_s: float | None = None) -> ApiError:
    """An error from a decoded `Status`; its own code wins over the HTTP status that carried it."""
    details = status.details or StatusDetails()
    wait_s = retry_after_s
    if wait_s is None and details.retryAfterSeconds is not None:
        wait_s = min(max(float(details.retryAfterSeconds), 0.0), MAX_RETRY_AFTER_S)
    code, causes = status.code or http_status or 500, details.causes or ()
    return classify(code, status.reason or "", status.message or "", wait_s, causes, details.name or "")


def classify_response(http_status: int, body: bytes, retry_after_s: float | None = None) -> ApiError:
    """An error from an HTTP answer of 400 and above, whether or not its body is a `Status`."""
    try:
        status = _decode_status(body)
    except UNDECODABLE:
        status = None
    if status is None or status.kind != "Status":
        text = body[: _QUOTED_TEXT_CHARS * 4].decode("utf-8", "replace").strip()[:_QUOTED_TEXT_CHARS]
        return classify(http_status, "", text, retry_after_s)
    return classify_status(status, http_status=http_status, retry_after_s=retry_after_s)


def classify_event(object_: bytes | msgspec.Raw) -> ApiError:
    """An error from a `Status` that came under HTTP 200: the object of a watch's ERROR event, or a bare one."""
    try:
        return classify_status(_decode_status(object_))
    except UNDECODABLE:
        return classify(500, "", "an error without a readable Status")
