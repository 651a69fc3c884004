"""Pure: what the API server asks an admission webhook, and what it may be told: AdmissionReview, admission.k8s.io/v1.

A validating handler gives `Allowed` or `Denied`, a mutating one may give `Patched`, too.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from operator_runtime.client.errors import UNDECODABLE

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Json = dict[str, Any]

REVIEW_VERSION = "admission.k8s.io/v1"
# What Kubernetes' own refusals of these codes give as the reason, which kubectl shows and clients tell errors apart by.
REASONS = {
    400: "BadRequest",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


class MalformedReview(Exception):
    """What was sent is no review that is understood here; the message says why."""


class Decodes(Protocol[T_co]):
    """What an object's JSON becomes; a `Kind` does this."""

    def decode(self, raw: msgspec.Raw, /) -> T_co: ...


class GroupVersionKind(msgspec.Struct, frozen=True):
    """The kind of an object; `group` is "" for the core group."""

    group: str
    version: str
    kind: str


class GroupVersionResource(msgspec.Struct, frozen=True):
    """The resource that a request went to; `group` is "" for the core group."""

    group: str
    version: str
    resource: str


class User(msgspec.Struct, frozen=True):
    """Who sent a request to the API server."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class AdmissionRequest(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One write that asks to be let in.

    Attributes:
        uid: of this question, not of the object; the answer bears it.
        operation: what is asked for. A patch and an apply come as the CREATE or the UPDATE that they amount to.
        kind: of the object, in the version that the webhook's rules name.
        resource: likewise.
        subresource: such as `status`, "" for the object itself.
        namespace: of the object, "" where it has none.
        name: "" in a creation whose name the API server has yet to make (`generateName`), and where a whole collection
            is deleted.
        user: who asks.
        object: as it would be stored; None in a DELETE.
        old_object: as it is stored; None in a CREATE.
        dry_run: nothing will be stored; a handler with side effects must have none then.
        options: CreateOptions, UpdateOptions or DeleteOptions as JSON; {} where the API server tells none.
    """

    uid: str
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    kind: GroupVersionKind
    resource: GroupVersionResource
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    user: User
    object: T | None
    old_object: T | None
    dry_run: bool = False
    options: Json = {}


class Allowed(msgspec.Struct, frozen=True):
    """Let it in.

    Attributes:
        warnings: shown to the user; kubectl prints each on a line of its own. Kubernetes cuts what is longer than 256
            characters, and drops what goes beyond 4096 in all.
    """

    warnings: Sequence[str] = ()


class Denied(msgspec.Struct, frozen=True):
    """Do not let it in.

    Attributes:
        message: why, and what to do instead: the user reads it after `admission webhook "NAME" denied the request:`.
        code: HTTP status code of the API server's answer, 400 to 599. 403 as Kubernetes' own plugins refuse; 422 fits
            where a field has a wrong value.
        warnings: as in `Allowed`.

    Raises:
        ValueError: the code is not that of an error.
    """

    message: str
    code: int = 403
    warnings: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not 400 <= self.code <= 599:
            raise ValueError(f"Denied.code is {self.code}: give that of an error, 400 to 599, such as 403 or 422")


class Patched(msgspec.Struct, frozen=True):
    """Let it in, changed; for mutating handlers.

    Attributes:
        operations: a JSON patch (RFC 6902) of the object, such as `{"op": "add", "path": "/spec/size", "value": 1}`;
            none changes nothing.
        warnings: as in `Allowed`.
    """

    operations: Sequence[Mapping[str, object]]
    warnings: Sequence[str] = ()

    @classmethod
    def between(
        cls, before: Mapping[str, object], after: Mapping[str, object], warnings: Sequence[str] = ()
    ) -> Patched:
        """What makes `after` of `before`, which is the object of the request as it came."""
        return cls(json_patch(before, after), warnings)


Answer = Allowed | Denied | Patched


def json_patch(before: Mapping[str, object], after: Mapping[str, object]) -> list[dict[str, object]]:
    """The operations of a JSON patch (RFC 6902) that make `after` of `before`. Lists that differ are replaced whole."""
    operations: list[dict[str, object]] = []
    _compare("", before, after, operations)
    return operations


