"""Shared informers: one cache and one set of watches for each kind and selection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar, cast

from operator_runtime.cache.reflector import Reflector
from operator_runtime.cache.store import Selection, Store
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import KubeError
from operator_runtime.client.watch import Record
from operator_runtime.controller.manager import Manager
from operator_runtime.objects.kinds import Kind

R = TypeVar("R", bound=Record)


class _Informer(NamedTuple):
    kind: Kind[Any]  # held so that its identity stays its own
    store: Store[Any]
    reflectors: list[Reflector[Any]]


class Informers:
    """Makes a store for a kind when it is first requested, with a reflector for each namespace that fills it."""

    def __init__(
        self,
        client: ApiClient,
        manager: Manager,
        *,
        namespaces: tuple[str, ...],
        silence_limit_s: float,
    ) -> None:
        self._client = client
        self._manager = manager
        self._namespaces = namespaces
        self._silence_limit_s = silence_limit_s
        # By the identity of a `Kind`, as two of the same resource may decode other fields, and the label selector.
        self._stores: dict[tuple[int, str], _Informer] = {}

    def store(self, kind: Kind[R], *, labels: str = "", crd_hint: str = "", optional: bool = False) -> Store[R]:
        """The cache of the objects of `kind` that the selectors choose; the same one for the same question.

        Kinds are the same by identity. Where one requests a cache that is not optional, it is for none.
        """
        selection = id(kind), labels
        informer = self._stores.get(selection)
        if informer is None:
            informer = self._stores[selection] = self._watched(kind, labels)
        for reflector in informer.reflectors:
            reflector.optional &= optional
            reflector.crd_hint = crd_hint or reflector.crd_hint
        return cast("Store[R]", informer.store)

    def stores_of(self, kind: Kind[Any]) -> Iterator[Store[Any]]:
        return (each.store for each in self._stores.values() if each.kind is kind)

    def refusal_of(self, store: Store[Any]) -> Callable[[str], KubeError | None]:
        """Return the error of a namespace's first list, so that a cache has none of it; None where it was allowed."""
        reflectors = self._reflectors_of(store)

        def refusal(namespace: str) -> KubeError | None:
            return next((each.refusal for each in reflectors if each.namespace in (None, namespace)), None)

        return refusal

    def when_late(self, store: Store[Any], late: Callable[[], None]) -> None:
        """Call `late` when a first list of a cache comes after it was refused."""
        for reflector in self._reflectors_of(store):
            reflector.when_late.append(late)

    def _reflectors_of(self, store: Store[Any]) -> list[Reflector[Any]]:
        return next(each.reflectors for each in self._stores.values() if each.store is store)

    def _watched(self, kind: Kind[R], labels: str) -> _Informer:
        resource = kind.resource
        scope = self._namespaces if resource.namespaced else ()
        store: Store[R] = Store(selection=Selection(scope, labels))
        # Each kind's caches are numbered, so that probes and metrics distinguish their watches.
        number = 1 + sum(each.kind.resource.qualified_name == resource.qualified_name for each in self._stores.values())
        reflectors = [
            Reflector(
                self._client,
                resource,
                kind.decode,
                store,
                namespace=namespace,
                label_selector=labels,
                number=number,
                silence_limit_s=self._silence_limit_s,
            )
            for namespace in scope or (None,)
        ]
        for reflector in reflectors:
            reflector.optional = True  # until one requests it who cannot do without
            self._manager.add_reflector(reflector)
        return _Informer(kind, store, reflectors)
