"""Pure: the objects of a Memcached, as far as it manages them: their types, how they are held, and how they differ.

One set of structs serves both ways: a desired object is built from them, and a live object is decoded into them, which
leaves out every field that is not owned. A field that is None is not owned.

A record has the owned part of an object as one normalized text, in which the Memcached's name and uid are left out.
Most objects of a kind differ in these alone, so that one such text serves thousands of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Literal, TypeVar

import msgspec

from memcached_operator.api.names import API_VERSION, KIND
from memcached_operator.core.objects.applied_spec import applied_spec
from memcached_operator.core.objects.labels import (
    APPLIED_ANNOTATION,
    OWNER_UID_ANNOTATION,
    SCRIPTS_INFIX,
    MemcachedOwner,
    labels,
)
from operator_runtime import Difference, Fields, ObjectKey, OwnerReference, differences

if TYPE_CHECKING:
    from operator_runtime import Rules


class OwnerRef(Fields, frozen=True, omit_defaults=True):  # `metadata.ownerReferences[]`
    entry_key: ClassVar[str] = "uid"

    apiVersion: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    blockOwnerDeletion: bool | None = None


def controller_of(owners: Iterable[OwnerRef] | None) -> OwnerRef | None:
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
        return as_json(self)


class ObjectIdentity(msgspec.Struct):  # `metadata`, as far as each record has it
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


def without_names(manifest: M) -> M:
    """Return what is compared with a live object: all but kind and name, which cannot differ."""
    meta = manifest.metadata
    bare = ObjectMeta(labels=meta.labels, annotations=meta.annotations, ownerReferences=meta.ownerReferences)
    return msgspec.structs.replace(manifest, apiVersion=None, kind=None, metadata=bare)


def comparable(manifest: Manifest) -> bytes:
    """`without_names` as compact JSON, equal for equal manifests."""
    return _encoder.encode(without_names(manifest))


def as_json(part: Fields) -> dict[str, Any]:
    """A part of an object as dicts and lists, to be changed at will."""
    found: dict[str, Any] = msgspec.json.decode(_encoder.encode(part))
    return found


def metadata(
    owner: MemcachedOwner,
    *,
    name: str | None = None,
    more_labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> ObjectMeta:
    """The metadata of an object that a Memcached owns.

    Args:
        name: the object's, None for the Memcached's.
    """
    reference = OwnerRef(API_VERSION, KIND, owner.name, owner.uid, controller=True, blockOwnerDeletion=True)
    return ObjectMeta(
        name=name or owner.name,
        namespace=owner.namespace,
        labels=(more_labels or {}) | labels(owner.name),
        annotations=(annotations or {}) | {OWNER_UID_ANNOTATION: owner.uid},
        ownerReferences=(reference,),
    )


_NO_OWNER: Final = OwnerRef()
_OWNED_ANNOTATIONS: Final = (OWNER_UID_ANNOTATION, APPLIED_ANNOTATION)
# In JSON of a specification that passes annotations through.
_PASSED: Final = '"service"'
# By which the garbage collector knows what an object's deletion is to do with its dependents.
ORPHAN_FINALIZER, FOREGROUND_FINALIZER = "orphan", "foregroundDeletion"
# JSON has no control characters, so these stand in its text for nothing else, and no text put back has any in it.
_INFIX: Final = SCRIPTS_INFIX.encode()
_NAME, _UID, _SCRIPTS = b"\x00", b"\x01", b"\x02"


class OwnedRecord(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """An object that a Memcached may own: an owned one in full, a foreign one by name only.

    Attributes:
        owner_kind, owner_name: the controlling owner, "" without one.
        made_for_uid: uid of the Memcached that it was made for, by its annotation; survives a lost ownerReference.
        normalized: its owned part, with the name and the uid of the Memcached taken out; b"" for a foreign one.
        finalizers: that keep it while it is being deleted, the garbage collector's own excepted.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    owner_kind: str
    owner_name: str
    owner_uid: str
    made_for_uid: str
    deleting: bool
    normalized: bytes = b""
    finalizers: tuple[str, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        if not self.owner_kind:
            return None
        return OwnerReference(API_VERSION if self.normalized else "", self.owner_kind, self.owner_name, self.owner_uid)

    @property
    def owned(self) -> bytes:
        """JSON of what is compared (`objects.comparable`), b"" for a foreign object."""
        named = self.normalized.replace(_NAME, _quoted(self.name)).replace(_SCRIPTS, _quoted(self.name)[:-1] + _INFIX)
        return named.replace(_UID, _quoted(self.made_for_uid))


def common_fields(meta: ObjectMeta) -> dict[str, Any]:
    """The fields that every record has, but for its form."""
    owner = controller_of(meta.ownerReferences) or _NO_OWNER
    deleting = meta.deletionTimestamp is not None
    return {
        "namespace": meta.namespace or "",
        "name": meta.name or "",
        "uid": meta.uid or "",
        "resource_version": meta.resourceVersion or "",
        "owner_kind": owner.kind if owner.uid else "",
        "owner_name": owner.name,
        "owner_uid": owner.uid,
        "made_for_uid": (meta.annotations or {}).get(OWNER_UID_ANNOTATION, ""),
        "deleting": deleting,
        "finalizers": foreign_finalizers(meta.finalizers) if deleting else (),
    }


def may_be_owned(meta: ObjectMeta) -> bool:
    """Report whether some Memcached controls the object, or it was created for one."""
    owner = controller_of(meta.ownerReferences)
    is_memcacheds = owner is not None and owner.kind == KIND and owner.apiVersion == API_VERSION
    return is_memcacheds or bool((meta.annotations or {}).get(OWNER_UID_ANNOTATION))


def normalized_of(manifest: Manifest, name: str, made_for_uid: str) -> bytes:
    """The normalized text of an object of which `manifest` has all that may be owned."""
    owned = nameless(comparable(manifest), name)
    return _interned(owned.replace(_quoted(made_for_uid), _UID) if made_for_uid else owned)


def uids_in(normalized: bytes) -> int:
    """Count the places where the Memcached's uid was left out of a normalized text."""
    return normalized.count(_UID)


def nameless(text: bytes, name: str) -> bytes:
    """JSON with the Memcached's name taken out, also where the name of its scripts begins with it."""
    return text.replace(_quoted(name), _NAME).replace(_quoted(name)[:-1] + _INFIX, _SCRIPTS)


def owned_metadata(meta: ObjectMeta) -> ObjectMeta:
    """Return what may be owned of a live object's metadata."""
    annotations = meta.annotations or {}
    owned = {name: text for name, text in annotations.items() if name in _OWNED_ANNOTATIONS}
    if _PASSED in owned.get(APPLIED_ANNOTATION, "") and (spec := applied_spec(annotations)) is not None:
        owned |= {name: annotations[name] for name in spec.service.annotations if name in annotations}
    return ObjectMeta(labels=meta.labels, annotations=owned or None, ownerReferences=meta.ownerReferences)


def is_owned(live: OwnedRecord, uid: str) -> bool:
    """Report whether the Memcached of that uid controls the object, or did until its ownerReference was removed."""
    return bool(live.normalized) and (live.owner_uid if live.owner_kind else live.made_for_uid) == uid


def named_finalizers(finalizers: Sequence[str]) -> str:
    """Finalizers in a sentence."""
    return f"the finalizer{'s' if len(finalizers) > 1 else ''} {', '.join(finalizers)}"


def who_must_remove(finalizers: Sequence[str]) -> str:
    """The remedy, to follow "the"."""
    return "clients that added them must remove them" if len(finalizers) > 1 else "client that added it must remove it"


def foreign_finalizers(finalizers: Sequence[str] | None, *owned: str) -> tuple[str, ...]:
    """The finalizers that other clients added: neither the garbage collector's nor these."""
    return tuple(each for each in finalizers or () if each not in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER, *owned))


