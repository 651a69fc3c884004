"""Description of a kind of which a Memcached owns objects besides its servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memcached_operator.api.status import Problem
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.labels import MemcachedOwner
from memcached_operator.core.objects.owned_object import Codec, Manifest, OwnedRecord
from operator_runtime import ObjectKey

if TYPE_CHECKING:
    from operator_runtime import Kind, Store


RIVALS_INDEX: Final = "rivals"
"""Name of the index by the namespace, as a key, in which a record of another owner concerns all Memcacheds."""


class Known(NamedTuple):
    """Knowledge beyond the specification, by which objects are made.

    Attributes:
        servers: `host:port` of each server that is listed.
        operator_namespace: of the operator's own pods, "" where it runs in no pod.
    """

    servers: Sequence[str] = ()
    operator_namespace: str = ""
    operator_image: str = ""


@dataclass(frozen=True, eq=False)
class CachedResource:
    """Resource as the client caches it, once for all kinds of owned objects that are objects of it.

    Attributes:
        record: makes what the cache holds of an object, from its JSON.
        labels: selector of the cache, where others have many of these.
        indexes: of the cache, by name.
    """

    names: tuple[str, str, str]
    record: Callable[[Any], Any]
    labels: str = ""
    indexes: Mapping[str, Callable[[Any], ObjectKey | None]] = field(default_factory=dict)

    @cached_property
    def kind(self) -> Kind[Any]:
        from operator_runtime import Kind, resource_of  # loads the client, which commands that only print do without

        return Kind(resource_of(*self.names), self.record)


@dataclass(frozen=True, eq=False)
class OwnedKind:
    """Kind of which a Memcached owns one object at most, known among those of its resource by the end of its name.

    Attributes:
        made: makes what a Memcached desires, None for nothing, by its specification and what is known beyond it.
        field: of the specification, without which nothing is desired; "" where that depends on more.
        suffix: of the object's name, after the Memcached's.
        conflict: explains why a Memcached of that name gets no object, by the rivals in its namespace, None where it
            does; None of a kind without rivals.
        listed: reads the servers that an object names, of a kind that follows the list; None for other kinds.
    """

    resource: CachedResource
    codec: Codec[Any]
    made: Callable[[MemcachedOwner, Spec, Known], Manifest | None]
    field: str = ""
    suffix: str = ""
    conflict: Callable[[Iterable[Any], str, Spec], Problem | None] | None = None
    listed: Callable[[Any], Sequence[str]] | None = None

    @property
    def kind(self) -> Kind[Any]:
        return self.resource.kind

    def desired(self, owner: MemcachedOwner, spec: Spec, known: Known) -> Manifest | None:
        is_off = self.field and getattr(spec, self.field) is None
        return None if is_off else self.made(owner, spec, known)

    def memcached_of(self, live: OwnedRecord) -> ObjectKey | None:
        """The Memcached whose object one of that name is, None where it is an object of another kind."""
        found = live.name.endswith(self.suffix)
        return ObjectKey(live.namespace, live.name.removesuffix(self.suffix)) if found else None

    def key_of(self, memcached: ObjectKey) -> ObjectKey:
        return ObjectKey(memcached.namespace, memcached.name + self.suffix)

    def objects_in(self, cache: Store[Any], memcached: ObjectKey) -> Sequence[OwnedRecord]:
        """The objects of that name which a cache has of the Memcached, whosever they are."""
        live = cache.get(self.key_of(memcached))
        return () if live is None else (live,)


def auxiliary_objects(kinds: Iterable[OwnedKind], owner: MemcachedOwner, spec: Spec, known: Known) -> list[Manifest]:
    """List all that a Memcached desires besides its servers, in the order in which it is created; see `desired`."""
    desired = (each.desired(owner, spec, known) for each in kinds)
    return [each for each in desired if each is not None]
