"""Keeping an owned object as its owner wants it: made, put right, replaced, deleted, or left alone.

    self._config_maps = operator.owned(GREETINGS, CONFIG_MAPS)
    ...
    kept = await self._config_maps.keep(greeting, config_map_of(greeting))

The cache is looked at, and nothing is sent where it shows what is wanted. What is there and is not the owner's stays as
it is. Before something is made or taken again, or deleted, the API server is asked whether its owner is still there.
What is to be done is decided in `decisions`, by values; it is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Generic, TypeVar

import msgspec

from operator_runtime.cache.store import ObjectKey, Store, key_of
from operator_runtime.client.api_client import Propagation
from operator_runtime.client.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    MalformedAnswer,
    NotFound,
    Unreachable,
)
from operator_runtime.controller.controller import StaleCache
from operator_runtime.objects.kinds import Kind, plain
from operator_runtime.owned.compare import Difference
from operator_runtime.owned.contention import Verb, Wish
from operator_runtime.owned.decisions import (
    Decider,
    Delete,
    Foreign,
    LastWrite,
    Leave,
    Replace,
    Unchangeable,
    Update,
    Wait,
    creation,
    has_status,
)
from operator_runtime.owned.owners import Owner, Owners
from operator_runtime.owned.patching import is_strategic, needs_live, patch_of
from operator_runtime.owned.per_key_state import Slot
from operator_runtime.owned.refusals import REFUSED_S, Refused
from operator_runtime.owned.rules import Change, Kept, NotOwned, Ownable, Reverted, Rules, Unwatched

O = TypeVar("O", bound=Owner)  # noqa: E741 -- for owner
W = TypeVar("W")
P = TypeVar("P", bound=Ownable)


def _always_watched(_namespace: str) -> None:
    return None


class Keeper(Generic[O, W, P]):
    """Keeps objects of a kind for their owners; see `keep` and `remove`. Made by `Operator.owned`."""

    def __init__(
        self,
        owners: Owners[O],
        kind: Kind[P],
        store: Store[P],
        rules: Rules[W, P],
        tell: Callable[[O, Change[P]], None],
        refusal: Callable[[str], KubeError | None] = _always_watched,
    ) -> None:
        self._client = owners.client
        self._owners = owners
        self._kind = kind
        self._store = store
        self._rules = rules
        self._tell = tell
        self._refusal = refusal  # why the cache has nothing of a namespace
        self._decider = Decider(kind.resource, owners.kind.resource, rules)
        self._last_writes: Slot[dict[ObjectKey, LastWrite]] = owners.memory.slot(dict)

    async def keep(self, owner: O, wanted: W, *, seen: bool | None = None, asked: bool = True) -> Kept[P]:
        """Make the object where there is none, and put right, or replace, what is not as wanted.

        Args:
            owner: whose object; `wanted` has its `owner_reference`.
            wanted: the object.
            seen: the owner's status tells of such an object, so that one that is missing was deleted, unless we did
                that; None: if anything was written into the status.
            asked: the owner's specification is newer than its status, or `wanted` follows from what has changed
                elsewhere, so that no other client made a difference. It is believed once for each generation and body.

        Raises:
            NotOwned: an object of that name is there and is not this owner's. It is left alone. Where the cache cannot
                show it, it is not looked for again for `REFUSED_S`.
            Unwatched: the API server refuses the list of a kind that is optional. Nothing is done.
            Forbidden, Invalid: the API server refuses; it is not asked for the same again for `REFUSED_S`.
            Reverted: a change is taken and reverted.
            Refused: a change cannot be made at all.
            StaleCache: owner or object are not as the caches show them.
        """
        key = self._rules.key(wanted)
        if (why := self._refusal(key.namespace)) is not None:
            raise self._unwatched(why)
        live = self._store.get(key)
        seen = has_status(owner) if seen is None else seen
        if seen and (last := self._last(owner, key)) is not None and not last.deleted_uid:
            self._forget(owner, key)
        try:
            if live is None:
                if not self._owners.may_repair(owner, self._kind, key):
                    return Kept(None, f"The {self._kind.resource.kind} was deleted; a new one follows.")
                if (made := await self._make(owner, wanted, key, seen=seen)) is not None:
                    return self._judged(owner, made)
                # Another client was faster, and the watch has not shown it yet: judge the live one.
                live = await self._client.get(self._kind, key)
            kept = await self._put_right(owner, wanted, live, asked=asked)
            if kept.obj is None and self._store.get(key) is None:
                raise StaleCache(f"no watch may tell of the end of what is not in the cache: {kept.waiting}")
            return kept
        except NotOwned as error:
            if live is not None and not self._may_show(live):
                self._owners.refusals.add(key_of(owner), self._kind, key, wanted, error)
            raise
        except Forbidden as error:
            if any(cause.reason == "NamespaceTerminating" for cause in error.causes):
                raise StaleCache("the namespace is being deleted, and its owner with it", retry_s=REFUSED_S) from error
            raise
        except Invalid as error:
            if any(cause.field == "metadata.uid" for cause in error.causes):
                raise self._stale(live, error) from error
            raise
        except (Conflict, NotFound) as error:
            raise self._stale(live, error) from error

    async def remove(self, owner: O, key: ObjectKey, *, propagation: Propagation | None = None) -> Kept[P]:
        """Delete the object of that name where the cache has one that is the owner's; it may be made again by `keep`.

        What is not the owner's is left alone without a word, and so is whatever is there of an optional kind whose list
        the API server refuses.

        Args:
            owner: whose object.
            key: of the object.
            propagation: what becomes of its dependents; None: the kind's default, which is Background for most.

        Raises:
            Forbidden: the API server refuses; it is not asked for the same again for `REFUSED_S`.
            StaleCache: owner or object are not as the caches show them.
        """
        match self._decider.decide_removal(owner, self._store.get(key)):
            case Leave():
                return Kept(None)
            case Wait(why):
                return Kept(None, why)
            case Delete(live):
                if not self._owners.may_repair(owner, self._kind, key):
                    return Kept(live)
                try:
                    await self._delete(owner, live, (), propagation, wish=lambda: "absent")
                except Conflict as error:
                    raise self._stale(live, error) from error
                return Kept(None, self._decider.going)

    async def _make(self, owner: O, wanted: W, key: ObjectKey, *, seen: bool) -> P | None:
        """Create the object; None when one of that name exists."""
        last = self._last(owner, key)
        decided = creation(last, seen=seen)
        try:
            with self._owners.refusals.trying(key_of(owner), self._kind, key, wanted):
                if decided.owner_in_doubt and not await self._owners.still_there(owner):
                    raise self._gone()
                repair = self._owners.repair(owner, self._kind, key, "deleted")
                async with repair if decided.drift else nullcontext():
                    made = await self._client.create(self._kind, self._rules.body(wanted))
        except Conflict:
            return None
        except (Unreachable, MalformedAnswer):
            if not decided.owner_in_doubt:
                self._note(owner, key, LastWrite(owner.uid, answered=False))
            raise
        if not decided.drift:
            self._owners.contention.wrote(key_of(owner))
        if seen:
            self._forget(owner, key)
        else:
            self._note(owner, key, LastWrite(owner.uid))
        damped = (decided.drift or decided.replaces) and self._owners.contention.is_damped(key_of(owner))
        self._tell(owner, Change(None, made, decided.fields, not decided.drift, damped))
        return made

    async def _put_right(self, owner: O, wanted: W, live: P, *, asked: bool) -> Kept[P]:
        decided = self._decider.decide(owner, wanted, live)
        match decided:
            case Wait(why):
                return Kept(None, why)
            case Foreign(why):
                raise NotOwned(why)
        key, last = key_of(live), self._last(owner, key_of(live))
        if last is not None and last.deleted_uid not in ("", live.uid):
            self._forget(owner, key)  # another client has made it
        if isinstance(decided, Leave) or not self._owners.may_repair(owner, self._kind, key):
            return Kept(live)
        wish = partial(self._digest, wanted) if asked else None
        match decided:
            case Unchangeable(why):
                raise Refused(why)
            case Replace(fields, propagation, why):
                await self._delete(owner, live, fields, propagation, wish=wish)
                return Kept(None, why)
            case Update():
                return await self._update(owner, wanted, live, decided, wish)

    async def _update(self, owner: O, wanted: W, live: P, update: Update, wish: Wish | None) -> Kept[P]:
        """Put right what was found, unless another client or a policy undoes it on its way in."""
        if update.disowned and not await self._owners.still_there(owner):
            # Deleted with --cascade=orphan, which the watch has not shown yet. Owned by it again, the object would be
            # the garbage collector's.
            raise self._gone()
        key, paths = key_of(live), [each.path for each in update.found]
        with self._owners.refusals.trying(key_of(owner), self._kind, key, (live.uid, wanted, update.found)):
            async with self._owners.repair(owner, self._kind, key, "changed", paths, wish=wish):
                answer = await self._patch(live, update.found, wanted)
                if why := self._decider.reverted(owner, wanted, answer, update):
                    raise Reverted(why)
        judged = self._judged(owner, answer)
        routine = self._owners.contention.is_damped(key_of(owner))
        self._tell(owner, Change(live, answer, update.told, wish is not None, routine))
        return judged

    async def _patch(self, live: P, found: Sequence[Difference], wanted: W) -> P:
        """Put right what was found in that very object, by one patch."""
        resource = self._kind.resource
        body = None
        if needs_live(found, resource):
            plainly = plain(resource.api_version, resource.kind, resource.plural, namespaced=resource.namespaced)
            body = (await self._client.get(plainly, key_of(live))).body
        write = self._client.strategic_patch if is_strategic(resource) else self._client.patch
        sent = patch_of(found, resource, body, self._rules.body(wanted))
        return await write(self._kind, live, sent, strict=True)

    async def _delete(
        self,
        owner: O,
        live: P,
        fields: Sequence[Difference],
        propagation: Propagation | None,
        *,
        wish: Wish | None,
    ) -> None:
        """Delete this very version of an object: to replace it, as these fields cannot be changed, or for good."""
        key, done = key_of(live), LastWrite(owner.uid, deleted_uid=live.uid, fields=fields)
        paths = [each.path for each in fields]
        try:
            with self._owners.refusals.trying(key_of(owner), self._kind, key, (live.uid, propagation)):
                if not await self._owners.still_there(owner):
                    # Deleted with --cascade=orphan, which the watch has not shown yet: then the object is to stay.
                    raise self._gone()
                verb: Verb = "changed" if paths else "made"
                async with self._owners.repair(owner, self._kind, key, verb, paths, wish=wish):
                    await self._client.delete(
                        self._kind, live, resource_version=live.resource_version, propagation=propagation
                    )
        except (Unreachable, MalformedAnswer):
            self._note(owner, key, done)  # it may have been done all the same
            raise
        self._note(owner, key, done)
        asked = wish is not None
        self._tell(
            owner, Change(live, live, fields, asked, self._owners.contention.is_damped(key_of(owner)), deleted=True)
        )

    def _last(self, owner: O, key: ObjectKey) -> LastWrite | None:
        """What was done last to an object for this very owner, and no predecessor of its name."""
        last = (self._last_writes.find(key_of(owner)) or {}).get(key)
        return last if last is not None and last.owner_uid == owner.uid else None

    def _note(self, owner: O, key: ObjectKey, last: LastWrite) -> None:
        self._last_writes.of(key_of(owner))[key] = last

    def _forget(self, owner: O, key: ObjectKey) -> None:
        if (writes := self._last_writes.find(key_of(owner))) is not None:
            writes.pop(key, None)
            if not writes:
                self._last_writes.drop(key_of(owner))

    def _digest(self, wanted: W) -> int:
        return hash(msgspec.json.encode(self._rules.body(wanted)))

    def _judged(self, owner: O, answer: P) -> Kept[P]:
        """What a write was answered with: another client may have made it another owner's in that moment."""
        match self._decider.claim(owner, answer):
            case Wait(why):
                return Kept(None, why)
            case Foreign(why):
                raise NotOwned(why)
            case None:
                return Kept(answer)

    def _may_show(self, live: P) -> bool:
        """Whether the cache has, or may yet have, an object; labels that its type does not tell it has not."""
        labels = getattr(live, "labels", {})
        return self._store.selection.may_hold(live.namespace, live.name, labels)

    def _unwatched(self, error: KubeError) -> Unwatched:
        resource = self._kind.resource
        why = error.message if isinstance(error, ApiError) and error.message else str(error)
        return Unwatched(f"The {resource.kind} is left as it is, as {resource.plural} cannot be watched: {why}")

    def _gone(self) -> StaleCache:
        return StaleCache(f"the {self._owners.kind.resource.kind} is gone, whatever the cache shows")

    def _stale(self, live: P | None, error: Exception) -> StaleCache:
        """An object was deleted or made anew since the cache saw it."""
        if live is not None:
            self._client.outdated(self._kind, live)
        return StaleCache(f"{self._kind.resource.kind} changed under our write: {error}")
