"""Description of a kind of which a Memcached owns one object at most, besides its servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from memcached_operator.api.status import Problem
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.labels import MemcachedOwner
from memcached_operator.core.objects.owned_object import Codec, Manifest, OwnedRecord
from memcached_operator.core.objects.scripts import suffix_in
from operator_runtime import ObjectKey

if TYPE_CHECKING:
    from operator_runtime import Kind


class Known(NamedTuple):
    """Knowledge beyond the specification, by which objects are made.

    Attributes:
        servers: `host:port` of each server that is listed.
        operator_namespace: of the operator's own pods, "" where it runs in no pod.
        operator_image: that these run, "" where it is not known.
        addresses: the IP address of each pod by its name.
        live: the object as it is, of a kind that follows the list; None where there is none.
        now_s: seconds since 1970.
    """

    servers: Sequence[str] = ()
    operator_namespace: str = ""
    operator_image: str = ""
    addresses: Mapping[str, str] = {}
    live: Any = None
    now_s: int = 0


@dataclass(frozen=True, eq=False)
class OwnedKind:
    """Kind of which a Memcached owns one object at most, or one besides another of that kind.

    Attributes:
        resource: arguments of `resource_of`: API version, kind, and plural.
        codec: compares such objects.
        made: makes what a Memcached desires, None for nothing, by its specification and what is known beyond it.
        field: of the specification, without which nothing is desired; "" where that depends on more.
        labels: selector of the cache, where others have many of these.
        suffix: of the object's name, after the Memcached's.
        rival_in: finds the namespace, as a key, in which a record of another owner concerns all Memcacheds.
        conflict: explains why a Memcached of that name gets no object, by those rivals, None where it does; None of a
            kind without rivals.
        problem_of: explains what is wrong with such an object although it is as desired, None for nothing.
        has_scripts: of the kind are the ConfigMaps with scripts of pods, too; see `scripts`.
        shared: returns the kind of which a Memcached has another object, with the same cache; None where it has none.
        awaits_list: there is none before a list of servers.
        runs_operator: it has pods of the operator's image.
        listed: reads the servers that an object names, of a kind that follows the list; None for other kinds.
        is_untouched: reports whether such an object names them as it was written, so that nobody else has changed it.
        follow: makes the patch by which a live object of that kind follows the desired one, None for none.
    """

    resource: tuple[str, str, str]
    codec: Codec[Any]
    made: Callable[[MemcachedOwner, Spec, Known], Manifest | None]
    field: str = ""
    labels: str = ""
    suffix: str = ""
    rival_in: Callable[[Any], ObjectKey | None] = lambda _: None
    conflict: Callable[[Iterable[Any], str, Spec], Problem | None] | None = None
    problem_of: Callable[[Any], Problem | None] = lambda _: None
    has_scripts: bool = False
    shared: Callable[[], Kind[Any]] | None = None
    awaits_list: bool = False
    runs_operator: bool = False
    listed: Callable[[Any], Sequence[str]] | None = None
    is_untouched: Callable[[Any], bool] = lambda _: False
    follow: Callable[[Any, Any], dict[str, Any] | None] = lambda *_: None

    @cached_property
    def kind(self) -> Kind[Any]:
        if self.shared is not None:
            return self.shared()
        from operator_runtime import Kind, resource_of  # loads the client, which commands that only print do without

        return Kind(resource_of(*self.resource), self.codec.record)

    def desired(self, owner: MemcachedOwner, spec: Spec, known: Known) -> Manifest | None:
        """Return what a Memcached desires, None for nothing."""
        is_off = self.field and getattr(spec, self.field) is None
        return None if is_off else self.made(owner, spec, known)

    def scripts_for(self, live: OwnedRecord) -> ObjectKey | None:
        """The Memcached whose pods have scripts of it, None where it has none."""
        return self.memcached_of(live) if self.has_scripts and suffix_in(live.name) else None

    def memcached_of(self, live: OwnedRecord) -> ObjectKey | None:
        """The Memcached whose object one of that name is, None where it is an object of another kind that is shared."""
        if self.shared is not None and not live.name.endswith(self.suffix):
            return None
        of_scripts = suffix_in(live.name) if self.has_scripts else ""
        return ObjectKey(live.namespace, live.name.removesuffix(of_scripts or self.suffix))

    def key_of(self, memcached: ObjectKey) -> ObjectKey:
        return ObjectKey(memcached.namespace, memcached.name + self.suffix)


def auxiliary_objects(kinds: Iterable[OwnedKind], owner: MemcachedOwner, spec: Spec, known: Known) -> list[Manifest]:
    """List all that a Memcached desires besides its servers, in the order in which it is created; see `desired`."""
    desired = (each.desired(owner, spec, known) for each in kinds)
    return [each for each in desired if each is not None]
