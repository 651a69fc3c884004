"""Pure: form in which a Memcached's objects are kept in memory, one for all kinds.

A record has the owned part of an object as one normalized text, in which the Memcached's name and uid are left out.
Most objects of a kind differ in these alone, so that one such text serves thousands of records.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from memcached_operator.api.names import API_VERSION, KIND
from memcached_operator.core.objects.applied_spec import applied_spec
from memcached_operator.core.objects.labels import APPLIED_ANNOTATION, OWNER_UID_ANNOTATION, SCRIPTS_INFIX
from memcached_operator.core.objects.object_types import Manifest, ObjectMeta, OwnerRef, comparable, controller_of
from operator_runtime import OwnerReference

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
