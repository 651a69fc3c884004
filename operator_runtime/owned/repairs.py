"""The writes for an owner: not again what was refused just now, and not in a loop against another manager.

The rule of the latter is in `contention`. Each such write goes through `Repairs.write`; `Repairs.guarded` stands around
the reconcile.
"""

from __future__ import annotations

import logging
import time
from array import array
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from operator_runtime.cache.store import ObjectKey, Store, key_of
from operator_runtime.client.errors import Conflict, Forbidden, Invalid, KubeError, NotFound
from operator_runtime.client.watch import Record
from operator_runtime.controller.client import Client
from operator_runtime.controller.controller import Result
from operator_runtime.events.recorder import EventRecorder
from operator_runtime.objects.kinds import Kind, reference
from operator_runtime.objects.managed_fields import Writers
from operator_runtime.owned.contention import QUIET_S, REPAIRS, WINDOW_S, FieldContention
from operator_runtime.owned.memory import Memory

logger = logging.getLogger(__name__)

# The reason of the event.
REASON = "Contested"
# What is put right by deleting an object that another client makes; "" is the object that it deletes.
UNWANTED = "-"
# How long what was refused is not asked for again: no watch tells of a right that was granted, or a quota raised.
REFUSED_S = 30.0
# How long an owner that the API server no longer has is believed to be gone, whatever the cache shows.
GONE_S = 5.0


class Owner(Record, Protocol):
    """What is read of an owner."""

    @property
    def generation(self) -> int: ...
    @property
    def deleting(self) -> bool: ...


O = TypeVar("O", bound=Owner)  # noqa: E741 -- for owner, as in the signatures below
T = TypeVar("T")

Reconcile = Callable[[ObjectKey], Awaitable[Result]]


class Refused(KubeError):
    """A write did not do what it should, although the API server took it; the message says why, and the remedy."""


class _Refusal(NamedTuple):
    """What was not done, why, and until when (by the clock) it is not asked for again."""

    what: object
    error: KubeError
    until_s: float


class _Field(NamedTuple):
    """A field of one object.

    The path is "" for the object itself, which another client deletes and we make again, and `UNWANTED` for one that
    another client makes and we delete.
    """

    kind: str
    at: ObjectKey
    path: str


class _Refusals(dict[tuple[str, ObjectKey], _Refusal]):
    """By kind and key of the object."""


class _Told(list[str]):
    """What was said of each field that is contested."""


class _Gone(NamedTuple):
    """Which version of an owner the cache still had when the API server had none, and until when that is believed."""

    version: str = ""
    until_s: float = 0.0