def _quoted(text: str) -> bytes:
    return msgspec.json.encode(text)


@lru_cache(maxsize=1024)  # bounds the number of distinct texts; evicting one costs a duplicate copy
def _interned(normalized: bytes) -> bytes:
    """The object that stands for all equal ones."""
    return normalized


ADOPTION: Final = f"annotate it with {OWNER_UID_ANNOTATION}=UID, this Memcached's metadata.uid"


class _Object(msgspec.Struct):
    metadata: ObjectMeta


_decode_object = msgspec.json.Decoder(_Object).decode


@dataclass(frozen=True, eq=False)
class Codec(Generic[M]):
    """Comparison of one kind's objects, from records to differences.

    Attributes:
        normalize: brings an object, live or desired, to the form in which both are compared.
        fixed, replace: see `Rules`.
    """

    type: type[M]
    normalize: Callable[[M], M] = lambda made: made
    compare: Callable[[M, M], Iterable[Difference]] = differences
    fixed: tuple[str, ...] = ()
    replace: Literal["Background", "Orphan"] | None = None

    @cached_property
    def _decode(self) -> Callable[[msgspec.Raw | bytes], M]:
        return msgspec.json.Decoder(self.type).decode

    def record(self, raw: msgspec.Raw | bytes) -> OwnedRecord:
        meta = _decode_object(raw).metadata
        common = common_fields(meta)
        if not may_be_owned(meta):
            return OwnedRecord(**common)
        live = self.normalize(self._decode(raw))
        manifest = msgspec.structs.replace(live, metadata=owned_metadata(meta))
        return OwnedRecord(**common, normalized=normalized_of(manifest, common["name"], common["made_for_uid"]))

    def decoded(self, live: OwnedRecord) -> M:
        return self._decode(live.owned)

    def differ(self, desired: M, live: OwnedRecord) -> Sequence[Difference]:
        """The fields of an owned object that are not as desired."""
        compared = comparable(self.normalize(desired))
        if live.owned == compared:
            return ()
        return tuple(self.compare(self._decode(compared), self.decoded(live)))

    @property
    def rules(self) -> Rules[M, Any]:
        from operator_runtime import Rules  # loads the client, which commands that only print do without

        return Rules(
            differences=self.differ,
            key=lambda desired: ObjectKey(desired.metadata.namespace or "", desired.metadata.name or ""),
            body=lambda desired: desired.body(),
            is_owned=is_owned,
            handover=ADOPTION,
            fixed=self.fixed,
            replace=self.replace,
        )
