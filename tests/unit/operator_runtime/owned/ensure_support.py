"""A keeper of ConfigMaps whose caches the test fills."""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from operator_runtime import (
    Change,
    Client,
    EnsureResult,
    EventRecorder,
    Keeper,
    Kind,
    KubeError,
    ObjectKey,
    Owners,
    PlainObject,
    Rules,
    Store,
    owner_reference,
    plain,
)
from operator_runtime.owned.ensure_rules import rules_for_bodies
from operator_runtime.testing.clock import FakeClock

CONFIG_MAPS = plain("v1", "ConfigMap", "configmaps")
WORDS = ObjectKey("default", "words")


class Recorder:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def emit(self, *_: object, note: str, **__: object) -> None:
        self.notes.append(note)


class Keeping:
    """A keeper with stores that the test fills, and what it told."""

    def __init__(
        self,
        client: Client,
        owner: PlainObject,
        kind: Kind[PlainObject] = CONFIG_MAPS,
        *,
        rules: Rules[Any, PlainObject] | None = None,
        store: Store[PlainObject] | None = None,
    ) -> None:
        self.client = client
        self.owner = owner
        self.clock = FakeClock()
        self.store: Store[PlainObject] = Store() if store is None else store
        self.recorder = Recorder()
        self.changes: list[Change[PlainObject]] = []
        self.refusal: KubeError | None = None
        self.store_of_owners: Store[PlainObject] = Store()
        self.store_of_owners.put(owner)
        events = cast(EventRecorder, self.recorder)
        self.owners = Owners(client, events, CONFIG_MAPS, self.store_of_owners, clock=self.clock)
        self.keeper: Keeper[PlainObject, Any, PlainObject] = Keeper(
            self.owners,
            kind,
            self.store,
            rules or rules_for_bodies(client.field_manager, kind.resource),
            lambda _, change: self.changes.append(change),
            lambda _: self.refusal,
        )

    async def ensure(self, body: Any, *, seen: bool = False) -> PlainObject:
        kept: EnsureResult[PlainObject] = await self.keeper.ensure(self.owner, body, seen=seen)
        assert kept.obj is not None, kept.waiting
        return kept.obj

    def cached(self, obj: PlainObject) -> None:
        self.store.replace([obj], set())

    def uncached(self) -> None:
        self.store.replace([], set())

    def change_specification(self) -> None:
        """The owner's specification changes."""
        metadata = replace(self.owner.metadata, generation=self.owner.generation + 1)
        self.owner = replace(self.owner, metadata=metadata)

    def words(self, **data: str) -> dict[str, Any]:
        return words(self.owner, **data)

    async def foreign_object(self, **metadata: Any) -> PlainObject:
        """Somebody makes an object of that name, without an owner."""
        place = {"namespace": WORDS.namespace, "name": WORDS.name}
        return await self.client.create(CONFIG_MAPS, {"metadata": place | metadata, "data": {"a": "theirs"}})

    async def going(self, obj: PlainObject) -> PlainObject:
        """Somebody deletes it, and a finalizer holds it."""
        await self.client.patch(CONFIG_MAPS, obj, {"metadata": {"finalizers": ["example.com/wait"]}})
        await self.client.delete(CONFIG_MAPS, obj)
        return await self.client.get(CONFIG_MAPS, obj.key)

    async def live(self) -> list[PlainObject]:
        return await self.client.list(CONFIG_MAPS, "default", "app=words")


def words(owner: PlainObject, **data: str) -> dict[str, Any]:
    place = {"namespace": WORDS.namespace, "name": WORDS.name, "labels": {"app": "words"}}
    return {"metadata": place | {"ownerReferences": [owner_reference(CONFIG_MAPS, owner)]}, "data": data}
