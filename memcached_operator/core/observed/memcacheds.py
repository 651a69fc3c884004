"""Record of a Memcached in the cache: flat and slim, made from its JSON as it comes in.

A record has what a reconcile reads and nothing else. Strings and bytes only, so that the garbage collector need not
traverse them (`gc=False`), and a few hundred bytes each where a decoded object would take ten times as much.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from memcached_operator.api.complaints import InvalidSpec
from memcached_operator.api.reading import read_spec
from memcached_operator.api.status import stored_status
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.labels import RESTART_ANNOTATION, RESTORED_ANNOTATION, MemcachedOwner
from memcached_operator.core.objects.owned_object import ObjectIdentity
from operator_runtime import ObjectKey


class MemcachedRecord(msgspec.Struct, frozen=True, gc=False):
    """A Memcached.

    Attributes:
        spec: JSON of `spec`, b"" when it is absent.
        status: JSON of `status`, b"" when it is absent.
        finalizers: who must agree before it goes: we, the garbage collector, others.
        restored_from: uid of the Memcached in whose place it was restored from a backup, "" for none.
        restart: what requests a restart of each server, "" for nothing.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    generation: int
    deleting: bool
    spec: bytes
    status: bytes
    finalizers: tuple[str, ...] = ()
    restored_from: str = ""
    restart: str = ""

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.namespace, self.name)

    @property
    def owner(self) -> MemcachedOwner:
        return MemcachedOwner(self.name, self.namespace, self.uid)

    @property
    def readable_spec(self) -> Spec | None:
        """The specification, None where that cannot be read."""
        with suppress(InvalidSpec):
            return read_spec(self.spec)
        return None


class _Annotations(msgspec.Struct):
    restored_from: str = msgspec.field(default="", name=RESTORED_ANNOTATION)
    restart: str = msgspec.field(default="", name=RESTART_ANNOTATION)


class _Meta(ObjectIdentity):
    generation: int = 0
    deletionTimestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    annotations: _Annotations | None = None


class _MemcachedObject(msgspec.Struct):
    metadata: _Meta
    spec: msgspec.Raw = msgspec.Raw()
    status: msgspec.Raw = msgspec.Raw()


_decode_memcached = msgspec.json.Decoder(_MemcachedObject).decode


def memcached_record(raw: msgspec.Raw | bytes) -> MemcachedRecord:
    """A record from a Memcached's JSON. Its spec is judged at each reconcile, not here: it may be wrong."""
    object_ = _decode_memcached(raw)
    meta = object_.metadata
    return MemcachedRecord(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resourceVersion,
        generation=meta.generation,
        deleting=meta.deletionTimestamp is not None,
        spec=bytes(object_.spec),
        status=bytes(object_.status),
        finalizers=meta.finalizers,
        restored_from=meta.annotations.restored_from if meta.annotations is not None else "",
        restart=restart_of(meta.annotations.restart) if meta.annotations is not None else "",
    )


def is_overdue(memcached: MemcachedRecord) -> bool:
    """Report whether it was created or changed, and its status does not yet show that this was reconciled."""
    return stored_status(memcached.status).observedGeneration != memcached.generation


def restart_of(annotation: str) -> str:
    """Normalize a Memcached's restart request to the one line that a server's shell reads."""
    return " ".join(annotation.split())
