"""Pure: check that a response belongs to the request, and what the body of a write shows of it.

HTTP/1.1 relates an answer to its request by their order alone. Where a server or a proxy loses count, an
object comes well formed in place of another one, and would be believed, or kept in a cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from operator_runtime.client.errors import UNDECODABLE, MalformedAnswer
from operator_runtime.client.json_depth import decode_nested
from operator_runtime.client.resources import Resource

STATUS = "Status"


class _Metadata(msgspec.Struct):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _Item(msgspec.Struct):
    kind: str = ""


class _Answer(msgspec.Struct):
    kind: str = ""
    apiVersion: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    details: _Metadata | None = None


class _List(msgspec.Struct):
    kind: str = ""
    apiVersion: str = ""


class _Items(msgspec.Struct):
    items: list[_Item] | None = None


_decode = msgspec.json.Decoder(_Answer).decode
_decode_list = msgspec.json.Decoder(_List).decode
_decode_items = msgspec.json.Decoder(_Items).decode


class ExpectedObject(NamedTuple):
    """One object that a request is of.

    Attributes:
        namespace: "" for a cluster-scoped one.
        name: "" where the API server makes one.
        uid: "" where it is not known.
        or_status: a `Status` is as good, as to a deletion and to an eviction.
    """

    resource: Resource
    namespace: str
    name: str
    uid: str = ""
    or_status: bool = False

    def check(self, body: bytes) -> None:
        """Raise MalformedAnswer where an answer is of something else."""
        # How the API server writes Kubernetes' own kinds, which saves reading most of them: 7 us of a Deployment.
        if self.name and body.startswith(self._beginning()):
            return
        try:
            found = decode_nested(_decode, body)
        except UNDECODABLE:
            raise MalformedAnswer(f"requested {self}, received something that is not an API object") from None
        resource, metadata = self.resource, found.metadata
        if self.or_status and found.kind == STATUS:
            details = found.details or _Metadata()
            matches = details.name in ("", self.name) and (not self.uid or details.uid in ("", self.uid))
        else:
            matches = (
                (found.apiVersion, found.kind) == (resource.api_version, resource.kind)
                and metadata.namespace == (self.namespace if resource.namespaced else "")
                and self.name in ("", metadata.name)
                and self.uid in ("", metadata.uid)
            )
        if not matches:
            came = _named(found.kind or "an object of no kind", metadata.namespace, metadata.name, metadata.uid)
            raise MalformedAnswer(f"requested {self}, received {came}")

    def __str__(self) -> str:
        return _named(self.resource.kind, self.namespace, self.name or "(a new one)", self.uid)

    def _beginning(self) -> bytes:
        resource = self.resource
        scope = f',"namespace":"{self.namespace}"' if resource.namespaced else ""
        uid = f',"uid":"{self.uid}"' if self.uid else ""
        return (
            f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'
            f'"metadata":{{"name":"{self.name}"{scope}{uid},'
        ).encode()


class ExpectedList(NamedTuple):
    """A list of objects of a kind."""

    resource: Resource

    def check(self, body: bytes) -> None:
        """Raise MalformedAnswer where an answer is of another kind, or no list."""
        resource = self.resource
        beginning = f'{{"kind":"{resource.kind}List","apiVersion":"{resource.api_version}",'.encode()
        other_order = f'{{"apiVersion":"{resource.api_version}","kind":"{resource.kind}List",'.encode()
        if body.startswith((beginning, other_order)):
            return
        try:
            found = decode_nested(_decode_list, body)
        except UNDECODABLE:
            return  # `frames.page_of` reports what is no list at all, and so it does of a `Status`
        if found.kind == STATUS or (found.kind, found.apiVersion) == (f"{resource.kind}List", resource.api_version):
            return
        # A CustomResourceDefinition may choose the name of its kind's lists; their items name the kind.
        custom = "." in resource.group and not resource.group.endswith(".k8s.io")
        if found.apiVersion == resource.api_version and custom and _is_of(resource, body):
            return
        raise MalformedAnswer(
            f"requested a list of {resource.qualified_name}, received {found.kind or 'no kind'}"
            f" of {found.apiVersion or 'no apiVersion'}"
        )


def _is_of(resource: Resource, body: bytes) -> bool:
    """Report whether a body is a list whose items name that kind."""
    try:
        items = decode_nested(_decode_items, body).items
    except UNDECODABLE:
        return False
    return items is not None and all(each.kind == resource.kind for each in items)


class ExpectedReview(NamedTuple):
    """A question (`spec`) about a token or a permission, which the API server repeats with its answer."""

    kind: str
    spec: Mapping[str, object]

    def check(self, body: bytes) -> None:
        """Raise MalformedAnswer where an answer is to another question. Neither is quoted: it may be a token."""
        try:
            found = decode_nested(_decode_review, body)
        except UNDECODABLE:
            raise MalformedAnswer(f"requested a {self.kind}, received something that is not an API object") from None
        if found.kind != self.kind:
            raise MalformedAnswer(f"requested a {self.kind}, received {found.kind or 'an object of no kind'}")
        if not _repeats(found.spec or {}, self.spec):
            raise MalformedAnswer(f"requested a {self.kind}, received one of another specification")


class _Review(msgspec.Struct):
    kind: str = ""
    spec: dict[str, Any] | None = None


_decode_review = msgspec.json.Decoder(_Review).decode


def _repeats(answer: object, question: object) -> bool:
    """Report whether an answer repeats all words of a question; what is empty may be left out."""
    if isinstance(question, Mapping):
        return isinstance(answer, Mapping) and all(
            _repeats(answer.get(key, {} if isinstance(value, Mapping) else None), value)
            for key, value in question.items()
            if value
        )
    return not isinstance(question, str) or answer == question


Expected = ExpectedObject | ExpectedList | ExpectedReview
"""Expectation that an answer is checked against."""


def _named(kind: str, namespace: str, name: str, uid: str) -> str:
    key = "/".join(part for part in (namespace, name) if part)
    return f"{kind} {key}{f' of uid {uid}' if uid else ''}".rstrip()


def _metadata_in(body: object) -> Mapping[str, object]:
    metadata = body.get("metadata") if isinstance(body, Mapping) else None
    return metadata if isinstance(metadata, Mapping) else {}


def name_in(body: object) -> str:
    return str(_metadata_in(body).get("name") or "")


def uid_in(body: object) -> str:
    return str(_metadata_in(body).get("uid") or "")


def expected_under(body: object) -> ExpectedObject | None:
    """Return the object that answers a body of a subresource: a `Status`, or what was sent."""
    if not isinstance(body, Mapping) or not body.get("kind"):
        return None
    group, _, version = str(body.get("apiVersion", "")).rpartition("/")
    resource = Resource(group, version, "", str(body["kind"]))
    metadata = _metadata_in(body)
    return ExpectedObject(resource, str(metadata.get("namespace") or ""), name_in(body), or_status=True)


def has_precondition(body: object) -> bool:
    """Report whether a patch names the very object or the version that it is for."""
    metadata = _metadata_in(body)
    return bool(metadata.get("uid") or metadata.get("resourceVersion"))
