"""The objects of one kind that own others: what is remembered of each, refused writes too, and how often is written."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from operator_runtime.cache.store import ObjectKey, Store, key_of
from operator_runtime.client.errors import Conflict, Forbidden, Invalid, KubeError, NotFound
from operator_runtime.client.watch import Record
from operator_runtime.controller.client import Client
from operator_runtime.controller.controller import Reconcile, Result
from operator_runtime.events.recorder import EventRecorder
from operator_runtime.objects.kinds import Kind, reference
from operator_runtime.owned.contention import Contention, DesiredDigest, Undone, Verb
from operator_runtime.owned.ensure_rules import Refused
from operator_runtime.owned.per_key_state import KeyedStates

logger = logging.getLogger(__name__)

# The reason of the event.
REASON = "Contested"
# How long an owner that the API server no longer has is believed to be gone, whatever the cache shows.
GONE_S = 5.0
# How long a refused write is not sent again, as its answer would be the same. No watch reports a right that was
# granted, or a quota that was raised.
REFUSED_S = 30.0
_ANOTHER = "Another client"


class Owner(Record, Protocol):
    @property
    def generation(self) -> int: ...
    @property
    def deleting(self) -> bool: ...


O = TypeVar("O", bound=Owner)  # noqa: E741 -- for owner, as in the signatures below


class _Gone(NamedTuple):
    """Version of an owner that the cache still had when the API server had none, and until when that is believed."""

    version: str = ""
    until_s: float = 0.0


class _Refusal(NamedTuple):
    what: object
    error: KubeError
    until_s: float


class Owners(Generic[O]):
    """The objects of one kind that own others, each of which is reconciled by one controller.

    `reconcile` stands around that reconcile, and `repair` around each write that puts something right (`contention`).

    Attributes:
        states: what is remembered of each owner, and goes with it.
        contention: what another client writes against us in a loop, by the owner's key.
    """

    def __init__(
        self,
        client: Client,
        events: EventRecorder,
        kind: Kind[O],
        store: Store[O],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.client = client
        self.kind = kind
        self.states = KeyedStates()
        self._events = events
        self._store = store
        self._clock = clock
        self.contention = Contention(self.states, clock)
        self._gone = self.states.keyed(_Gone)
        # The last refusal for each object of an owner, by its kind and key.
        self._refusals = self.states.keyed(dict[tuple[str, ObjectKey], _Refusal])

    def wait_s(self, key: ObjectKey) -> float:
        """Seconds that an owner waits, as it is gone whatever the cache shows, or contested; no user's change does."""
        owner = self._store.get(key)
        if owner is None or owner.deleting:
            return 0.0
        return self._gone_for_s(owner) or self.contention.wait_s(key, owner.generation)

    async def reconcile(self, key: ObjectKey, reconcile: Reconcile[ObjectKey]) -> Result:
        """Do `reconcile`, and what comes before and after it; what is remembered of an owner goes with it."""
        owner = self._store.get(key)
        if owner is None:
            self.states.forget(key)
        elif not owner.deleting and (over := self.contention.begin(key, owner.generation)):
            logger.info("%s", over)
        result = await reconcile(key)
        # One that is being deleted is not put right, and waits for nothing of this.
        next_s = None if owner is None or owner.deleting else self.contention.requeue_after_s(key)
        if next_s is None or (result.requeue_after_s is not None and result.requeue_after_s <= next_s):
            return result
        return Result(requeue_after_s=next_s, priority=result.priority)

    def may_repair(self, owner: O, kind: Kind[Any], at: ObjectKey) -> bool:
        """Report whether an object that needs it may be repaired in this reconcile; see `Contention.may_repair`."""
        return self.contention.may_repair(key_of(owner), _object(kind, at))

    @contextmanager
    def trying(self, owner: O, kind: Kind[Any], at: ObjectKey, what: object) -> Iterator[None]:
        """Around a write: raises the error of the same write, by `what`, where that was refused within `REFUSED_S`."""
        refusals, place = self._refusals.get(key_of(owner)) or {}, (kind.resource.qualified_name, at)
        if (refusal := refusals.get(place)) is not None:
            if refusal.what == what and self._clock() < refusal.until_s:
                raise refusal.error.with_traceback(None)
            del refusals[place]
        try:
            yield
        except (Forbidden, Invalid, Refused) as error:
            self.note_refusal(owner, kind, at, what, error)
            raise

    def note_refusal(self, owner: O, kind: Kind[Any], at: ObjectKey, what: object, error: KubeError) -> None:
        refusal = _Refusal(what, error, self._clock() + REFUSED_S)
        self._refusals[key_of(owner)][kind.resource.qualified_name, at] = refusal

    @asynccontextmanager
    async def repair(
        self,
        owner: O,
        kind: Kind[Any],
        at: ObjectKey,
        verb: Verb,
        fields: Sequence[str] = (),
        *,
        digest: DesiredDigest | None = None,
        status: bool = False,
    ) -> AsyncIterator[None]:
        """Around a write that puts an object right. If it is one too many, the log and an event report who else writes.

        Args:
            verb: what is undone by the write, with the `fields` where they were changed.
            digest: see `Contention.repaired`.
            status: the object is the owner, and its status is written: what of it differs is `fields`, and what we
                desire of it `digest`. A conflict counts as much then: another client wrote it meanwhile.
        """
        key, name, who = key_of(owner), kind.resource.kind, _ANOTHER
        of = None if status else _object(kind, at)
        # Once this is written, the managedFields name no other client.
        if fields and self.contention.is_last(key, owner.generation, of, digest):
            who = await self._other_manager(kind, at, fields)
        undone = Undone(verb, name if at == key else f"{name} {at}", fields)

        def count() -> None:
            note = undone.note(who, self.kind.resource.kind)
            times, notes = self.contention.repaired(key, owner.generation, of, undone, note, digest=digest)
            for each in notes:
                if times:
                    logger.warning("still contested, corrected %d more times: %s", times, each)
                else:
                    logger.warning("contested: %s", each)
                about = reference(self.kind, owner)
                self._events.emit(about, type="Warning", reason=REASON, action="Repair", note=each)

        try:
            yield
        except Conflict:
            if status:
                count()
            raise
        count()

    async def still_there(self, owner: O) -> bool:
        """Report whether this owner exists now and is not being deleted, whatever the cache shows.

        Without this, a watch that is down would have us make again what the garbage collector deletes.
        """
        key = key_of(owner)
        if self._gone_for_s(owner) > 0.0:
            return False
        try:
            live = await self.client.get(self.kind, key)
        except NotFound:
            self._gone[key] = _Gone(owner.resource_version, self._clock() + GONE_S)
            return False
        return live.uid == owner.uid and not live.deleting

    def _gone_for_s(self, owner: O) -> float:
        gone = self._gone.get(key_of(owner))
        if gone is None or gone.version != owner.resource_version:
            return 0.0
        return max(0.0, gone.until_s - self._clock())

    async def _other_manager(self, kind: Kind[Any], at: ObjectKey, fields: Sequence[str]) -> str:
        """Name another manager that writes these fields, as well as can be known."""
        own = self.client.field_manager
        try:
            writers = await self.client.writers(kind, at)
        except KubeError as error:
            logger.debug("cannot read who writes %s: %s", ", ".join(fields), error)
            return _ANOTHER
        owners = [each for field in fields for each in writers.owners(field)]
        if others := [each for each in owners if each.manager != own]:
            return f'"{max(others, key=lambda each: each.time).manager}"'
        if owners:
            return f'{_ANOTHER} that calls itself "{own}" (does a second operator run?)'
        latest = next((each.manager for each in writers.latest(fields[0]) if each.manager != own), None)
        return f'{_ANOTHER} (the last one to write the object is "{latest}")' if latest else _ANOTHER


def _object(kind: Kind[Any], at: ObjectKey) -> Hashable:
    """Return the key by which an object is known among those of one owner."""
    return kind.resource.kind, at
