"""Types of the parts that all objects of a Memcached have in common, as far as this operator manages them.

One set of structs serves both ways: a desired object of a Memcached is built from them, and a live object is decoded
into them, which leaves out every field that is not owned. A field that is None is not owned.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, TypeVar

import msgspec

from memcached_operator.api.names import API_VERSION, KIND
from memcached_operator.core.objects.labels import OWNER_UID_ANNOTATION, Owner, labels
from operator_runtime import Fields


class OwnerRef(Fields, frozen=True, omit_defaults=True):  # `metadata.ownerReferences[]`
    entry_key: ClassVar[str] = "uid"

    apiVersion: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    blockOwnerDeletion: bool | None = None


def controller_of(owners: Iterable[OwnerRef] | None) -> OwnerRef | None:
    """The owner that controls an object, if it has one."""
    for owner in owners or ():
        if owner.controller:
            return owner
    return None


class ObjectMeta(Fields, frozen=True, omit_defaults=True):  # `metadata`, as far as it is read or written
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resourceVersion: str | None = None
    generation: int | None = None
    deletionTimestamp: str | None = None
    finalizers: tuple[str, ...] | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    ownerReferences: tuple[OwnerRef, ...] | None = None


class Manifest(Fields, frozen=True, omit_defaults=True):
    """An object, as far as a Memcached has an opinion about it."""

    apiVersion: str | None = None
    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()

    def body(self) -> dict[str, Any]:
        """Convert to the dict that a manifest has."""
        return as_json(self)


class Identity(msgspec.Struct):  # `metadata`, as far as each record has it
    name: str = ""
    uid: str = ""
    resourceVersion: str = ""
    namespace: str = ""


class SeenCondition(msgspec.Struct):  # `status.conditions[]` of an object of others
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


M = TypeVar("M", bound=Manifest)

_encoder = msgspec.json.Encoder(order="deterministic")


def encode(manifest: Manifest) -> bytes:
    """Compact JSON, equal for equal manifests."""
    return _encoder.encode(manifest)


def without_names(manifest: M) -> M:
    """Return what is compared with a live object: all but kind and name, which cannot differ."""
    meta = manifest.metadata
    bare = ObjectMeta(labels=meta.labels, annotations=meta.annotations, ownerReferences=meta.ownerReferences)
    return msgspec.structs.replace(manifest, apiVersion=None, kind=None, metadata=bare)


def comparable(manifest: Manifest) -> bytes:
    """`without_names` as JSON."""
    return encode(without_names(manifest))


def as_json(part: Fields) -> dict[str, Any]:
    """A part of an object as dicts and lists, to be changed at will."""
    found: dict[str, Any] = msgspec.json.decode(_encoder.encode(part))
    return found


def metadata(
    owner: Owner,
    *,
    name: str | None = None,
    more_labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> ObjectMeta:
    """The metadata of an object that a Memcached owns.

    Args:
        name: the object's, None for the Memcached's.
        more_labels: the user's, in addition to the operator's, which stay.
        annotations: likewise.
    """
    reference = OwnerRef(API_VERSION, KIND, owner.name, owner.uid, controller=True, blockOwnerDeletion=True)
    return ObjectMeta(
        name=name or owner.name,
        namespace=owner.namespace,
        labels=(more_labels or {}) | labels(owner.name),
        annotations=(annotations or {}) | {OWNER_UID_ANNOTATION: owner.uid},
        ownerReferences=(reference,),
    )
