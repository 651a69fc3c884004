"""Keeping an owned object as its owner wants it: made, put right, or left alone.

    self._config_maps = operator.owned(GREETINGS, CONFIG_MAPS)
    ...
    kept = await self._config_maps.keep(greeting, config_map_of(greeting))

The cache is looked at, and nothing is sent where it shows what is wanted. What is there and is not the owner's stays as
it is. Before something is made or taken again, the API server is asked whether its owner is still there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from operator_runtime.cache.store import ObjectKey, Store, key_of
from operator_runtime.client.errors import Conflict, Forbidden, Invalid, MalformedAnswer, NotFound, Unreachable
from operator_runtime.client.resources import Resource
from operator_runtime.client.watch import Record
from operator_runtime.controller.client import Client
from operator_runtime.controller.controller import StaleCache
from operator_runtime.events.recorder import EventRecorder
from operator_runtime.objects.api_objects import OwnerReference
from operator_runtime.objects.bodies import controller_in, whole_body, without_nones
from operator_runtime.objects.drift import covers
from operator_runtime.objects.kinds import Kind, PlainObject, reference
from operator_runtime.reconciling.comparison import Difference, differences
from operator_runtime.reconciling.repairs import REFUSED_S, Owner, Refused, Repairs

logger = logging.getLogger(__name__)

# What nobody may change of an object that is there, of the kinds of these groups: Deployments, StatefulSets, Jobs.
_FIXED, _FIXED_IN = "spec.selector", ("apps", "batch")
_OWNERS = "metadata.ownerReferences"


class Ownable(Record, Protocol):
    """What is read of an object that may be owned."""

    @property
    def deleting(self) -> bool: ...
    @property
    def controller(self) -> OwnerReference | None: ...


O = TypeVar("O", bound=Owner)  # noqa: E741 -- for owner
W = TypeVar("W")
P = TypeVar("P", bound=Ownable)


class NotOwned(Refused):
    """An object of the name that ours should have is somebody else's; the message says whose, and the remedy."""


class Kept(NamedTuple, Generic[P]):
    """An owned object as it is now.

    Attributes:
        obj: None where there is none yet.
        waiting: what is waited for before there can be one, as a sentence; "" for nothing.
    """

    obj: P | None
    waiting: str = ""


class Patch(NamedTuple):
    """A cheaper way than an apply, or the only one, to put some fields right.

    Attributes:
        body: of the patch, without metadata.uid.
        repairs: the differences that it puts right.
        strategic: it is a strategic merge patch, and not a JSON merge patch.
    """

    body: Mapping[str, object]
    repairs: Sequence[Difference]
    strategic: bool = False


class Change(NamedTuple, Generic[P]):
    """A write that was done.

    Attributes:
        before: the object, None where it was made.
        obj: as it is now.
        fields: what was put right; nothing of one that was made.
        asked: the user asked for it; else somebody else had changed the fields, or deleted the object.
        routine: it is contested, and that was said: this one is not worth a word.
    """

    before: P | None
    obj: P
    fields: Sequence[Difference]
    asked: bool
    routine: bool


@dataclass(frozen=True, slots=True)
class Rules(Generic[W, P]):
    """How the objects of one kind are kept.

    Attributes:
        differences: which fields of the live object are not as wanted; nothing where an apply would change nothing.
        key: of what is wanted.
        body: of what is wanted, as a manifest has it.
        patch: a way to put differences right, None for an apply of the whole. What it leaves is put right next.
        is_ours: whether an object is that of the owner of this uid.
        handover: what would make an object ours that has no owner, to follow the remedy; "" for nothing.
    """

    differences: Callable[[W, P], Iterable[Difference]]
    key: Callable[[W], ObjectKey]
    body: Callable[[W], Mapping[str, Any]]
    patch: Callable[[W, P, Sequence[Difference]], Patch | None] = lambda *_: None
    is_ours: Callable[[P, str], bool] = lambda live, uid: live.controller is not None and live.controller.uid == uid
    handover: str = ""


