"""What the cache holds of a Memcached: a flat, slim record, made from its JSON as it comes in.

A record has what a reconcile reads and nothing else. Strings and bytes only, so that the garbage collector need not
look into them (`gc=False`), and a few hundred bytes each where a decoded object would take ten times as much.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from operator_runtime import ObjectKey, shared


class MemcachedRecord(msgspec.Struct, frozen=True, gc=False):
    """A Memcached.

    Attributes:
        deleting: it has a deletionTimestamp; unless it carries our finalizer, nothing is written for it any more.
        spec: JSON of `spec`, b"" when it is absent.
        status: JSON of `status`, b"" when it is absent.
        finalizers: who must agree before it goes: we, the garbage collector, others.
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

    @property
    def key(self) -> ObjectKey:
        """Its namespace and name."""
        return ObjectKey(self.namespace, self.name)


class _Meta(msgspec.Struct):
    name: str
    uid: str
    resourceVersion: str
    namespace: str = ""
    generation: int = 0
    deletionTimestamp: str | None = None
    finalizers: tuple[str, ...] = ()


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
        namespace=shared(meta.namespace),
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resourceVersion,
        generation=meta.generation,
        deleting=meta.deletionTimestamp is not None,
        spec=bytes(object_.spec),
        status=bytes(object_.status),
        finalizers=_one_tuple(meta.finalizers),
    )


@lru_cache(maxsize=64)  # there are few different ones
def _one_tuple(finalizers: tuple[str, ...]) -> tuple[str, ...]:
    """The tuple that stands for all equal ones."""
    return finalizers