def _compare(path: str, before: object, after: object, operations: list[dict[str, object]]) -> None:
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        # 1 == True == 1.0, and JSON tells them apart.
        if msgspec.json.encode(before, order="deterministic") != msgspec.json.encode(after, order="deterministic"):
            operations.append({"op": "replace", "path": path, "value": after})
        return
    for key in before:
        if key not in after:
            operations.append({"op": "remove", "path": f"{path}/{_escaped(key)}"})
    for key, value in after.items():
        beneath = f"{path}/{_escaped(key)}"
        if key in before:
            _compare(beneath, before[key], value, operations)
        else:
            operations.append({"op": "add", "path": beneath, "value": value})


def _escaped(key: str) -> str:
    """A key within a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


_NULL = b"null"
_ABSENT = msgspec.Raw(_NULL)


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    kind: GroupVersionKind
    resource: GroupVersionResource
    user_info: User = User()
    sub_resource: str = ""
    namespace: str = ""
    name: str = ""
    object: msgspec.Raw = _ABSENT
    old_object: msgspec.Raw = _ABSENT
    dry_run: bool = False
    options: Json | None = None


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: _Request | None = None


_decode = msgspec.json.Decoder(_Review).decode


class Unreadable(Exception):
    """The object under review cannot be read as its kind; the webhook's answer says so.

    Attributes:
        uid: of the review.
    """

    def __init__(self, uid: str, why: str) -> None:
        super().__init__(why)
        self.uid = uid


class AnyObject:
    """Decodes objects of any kind to dicts."""

    def decode(self, raw: msgspec.Raw, /) -> Json:
        """A JSON object.

        Raises:
            msgspec.DecodeError: it is none.
        """
        return msgspec.json.decode(raw, type=Json)


def read_review(body: bytes, kind: Decodes[T]) -> AdmissionRequest[T]:
    """The question in a review.

    Args:
        body: an AdmissionReview as JSON.
        kind: what its objects become.

    Raises:
        MalformedReview: it is no AdmissionReview of `REVIEW_VERSION` with a request.
        Unreadable: `kind` cannot read an object.
    """
    try:
        review = _decode(body)
    except UNDECODABLE as error:
        raise MalformedReview(f"no AdmissionReview: {error}") from None
    if (review.api_version, review.kind) != (REVIEW_VERSION, "AdmissionReview"):
        raise MalformedReview(
            f"kind {review.kind!r} of {review.api_version!r}, not an AdmissionReview of {REVIEW_VERSION}"
        )
    asked = review.request
    if asked is None:
        raise MalformedReview("an AdmissionReview without a request")
    try:
        now, before = (_object(each, kind) for each in (asked.object, asked.old_object))
    except (*UNDECODABLE, ValueError) as error:
        raise Unreadable(asked.uid, f"the object cannot be read: {error}") from error
    return AdmissionRequest(
        uid=asked.uid,
        operation=asked.operation,
        kind=asked.kind,
        resource=asked.resource,
        subresource=asked.sub_resource,
        namespace=asked.namespace,
        name=asked.name,
        user=asked.user_info,
        object=now,
        old_object=before,
        dry_run=asked.dry_run,
        options=asked.options or {},
    )


def _object(raw: msgspec.Raw, kind: Decodes[T]) -> T | None:
    return None if bytes(raw) == _NULL else kind.decode(raw)


def write_review(uid: str, answer: Answer) -> bytes:
    """The answer to the question of that uid, as an AdmissionReview in JSON.

    Raises:
        TypeError: a patch has a value that JSON has not.
    """
    response: dict[str, object] = {"uid": uid, "allowed": not isinstance(answer, Denied)}
    if answer.warnings:
        response["warnings"] = list(answer.warnings)
    match answer:
        case Denied(message=message, code=code):
            reason = REASONS.get(code, "")
            response["status"] = {
                "status": "Failure",
                "message": message,
                "code": code,
                **({"reason": reason} if reason else {}),
            }
        case Patched(operations=operations) if operations:
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(msgspec.json.encode(list(operations))).decode()
        case _:
            pass
    return msgspec.json.encode({"apiVersion": REVIEW_VERSION, "kind": "AdmissionReview", "response": response})
