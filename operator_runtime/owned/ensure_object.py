"""Owned objects, kept as desired: created, corrected, replaced, deleted, or not touched.

    self._config_maps = operator.owned(GREETINGS, CONFIG_MAPS)
    ...
    kept = await self._config_maps.ensure(greeting, config_map_of(greeting))

Nothing is sent where the cache shows the desired object. Before an object is made anew, adopted again or deleted, the
API server is queried whether its owner still exists. `ensure_decision` decides, by values; this module acts.
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
from operator_runtime.owned.contention import DesiredDigest, Verb
from operator_runtime.owned.ensure_decision import (
    Decider,
    LastWrite,
    Replace,
    Update,
    decide_creation,
    has_status,
)
from operator_runtime.owned.ensure_rules import (
    Change,
    EnsureResult,
    NotOwned,
    Ownable,
    Refused,
    Reverted,
    Rules,
    Unwatched,
)
from operator_runtime.owned.owners import REFUSED_S, Owner, Owners
from operator_runtime.owned.patching import is_strategic, needs_live, patch_of

O = TypeVar("O", bound=Owner)  # noqa: E741 -- for owner
W = TypeVar("W")
P = TypeVar("P", bound=Ownable)


class Keeper(Generic[O, W, P]):
    """Keeps objects of a kind for their owners; see `ensure` and `remove`. Made by `Operator.owned`."""

    def __init__(
        self,
        owners: Owners[O],
        kind: Kind[P],
        store: Store[P],
        rules: Rules[W, P],
        on_change: Callable[[O, Change[P]], None],
        refusal: Callable[[str], KubeError | None] = lambda _: None,
    ) -> None:
        self._client = owners.client
        self._owners = owners
        self._kind = kind
        self._store = store
        self._rules = rules
        self._on_change = on_change
        self._refusal = refusal  # why the cache has nothing of a namespace
        self._decider = Decider(kind.resource, owners.kind.resource, rules)
        self._last_writes = owners.states.keyed(dict[ObjectKey, LastWrite])

    async def ensure(
        self, owner: O, desired: W, *, seen: bool | None = None, desired_changed: bool = True
    ) -> EnsureResult[P]:
        """Make the object where there is none, and put right, or replace, what is not as desired.

        Args:
            owner: whose object; `desired` has its `owner_reference`.
            seen: the owner's status reports such an object, so that one that is missing was deleted, unless we did
                that; None: if anything was written into the status.
            desired_changed: the owner's specification is newer than its status, or `desired` follows from what has
                changed elsewhere, so that no other client made a difference. It is believed once for each generation
                and body.

        Raises:
            NotOwned: an object of that name is there and is not this owner's. It is not touched. Where the cache cannot
                show it, it is not read again for `REFUSED_S`.
            Unwatched: the API server refuses the list of a kind that is optional. Nothing is done.
            Forbidden, Invalid: the API server refuses; the same is not requested again for `REFUSED_S`.
            Reverted: a change is taken and reverted.
            Refused: a change cannot be made at all.
            StaleCache: owner or object are not as the caches show them.
        """
        key = self._rules.key(desired)
        if (why := self._refusal(key.namespace)) is not None:
            words = why.message if isinstance(why, ApiError) and why.message else str(why)
            resource = self._kind.resource
            raise Unwatched(f"The {resource.kind} is left as it is, as {resource.plural} cannot be watched: {words}")
        live = self._store.get(key)
        seen = has_status(owner) if seen is None else seen
        if seen and (last := self._last(owner, key)) is not None and not last.deleted_uid:
            self._forget(owner, key)
        try:
            if live is None:
                if not self._owners.may_repair(owner, self._kind, key):
                    return EnsureResult(None, f"The {self._kind.resource.kind} was deleted, and will be recreated.")
                if (made := await self._make(owner, desired, key, seen=seen)) is not None:
                    return self._judged(owner, made)
                # Another client was faster, and the watch has not shown it yet: judge the live one.
                live = await self._client.get(self._kind, key)
            kept = await self._put_right(owner, desired, live, desired_changed=desired_changed)
            if kept.obj is None and self._store.get(key) is None:
                raise StaleCache(f"no watch may report the deletion of what is not in the cache: {kept.waiting}")
            return kept
        except NotOwned as error:
            # One whose type does not give labels has none.
            if live is not None and not self._store.selection.may_hold(live.namespace, getattr(live, "labels", {})):
                self._owners.note_refusal(owner, self._kind, key, desired, error)
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

    async def remove(self, owner: O, key: ObjectKey, *, propagation: Propagation | None = None) -> EnsureResult[P]:
        """Delete the object of that name where the cache has one that is the owner's; it may be made again by `ensure`.

        What is not the owner's is not touched, without a word, and so is whatever is there of an optional kind whose
        list the API server refuses. `propagation` is as in `Client.delete`. Raises Forbidden and StaleCache as
        `ensure`.
        """
        live = self._store.get(key)
        if (done := self._decider.decide_removal(owner, live)) is not None:
            return done
        assert live is not None
        if not self._owners.may_repair(owner, self._kind, key):
            return EnsureResult(live)
        try:
            await self._delete(owner, live, (), propagation, digest=lambda: "absent")
        except Conflict as error:
            raise self._stale(live, error) from error
        return EnsureResult(None, self._decider.going)

    async def _make(self, owner: O, desired: W, key: ObjectKey, *, seen: bool) -> P | None:
        last = self._last(owner, key)
        decided = decide_creation(last, seen=seen)
        try:
            with self._owners.trying(owner, self._kind, key, desired):
                if decided.owner_in_doubt and not await self._owners.still_there(owner):
                    raise self._gone()
                repair = self._owners.repair(owner, self._kind, key, "deleted")
                async with repair if decided.drift else nullcontext():
                    made = await self._client.create(self._kind, self._rules.body(desired))
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
        routine = (decided.drift or decided.replaces) and self._owners.contention.is_throttled(key_of(owner))
        self._on_change(owner, Change(None, made, decided.fields, not decided.drift, routine))
        return made

    async def _put_right(self, owner: O, desired: W, live: P, *, desired_changed: bool) -> EnsureResult[P]:
        decided = self._decider.decide(owner, desired, live)
        if isinstance(decided, NotOwned):
            raise decided
        if isinstance(decided, EnsureResult):
            return decided
        key, last = key_of(live), self._last(owner, key_of(live))
        if last is not None and last.deleted_uid not in ("", live.uid):
            self._forget(owner, key)  # another client has made it
        if decided is None or not self._owners.may_repair(owner, self._kind, key):
            return EnsureResult(live)
        digest = partial(self._digest, desired) if desired_changed else None
        match decided:
            case Refused():
                raise decided
            case Replace(fields, propagation, why):
                await self._delete(owner, live, fields, propagation, digest=digest)
                return EnsureResult(None, why)
            case Update():
                return await self._update(owner, desired, live, decided, digest)

    async def _update(
        self, owner: O, desired: W, live: P, update: Update, digest: DesiredDigest | None
    ) -> EnsureResult[P]:
        """Put right what was found, unless another client or a policy undoes it as it is admitted."""
        if update.disowned and not await self._owners.still_there(owner):
            # Deleted with --cascade=orphan, which the watch has not shown yet. Owned by it again, the object would be
            # the garbage collector's.
            raise self._gone()
        key, paths = key_of(live), [each.path for each in update.found]
        with self._owners.trying(owner, self._kind, key, (live.uid, desired, update.found)):
            async with self._owners.repair(owner, self._kind, key, "changed", paths, digest=digest):
                answer = await self._patch(live, update.found, desired)
                if why := self._decider.reverted(owner, desired, answer, update):
                    raise Reverted(why)
        judged = self._judged(owner, answer)
        routine = self._owners.contention.is_throttled(key_of(owner))
        self._on_change(owner, Change(live, answer, update.reported, digest is not None, routine))
        return judged

    async def _patch(self, live: P, found: Sequence[Difference], desired: W) -> P:
        resource = self._kind.resource
        body = None
        if needs_live(found, resource):
            plainly = plain(resource.api_version, resource.kind, resource.plural, namespaced=resource.namespaced)
            body = (await self._client.get(plainly, key_of(live))).body
        sent = patch_of(found, resource, body, self._rules.body(desired))
        return await self._client.patch(self._kind, live, sent, strict=True, strategic=is_strategic(resource))

    async def _delete(
        self,
        owner: O,
        live: P,
        fields: Sequence[Difference],
        propagation: Propagation | None,
        *,
        digest: DesiredDigest | None,
    ) -> None:
        """Delete this very version of an object: to replace it, as these fields cannot be changed, or for good."""
        key, done = key_of(live), LastWrite(owner.uid, deleted_uid=live.uid, fields=fields)
        paths = [each.path for each in fields]
        try:
            with self._owners.trying(owner, self._kind, key, (live.uid, propagation)):
                if not await self._owners.still_there(owner):
                    # Deleted with --cascade=orphan, which the watch has not shown yet: then the object is to stay.
                    raise self._gone()
                verb: Verb = "changed" if paths else "made"
                async with self._owners.repair(owner, self._kind, key, verb, paths, digest=digest):
                    await self._client.delete(
                        self._kind, live, resource_version=live.resource_version, propagation=propagation
                    )
        except (Unreachable, MalformedAnswer):
            self._note(owner, key, done)  # it may have been done all the same
            raise
        self._note(owner, key, done)
        routine = self._owners.contention.is_throttled(key_of(owner))
        self._on_change(owner, Change(live, live, fields, digest is not None, routine, deleted=True))

    def _last(self, owner: O, key: ObjectKey) -> LastWrite | None:
        """Find the last write of an object for this very owner, and no predecessor of its name."""
        last = (self._last_writes.get(key_of(owner)) or {}).get(key)
        return last if last is not None and last.owner_uid == owner.uid else None

    def _note(self, owner: O, key: ObjectKey, last: LastWrite) -> None:
        self._last_writes[key_of(owner)][key] = last

    def _forget(self, owner: O, key: ObjectKey) -> None:
        if (writes := self._last_writes.get(key_of(owner))) is not None:
            writes.pop(key, None)
            if not writes:
                self._last_writes.pop(key_of(owner), None)

    def _digest(self, desired: W) -> int:
        return hash(msgspec.json.encode(self._rules.body(desired)))

    def _judged(self, owner: O, answer: P) -> EnsureResult[P]:
        """Judge the answer to a write: another client may have made the object another owner's in that moment."""
        claimed = self._decider.claim(owner, answer)
        if isinstance(claimed, NotOwned):
            raise claimed
        return EnsureResult(answer) if claimed is None else claimed

    def _gone(self) -> StaleCache:
        return StaleCache(f"the {self._owners.kind.resource.kind} no longer exists: the cache is stale")

    def _stale(self, live: P | None, error: Exception) -> StaleCache:
        """Return the error of an object that was deleted or recreated since the cache saw it."""
        if live is not None:
            self._client.outdated(self._kind, live)
        return StaleCache(f"{self._kind.resource.kind} changed concurrently: {error}")