class _Written:
    """What was last written of each status, by the owner's uid: a number for each field with its value.

    It is there for `WINDOW_S` at least. After a load there are thousands; so none has a time of its own, and all that
    are about as old go at once, when another status is written.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._begun_s = clock()
        self._lately: dict[str, array[int]] = {}
        self._before: dict[str, array[int]] = {}

    def of(self, uid: str) -> array[int] | tuple[int, ...]:
        """Of one status; nothing where others have been written for long."""
        return self._lately.get(uid, self._before.get(uid, ()))

    def set(self, uid: str, digests: array[int]) -> None:
        """It was written now."""
        if (now := self._clock()) >= self._begun_s + WINDOW_S:
            self._before = self._lately if now < self._begun_s + 2 * WINDOW_S else {}
            self._begun_s, self._lately = now, {}
        self._lately[uid] = digests


class Repairs(Generic[O]):
    """The writes for the owners of one kind, each of which is reconciled by one controller."""

    def __init__(
        self,
        client: Client,
        events: EventRecorder,
        owners: Kind[O],
        store: Store[O],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            client: writes, and reads who else does.
            events: where contention is told, on the owner.
            owners: their kind.
            store: their cache.
            clock: monotonic seconds.
        """
        self.memory = Memory()
        self._client = client
        self._events = events
        self._owners = owners
        self._store = store
        self._clock = clock
        self._contention: FieldContention[_Field] = FieldContention(self.memory, clock)
        self._told = self.memory.slot(_Told)
        self._refusals = self.memory.slot(_Refusals)
        self._gone = self.memory.slot(_Gone)
        self._written = _Written(clock)

    @property
    def contested(self) -> int:
        """How many owners have something that is contested."""
        return len(self._contention)

    def wait_s(self, key: ObjectKey) -> float:
        """Seconds for which an owner is not looked at: it is gone, whatever the cache shows, or contested.

        What the user asks for is not kept waiting.
        """
        owner = self._store.get(key)
        if owner is None or owner.deleting:
            return 0.0
        if gone_s := self._gone_for_s(owner):
            return gone_s
        return self._contention.wait_s(key, owner.generation)

    def guarded(self, reconcile: Reconcile) -> Reconcile:
        """`reconcile`, with what is to be done before and after it; what is remembered of an owner goes with it."""

        async def guarded(key: ObjectKey) -> Result:
            owner = self._store.get(key)
            if owner is None:
                self.memory.forget(key)
            elif not owner.deleting:
                if fields := self._contention.over(key):
                    self._told.drop(key)
                    logger.info("no longer contested: no other client has %s for %d s", _done(fields), QUIET_S)
                self._contention.look(key, owner.generation)
            result = await reconcile(key)
            # One on its way out is not put right, and waits for nothing of this.
            next_s = None if owner is None or owner.deleting else self._contention.next_look_s(key)
            if next_s is None or (result.requeue_after_s is not None and result.requeue_after_s <= next_s):
                return result
            return Result(requeue_after_s=next_s, priority=result.priority)

        return guarded

    def delayed(self, delay_s: Callable[[ObjectKey], float]) -> Callable[[ObjectKey], float]:
        """`delay_s`, and after it `wait_s`: seconds for which a controller leaves a key alone."""
        return lambda key: delay_s(key) or self.wait_s(key)

    def allowed(self, owner: O) -> bool:
        """Whether owned objects may be put right now; where not, it is the turn of the owner's status."""
        return self._contention.allowed(key_of(owner))

    def is_routine(self, owner: O) -> bool:
        """Whether this look is at a contention that was told of: what it puts right is nothing new."""
        return self._contention.damped(key_of(owner))

    def is_spent(self, owner: O) -> bool:
        """Whether this look has had its one write."""
        return self._contention.wrote(key_of(owner))

    async def write(
        self,
        owner: O,
        kind: Kind[Any],
        at: ObjectKey,
        write: Callable[[], Awaitable[T]],
        *,
        fields: Sequence[str] = (),
        what: object = None,
        asked: bool = False,
        wish: int | None = None,
    ) -> T:
        """Do what `write` does, unless the API server refused the same within `REFUSED_S`: then that error once more.

        Args:
            owner: for whose sake.
            kind: of the object that is written.
            at: the object's key.
            write: sends it; what it raises as `Refused` counts as a refusal, too.
            fields: what is put right by it, as `comparison.Difference.path` names them; "" for the object itself, which
                is made again, `UNWANTED` for one that is deleted.
            what: equal for the same write, None for one that is always sent.
            asked: by what is known, this is wanted since just now, so that nobody else's doing is put right.
            wish: a digest of what is wanted of the object: `asked` is believed once for each, and for each generation.
        """
        key, place = key_of(owner), (kind.resource.qualified_name, at)
        refusals = self._refusals.find(key)
        if refusals is not None and (refusal := refusals.get(place)) is not None:
            if refusal.what == what and self._clock() < refusal.until_s:
                raise refusal.error.with_traceback(None)
            del refusals[place]
        repaired = [_Field(kind.resource.kind, at, path) for path in fields]
        others = await self._other_managers(key, kind, repaired)
        try:
            done = await write()
        except (Forbidden, Invalid, Refused) as error:
            if what is not None:
                self.refused(owner, kind, at, what, error)
            raise
        if repaired:
            self._repaired(owner, repaired, others, asked=asked, wish=wish)
        return done

    def refused(self, owner: O, kind: Kind[Any], at: ObjectKey, what: object, error: KubeError) -> None:
        """It is known why this cannot be done: `write` has it raised for the same within `REFUSED_S`.

        Args:
            owner: for whose sake.
            kind: of the object that is not written.
            at: the object's key.
            what: equal for the same write.
            error: says why.
        """
        place = (kind.resource.qualified_name, at)
        self._refusals.of(key_of(owner))[place] = _Refusal(what, error, self._clock() + REFUSED_S)

    async def still_there(self, owner: O) -> bool:
        """Whether this owner is there now and is not being deleted, whatever the cache shows.

        Without this, a watch that is down would have us make again what the garbage collector deletes.
        """
        key = key_of(owner)
        if self._gone_for_s(owner) > 0.0:
            return False
        try:
            live = await self._client.get(self._owners, key)
        except NotFound:
            self._gone.set(key, _Gone(owner.resource_version, self._clock() + GONE_S))
            return False
        return live.uid == owner.uid and not live.deleting

    async def write_status(
        self, owner: O, status: Mapping[str, object], changed: Iterable[str], write: Callable[[], Awaitable[T]]
    ) -> T:
        """Do what `write` does, which writes the owner's status; who changes what we wrote before is another manager.

        Args:
            owner: whose status.
            status: what is wanted of it, as far as it is ours, by field.
            changed: the fields that differ from the live status.
            write: sends it.
        """
        key, digests = key_of(owner), array("q", [hash(each) for each in status.items()])
        before = self._written.of(owner.uid)
        kind = self._owners.resource.kind
        undone = [_Field(kind, key, f"status.{each}") for each in changed if hash((each, status[each])) in before]
        others = await self._other_managers(key, self._owners, undone)
        try:
            done = await write()
        except Conflict:  # somebody else wrote meanwhile: ours was to put right as much
            self._status_written(owner, digests, undone, others)
            raise
        self._status_written(owner, digests, undone, others)
        return done

    def _status_written(
        self, owner: O, digests: array[int], undone: Sequence[_Field], others: Mapping[_Field, str]
    ) -> None:
        self._written.set(owner.uid, digests)
        if undone:
            self._repaired(owner, undone, others, asked=False)

    def _gone_for_s(self, owner: O) -> float:
        gone = self._gone.find(key_of(owner))
        if gone is None or gone.version != owner.resource_version:
            return 0.0
        return max(0.0, gone.until_s - self._clock())

    async def _other_managers(self, key: ObjectKey, kind: Kind[Any], fields: Sequence[_Field]) -> Mapping[_Field, str]:
        """Who changed those of these fields of which it has to be said now. To be asked before they are put right."""
        beginning = [each for each in self._contention.would_begin(key, fields) if each.path not in ("", UNWANTED)]
        if not beginning:
            return {}
        try:
            writers = await self._client.writers(kind, beginning[0].at)
        except KubeError as error:
            logger.debug("cannot read who writes %s: %s", ", ".join(each.path for each in beginning), error)
            writers = Writers(b"")
        return {each: _other_manager(writers, each.path, self._client.field_manager) for each in beginning}

    def _repaired(
        self,
        owner: O,
        fields: Sequence[_Field],
        others: Mapping[_Field, str],
        *,
        asked: bool,
        wish: int | None = None,
    ) -> None:
        """These fields were put right: say what has become contested, and from time to time what still is."""
        key, kind = key_of(owner), self._owners.resource.kind
        before = self._contention.contested(key)
        place = (fields[0].kind, fields[0].at)
        again = self._contention.repaired(key, owner.generation, fields, asked=asked, of=place, wish=wish)
        for each in self._contention.contested(key)[len(before) :]:
            who, often = others.get(each, "Another client"), f"{REPAIRS} times within {WINDOW_S:.0f} s"
            of = each.kind if each.at == key else f"{each.kind} {each.at}"
            if each.path == UNWANTED:
                text = (
                    f"{who} keeps making the {of}, which the {kind} is to be without: deleted {often}, from now on "
                    "once a second at most. Stop that client."
                )
            elif each.path:
                text = (
                    f"{who} keeps changing {each.path} of the {of}: put right {often}, from now on once a second at "
                    "most. Stop that client from writing the field; what is to change for good belongs into the "
                    f"{kind}."
                )
            else:
                text = (
                    f"{who} keeps deleting the {of}: made again {often}, from now on once a second at most. Stop that "
                    f"client; for good, the {each.kind} goes with the {kind}."
                )
            self._told.of(key).append(text)
            logger.warning("contested: %s", text)
            self._tell(owner, text)
        if again:
            told, times = self._told.of(key), self._contention.repairs(key)
            logger.warning("still contested, put right %d times more: %s", times, " ".join(told))
            for text in told:
                self._tell(owner, text)

    def _tell(self, owner: O, note: str) -> None:
        self._events.emit(reference(self._owners, owner), type="Warning", reason=REASON, action="Repair", note=note)


def _other_manager(writers: Writers, field: str, ours: str) -> str:
    """Who writes a field, as well as can be told."""
    owners = writers.owners(field)
    for owner in owners:
        if owner.manager != ours:
            return f'"{owner.manager}"'
    if owners:
        return f'Another client that calls itself "{ours}" (does a second operator run?)'
    for writer in writers.latest(field):
        if writer.manager != ours:
            return f'Another client (the last one to write the object is "{writer.manager}")'
    return "Another client"


def _done(fields: Sequence[_Field]) -> str:
    """What another client did to these fields, to follow "has"."""
    done: dict[str, list[str]] = {"changed": [], "deleted": [], "made": []}
    for each in fields:
        verb = {"": "deleted", UNWANTED: "made"}.get(each.path, "changed")
        done[verb].append(each.path if verb == "changed" else f"the {each.kind}")
    return " or ".join(f"{verb} {', '.join(what)}" for verb, what in done.items() if what)