def rules_for_bodies(manager: str, resource: Resource) -> Rules[Any, Any]:
    """For what is wanted as dicts: an apply of it would change nothing, also of what was applied before.

    Args:
        manager: applies it.
        resource: of the objects.
    """

    def differ(wanted: Mapping[str, Any], live: Any) -> Iterable[Difference]:
        if covers(live, wanted, manager):
            return ()
        held = getattr(live, "body", None) or {"metadata": {}, "spec": live.spec}
        body = without_nones({part: value for part, value in wanted.items() if part in held and part != "metadata"})
        return tuple(differences(body, held)) or (Difference("metadata.managedFields", "ours", "others'"),)

    def checked(wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        controller_in(resource, whole_body(resource, wanted))
        return wanted

    return Rules(differ, _key_in, checked)


def _has_status(owner: object) -> bool:
    """Whether something was written into the status of an object, as far as that can be told."""
    if isinstance(owner, PlainObject):
        return bool(owner.body.get("status"))
    status = getattr(owner, "status", None)
    return status is None or status != type(status)()


def _key_in(body: Mapping[str, Any]) -> ObjectKey:
    metadata = body["metadata"]
    return ObjectKey(str(metadata.get("namespace", "")), str(metadata["name"]))


def telling(events: EventRecorder, owners: Kind[Any], kind: Kind[Any]) -> Callable[[Any, Change[Any]], None]:
    """What is told of changes where an author says nothing else: a line in the log, and an event on the owner."""

    def tell(owner: Any, change: Change[Any]) -> None:
        done = "Created" if change.before is None else "Updated"
        apart = change.obj.namespace != owner.namespace
        what = f"{kind.resource.kind} {key_of(change.obj) if apart else change.obj.name}"
        why = "; ".join(map(str, change.fields)) or ("new" if change.asked else "there was none")
        logger.log(logging.DEBUG if change.routine else logging.INFO, "%s %s: %s", done.lower(), what, why)
        if not change.routine:
            note = f"{done} {what}: {why}"
            events.emit(reference(owners, owner), type="Normal", reason=done, action=done.removesuffix("d"), note=note)

    return tell


class _Attempt(NamedTuple):
    """A create, for the owner of this uid; one that is not answered may have been done all the same."""

    owner_uid: str
    answered: bool


class _Made(dict[ObjectKey, _Attempt]):
    """By object, while no status tells of it."""


class Keeper(Generic[O, W, P]):
    """Keeps one object of a kind for each owner at a time; see `keep`. Made by `Operator.owned`."""

    def __init__(
        self,
        client: Client,
        owners: Kind[O],
        kind: Kind[P],
        store: Store[P],
        repairs: Repairs[O],
        rules: Rules[W, P],
        tell: Callable[[O, Change[P]], None],
    ) -> None:
        """
        Args:
            client: writes.
            owners: kind of the owners.
            kind: of what is owned.
            store: its cache.
            repairs: of the owners.
            rules: how it is kept.
            tell: told of each write that was done.
        """
        self._client = client
        self._owners = owners
        self._kind = kind
        self._store = store
        self._repairs = repairs
        self._rules = rules
        self._tell = tell
        self._made = repairs.memory.slot(_Made)

    async def keep(self, owner: O, wanted: W, *, seen: bool | None = None, asked: bool = True) -> Kept[P]:
        """Make the object where there is none, and put right what is not as wanted.

        Args:
            owner: whose object; `wanted` has its `owner_reference`.
            wanted: the object.
            seen: the owner's status tells of such an object, so that one that is missing was deleted; None: if there
                is a status at all.
            asked: the owner's specification is newer than its status, so that a difference is nobody's doing. It is
                believed once for each generation.

        Raises:
            NotOwned: an object of that name is there and is not this owner's. It is left alone.
            Forbidden, Invalid: the API server refuses; it is not asked for the same again for `REFUSED_S`.
            Refused: a change is taken and reverted, or cannot be made at all.
            StaleCache: owner or object are not as the caches show them.
        """
        key = self._rules.key(wanted)
        live = self._store.get(key)
        seen = _has_status(owner) if seen is None else seen
        if seen:
            self._reported(owner, key)
        try:
            if live is None:
                if not self._repairs.allowed(owner):
                    return Kept(None, f"The {self._kind.resource.kind} was deleted; a new one follows.")
                if (made := await self._make(owner, wanted, key, seen=seen)) is not None:
                    return Kept(made)
                # Somebody was faster, and the watch has not shown it yet: judge the live one.
                live = await self._client.get(self._kind, key)
            kept = await self._put_right(owner, wanted, live, asked=asked)
            if kept.obj is None and self._store.get(key) is None:
                raise StaleCache(f"no watch may tell of the end of what is not in the cache: {kept.waiting}")
            return kept
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

    async def _make(self, owner: O, wanted: W, key: ObjectKey, *, seen: bool) -> P | None:
        """Create the object; None when one of that name exists."""
        attempt = (self._made.find(key_of(owner)) or _Made()).get(key)
        tried = attempt is not None and attempt.owner_uid == owner.uid
        again = seen or (tried and attempt is not None and attempt.answered)
        if (again or tried) and not await self._repairs.still_there(owner):
            raise self._gone()

        async def create() -> P:
            return await self._client.apply(self._kind, self._rules.body(wanted), create_only=True)

        try:
            made = await self._repairs.write(owner, self._kind, key, create, fields=[""] if again else [], what=wanted)
        except Conflict:
            return None
        except (Unreachable, MalformedAnswer):
            if not again:
                self._made.of(key_of(owner))[key] = _Attempt(owner.uid, answered=False)
            raise
        if not seen:
            self._made.of(key_of(owner))[key] = _Attempt(owner.uid, answered=True)
        self._tell(owner, Change(None, made, (), not again, again and self._repairs.is_routine(owner)))
        return made

    async def _put_right(self, owner: O, wanted: W, live: P, *, asked: bool) -> Kept[P]:
        kind = self._kind.resource.kind
        if not self._rules.is_ours(live, owner.uid):
            return self._somebody_elses(owner, live)
        if live.deleting:
            return Kept(None, f"The {kind} is being deleted; a new one follows.")
        found = tuple(self._rules.differences(wanted, live))
        if not found or not self._repairs.allowed(owner):
            return Kept(live)
        fixed = next((each for each in found if each.path.startswith(_FIXED)), None)
        if fixed and self._kind.resource.group in _FIXED_IN:
            raise Refused(
                f"The {kind}'s {fixed}, which Kubernetes does not allow. Delete the {kind}: a new one follows."
            )
        disowned = any(each.path.startswith(_OWNERS) for each in found)
        if disowned and not await self._repairs.still_there(owner):
            # Deleted with --cascade=orphan, which the watch has not shown yet. Owned by it again, the object would be
            # the garbage collector's.
            raise self._gone()
        patch = self._rules.patch(wanted, live, found)
        repaired = found if patch is None else tuple(patch.repairs)

        async def send() -> P:
            if patch is None:
                body = self._rules.body(wanted)
                kept = await self._client.apply(self._kind, {**body, "metadata": body["metadata"] | {"uid": live.uid}})
            elif patch.strategic:
                kept = await self._client.strategic_patch(self._kind, live, patch.body)
            else:
                kept = await self._client.patch(self._kind, live, patch.body)
            if tuple(self._rules.differences(wanted, kept)) == found:
                fields = "; ".join(map(str, found))
                raise Refused(
                    f"Something reverts our changes of the {kind}, such as a mutating admission policy: {fields}."
                )
            return kept

        paths = [each.path for each in repaired]
        kept = await self._repairs.write(
            owner, self._kind, key_of(live), send, fields=paths, what=(live.uid, wanted, found), asked=asked
        )
        self._tell(owner, Change(live, kept, repaired, asked, self._repairs.is_routine(owner)))
        return Kept(kept)

    def _reported(self, owner: O, key: ObjectKey) -> None:
        """A status tells of the object, which need not be remembered any more."""
        if (made := self._made.find(key_of(owner))) is not None:
            made.pop(key, None)
            if not made:
                self._made.drop(key_of(owner))

    def _somebody_elses(self, owner: O, live: P) -> Kept[P]:
        kind, resource, holder = self._kind.resource.kind, self._owners.resource, live.controller
        predecessor = (resource.api_version, resource.kind, owner.name)
        if holder and (holder.api_version, holder.kind, holder.name) == predecessor:
            # The garbage collector has not come by yet. Its owner is gone for good: uids are never used twice.
            return Kept(
                None, f"The {kind} of a deleted {holder.kind} of the same name is still there; waiting for it to go."
            )
        whose = f"belongs to {holder.kind} {holder.name}" if holder else "has no owner"
        remedy = f"Rename this {resource.kind} or delete that {kind}"
        if holder is None and self._rules.handover:
            remedy += f"; to hand it over, {self._rules.handover}"
        where = f" in namespace {live.namespace}" if live.namespace != owner.namespace else ""
        raise NotOwned(f"A {kind} named {live.name} exists{where} and {whose}: it is left alone. {remedy}.")

    def _gone(self) -> StaleCache:
        return StaleCache(f"the {self._owners.resource.kind} is gone, whatever the cache shows")

    def _stale(self, live: P | None, error: Exception) -> StaleCache:
        """An object was deleted or made anew since the cache saw it."""
        if live is not None:
            self._client.outdated(self._kind, live)
        return StaleCache(f"{self._kind.resource.kind} changed under our write: {error}")
