"""Objects as caches and reconcilers hold them: the metadata of every object, and the parts that a kind declares.

What the caches hold is shared by all who read it: an object is never changed in place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.watch import Record

S = TypeVar("S")
T = TypeVar("T")


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One entry of `metadata.ownerReferences`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Metadata of any object, managedFields excepted.

    Attributes:
        namespace: "" for a cluster-scoped object.
        resource_version: "" in an object that is yet to be stored.
        generation: counts changes of the spec; 0 for kinds that do not count them.
        creation_timestamp: RFC 3339, "" in an object that was never stored.
        deletion_timestamp: RFC 3339, "" while it is not being deleted.
    """

    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owners: tuple[OwnerReference, ...] = msgspec.field(default=(), name="ownerReferences")
    creation_timestamp: str = ""
    deletion_timestamp: str = ""


class ApiObject(Record, Protocol):
    """Attributes that `Object` and `PlainObject` share; any other type that has them can be used in their place."""

    @property
    def generation(self) -> int: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def annotations(self) -> Mapping[str, str]: ...
    @property
    def finalizers(self) -> tuple[str, ...]: ...
    @property
    def owners(self) -> tuple[OwnerReference, ...]: ...
    @property
    def deleting(self) -> bool: ...
    @property
    def key(self) -> ObjectKey: ...


class _Described(msgspec.Struct, frozen=True):
    """An object by its metadata."""

    metadata: Metadata

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def uid(self) -> str:
        """Uid, which differs from that of its successors of the same name."""
        return self.metadata.uid

    @property
    def resource_version(self) -> str:
        return self.metadata.resource_version

    @property
    def generation(self) -> int:
        """Number of its spec's version, from 1; 0 for kinds that do not count."""
        return self.metadata.generation

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.metadata.annotations

    @property
    def finalizers(self) -> tuple[str, ...]:
        """Finalizers that must be removed before it goes."""
        return self.metadata.finalizers

    @property
    def owners(self) -> tuple[OwnerReference, ...]:
        return self.metadata.owners

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner that controls it, None without one."""
        return next((owner for owner in self.metadata.owners if owner.controller), None)

    @property
    def deleting(self) -> bool:
        """Report whether it is being deleted, which its finalizers may still hold up."""
        return bool(self.metadata.deletion_timestamp)

    @property
    def key(self) -> ObjectKey:
        """Key under which a store holds it."""
        return ObjectKey(self.metadata.namespace, self.metadata.name)


class Object(_Described, Generic[S, T], frozen=True):
    """An object whose spec and status have types."""

    spec: S
    status: T


class PlainObject(_Described, frozen=True):
    """An object of a kind without a model: its whole body, managedFields excepted, as dicts and lists."""

    body: dict[str, Any]


def same(before: object, after: object) -> bool:
    """Report whether two versions of an object differ in nothing but resourceVersion, as far as they were decoded.

    A change of managedFields alone, or of a part that is not decoded, makes such a version. False where it cannot be
    known.
    """
    try:
        return type(before) is type(after) and _unversioned(before) == _unversioned(after)
    except (TypeError, ValueError):  # of no such type, or without a version
        return False


def _unversioned(obj: Any) -> object:
    match obj:
        case PlainObject():
            metadata = obj.body["metadata"] | {"resourceVersion": ""}
            return _unversioned(obj.metadata), obj.body | {"metadata": metadata}
        case Object():
            return _unversioned(obj.metadata), obj.spec, obj.status
        case msgspec.Struct():
            return msgspec.structs.replace(obj, resource_version="")
        case _:
            return dataclasses.replace(obj, resource_version="")


class _Document(msgspec.Struct):
    """Parts that are not declared are skipped, not decoded."""

    metadata: Metadata
    spec: msgspec.Raw = msgspec.Raw()
    status: msgspec.Raw = msgspec.Raw()


_decode_document = msgspec.json.Decoder(_Document).decode
_decode_body = msgspec.json.Decoder(dict[str, Any]).decode
_STORED = {"name": "name", "uid": "uid", "resource_version": "resourceVersion"}


def parts_of(raw: msgspec.Raw | bytes) -> tuple[Metadata, msgspec.Raw, msgspec.Raw]:
    """Metadata, spec and status of an object; the latter two as they came, empty where they are missing.

    Raises msgspec.DecodeError where it is no object of the API; so does `plain_object`.
    """
    try:
        document = _decode_document(raw)
    except msgspec.ValidationError:
        document = _decode_document(_without_nulls(raw))
    metadata = document.metadata
    if not (metadata.name and metadata.uid and metadata.resource_version):
        missing = next(field for attribute, field in _STORED.items() if not getattr(metadata, attribute))
        raise msgspec.ValidationError(f"Object missing required field `{missing}` - at `$.metadata`")
    return metadata, document.spec, document.status


def _without_nulls(raw: msgspec.Raw | bytes) -> bytes:
    """The same, without fields of the metadata that are null: Go may write an empty value so."""
    body = _decode_body(raw)
    if isinstance(metadata := body.get("metadata"), dict):
        body["metadata"] = {field: value for field, value in metadata.items() if value is not None}
    return msgspec.json.encode(body)


def plain_object(raw: msgspec.Raw | bytes, api_version: str, kind: str) -> PlainObject:
    """An object with its whole body from its JSON; the items of a list are sent without apiVersion and kind."""
    body: dict[str, Any] = {"apiVersion": api_version, "kind": kind, **_decode_body(raw)}
    metadata = body.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return PlainObject(parts_of(raw)[0], body)
