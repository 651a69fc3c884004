"""Finalizers: what has to be done before an object may go, and where users see that it is not done.

    stage, shell = await self._finalizer.finalize(shell)
    if stage is not Stage.LIVE:
        return Result()

An object under deletion stays for as long as a finalizer is on it. If the operator that put one there is uninstalled
first, nothing takes it off: the objects hang until the operator is back or a person removes the finalizer by
`kubectl patch KIND NAME --type=merge -p '{"metadata":{"finalizers":null}}'`.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, Protocol, TypeVar

from operator_runtime.cache.store import key_of
from operator_runtime.client.dns_names import SUBDOMAIN
from operator_runtime.client.errors import Conflict, KubeError, NotFound
from operator_runtime.controller.client import Client
from operator_runtime.controller.controller import StaleCache
from operator_runtime.diagnostics.callback_errors import described, is_coroutine_function
from operator_runtime.diagnostics.failure_log import TerminalError
from operator_runtime.events.recorder import EventRecorder
from operator_runtime.objects.conditions import Condition
from operator_runtime.objects.kinds import Kind, reference
from operator_runtime.owned.owners import Owner, Owners

logger = logging.getLogger(__name__)

A = TypeVar("A", bound="Finalizable")

# What the API server takes as a finalizer: a domain, a slash and a name of at most 63 characters. On custom resources
# it takes a domain alone, too, with a warning.
_NAME = re.compile(rf"(?=[^/]{{1,253}}/){SUBDOMAIN}/[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")
_OLD_NAME = re.compile(rf"(?=.{{1,63}}$)(?=.*\.){SUBDOMAIN}")
# Another client that changes the object between our read and our write does so once or twice, not for ever.
_TRIES = 5
# Reports on so many objects are remembered, as nothing shows which ones another client removed: twice as many as
# performance.md measures. Where more wait, what was reported of them is reported again.
MOST_UNFINISHED = 20_000
# The condition that a report is given.
CONDITION = "Finalized"


class Stage(StrEnum):
    """State of an object with regard to a finalizer.

    `LIVE`: it is not being deleted and the finalizer is on it: go on with the reconcile. In all other stages nothing is
    left to do for it. `WAITING`: it is being deleted and the cleanup goes on. `CLEANED`: the cleanup is done and the
    finalizer was taken off just now. `GOING`: it is being deleted without the finalizer, which others may hold up.
    """

    LIVE = "live"
    WAITING = "waiting"
    CLEANED = "cleaned"
    GOING = "going"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Result of a cleanup that is not done yet; `why` has what is waited for, as a sentence.

    It is called again at the next reconcile: where no change of a watched object will bring one, the reconcile requests
    it by `Result(requeue_after_s=...)`.
    """

    why: str


class Finalized(NamedTuple, Generic[A]):
    """The stage, and the object as it is now: a status is to be written on this version."""

    stage: Stage
    obj: A


class Finalizable(Owner, Protocol):
    """Fields that are read of an object with finalizers."""

    @property
    def finalizers(self) -> tuple[str, ...]: ...


@dataclass(slots=True)
class _Unfinished:
    """A cleanup that is not done.

    Attributes:
        cut_off: what is yet to be reported of one that was cancelled. The next attempt begins with it: a cleanup that
            hangs is cancelled each time, and would never be seen in the status.
        waits: what was last reported of one that waits.
    """

    cut_off: str = ""
    waits: str = ""


class Finalizer(Generic[A]):
    """One finalizer on the objects of one kind; see `finalize`.

    `_unfinished` has cleanups by the object's uid, in the order in which they were last tried.
    """

    def __init__(
        self,
        name: str,
        client: Client,
        kind: Kind[A],
        cleanup: Callable[[A], Awaitable[Waiting | None]],
        *,
        add: bool = True,
        events: EventRecorder | None,
        owners: Owners[A] | None = None,
        report: Callable[[A, Condition], Awaitable[object]] | None = None,
    ) -> None:
        """
        Args:
            name: `DOMAIN/NAME`, such as `shells.example.com/finalizer`. It never changes: objects that carry a former
                name would never go.
            cleanup: what comes before an object goes. It is called again after a failure, and after a write
                that failed, so whatever it did before must not disturb it. It gives back None when all is done, or
                `Waiting`.
            add: put it on objects; False: it is only taken off those that carry it.
            events: of a failure, on the object, and of what a cleanup waits for, each time that this changes;
                None where the cleanup reports itself, also in the log.
            owners: the objects, so that one that takes the finalizer off in a loop is not raced with.
            report: writes the condition `Finalized` into the object's status while the cleanup fails or waits; it is
                called at each attempt, and sends nothing where nothing differs, as `Client.patch_status` does.

        Raises:
            ValueError: the name is none that the API server takes.
            TypeError: `cleanup` is not a coroutine function.
        """
        custom = "." in kind.resource.group
        if not (_NAME.fullmatch(name) or (custom and _OLD_NAME.fullmatch(name))):
            raise ValueError(
                f"the finalizer's name is {name!r}: write DOMAIN/NAME, such as 'shells.example.com/finalizer'"
            )
        if not is_coroutine_function(cleanup):
            raise TypeError(f"the cleanup of the finalizer {name} is not a coroutine function: write `async def`")
        self.name = name
        self._client = client
        self._kind = kind
        self._cleanup = cleanup
        self._add = add
        self._events = events
        self._owners = owners
        self._report = report
        self._unfinished: OrderedDict[str, _Unfinished] = OrderedDict()

    async def finalize(self, obj: A) -> Finalized[A]:
        """Add the finalizer on an object that is to live; clean up after one that is to go, and let it.

        Raises:
            Exception: whatever the cleanup raised, after it was reported; let it pass, and the controller tries again.
            KubeError: a write failed, likewise; `StaleCache` where there is nothing left to write to.
        """
        if not obj.deleting:
            if not self._add or self.name in obj.finalizers:
                return Finalized(Stage.LIVE, obj)
            return Finalized(Stage.LIVE, await self._put_on(obj))
        if self.name not in obj.finalizers:
            self._unfinished.pop(obj.uid, None)
            return Finalized(Stage.GOING, obj)
        unfinished = self._unfinished.setdefault(obj.uid, _Unfinished())
        self._unfinished.move_to_end(obj.uid)
        if len(self._unfinished) > MOST_UNFINISHED:
            self._unfinished.popitem(last=False)
        if what := unfinished.cut_off:
            unfinished.cut_off = ""
            await self._report_failure(obj, what)
        try:
            waiting = await self._cleanup(obj)
            if not (waiting is None or isinstance(waiting, Waiting)):
                raise TypeError(
                    f"the cleanup {described(self._cleanup)} gave back {waiting!r}: give None when all is done, "
                    "or Waiting(why)"
                )
        except asyncio.CancelledError:
            # Which of the two is not known here, and there is no time for more than to note the event down.
            unfinished.cut_off = self._on_change(
                obj, "it was cancelled, as it took longer than a reconcile may, or as the operator ends"
            )
            self._unfinished[obj.uid] = unfinished  # others may have taken its place meanwhile
            raise
        except StaleCache:
            raise  # no failure: it is reconciled again
        except Exception as error:
            again = "when the object changes" if isinstance(error, TerminalError) else "after a while"
            expected = isinstance(error, KubeError | TerminalError)
            message = str(error) if expected else f"{type(error).__name__}: {error}"
            await self._report_failure(obj, self._on_change(obj, message, again))
            raise
        if waiting is not None:
            if unfinished.waits != waiting.why:
                unfinished.waits = waiting.why
                self._log_wait(obj, waiting.why)
            if self._report is not None:
                await self._report(obj, Condition(CONDITION, "False", "CleanupPending", waiting.why))
            return Finalized(Stage.WAITING, obj)
        await self._remove(obj)
        self._unfinished.pop(obj.uid, None)
        if self._events is not None:
            logger.info("cleaned up after the %s, and removed its finalizer %s", self._kind.resource.kind, self.name)
        return Finalized(Stage.CLEANED, obj)

    async def _put_on(self, obj: A) -> A:
        if self._owners is not None and not self._owners.may_repair(obj, self._kind, key_of(obj)):
            return obj
        held = await self._write(obj, [*obj.finalizers, self.name])
        logger.log(logging.DEBUG if self._events else logging.INFO, "added the finalizer %s", self.name)
        return held

    def _log_wait(self, obj: A, why: str) -> None:
        if self._events is None:
            return
        kind = self._kind.resource.kind
        logger.info("the %s cannot go yet, as its finalizer %s waits: %s", kind, self.name, why)
        note = f"{kind} {obj.name} cannot go yet, as its finalizer {self.name} waits: {why}"
        self._events.emit(
            reference(self._kind, obj), type="Normal", reason="CleanupPending", action="Cleanup", note=note
        )

    def _on_change(self, obj: A, why: str, again: str = "after a while") -> str:
        """Report that the cleanup failed, and what it keeps from going; return the report."""
        note = (
            f"{self._kind.resource.kind} {obj.name} cannot go, as the cleanup of its finalizer {self.name} failed; "
            f"it is tried again {again}: {why}"
        )
        if self._events is not None:
            about = reference(self._kind, obj)
            self._events.emit(about, type="Warning", reason="CleanupFailed", action="Cleanup", note=note)
        return note

    async def _report_failure(self, obj: A, what: str) -> None:
        if self._report is None:
            return
        try:
            await self._report(obj, Condition(CONDITION, "False", "CleanupFailed", what))
        except KubeError as error:
            # The cleanup's own error is what is raised; the next attempt reports again.
            logger.debug("the failed cleanup could not be reported: %s", error)

    async def _remove(self, obj: A) -> None:
        """Take the finalizer off. That the object changed since the cleanup began is no reason to clean up again.

        An API server that boots answers NotFound for each object of a CRD's kind: that is a StaleCache.
        """
        live = obj
        for attempt in range(_TRIES):
            try:
                if attempt:
                    live = await self._client.get(self._kind, key_of(obj))
                if live.uid != obj.uid or self.name not in live.finalizers:
                    return
                await self._write(live, [each for each in live.finalizers if each != self.name])
                return
            except NotFound as error:
                raise StaleCache(f"the {self._kind.resource.kind} no longer exists: the cache is stale") from error
            except Conflict:
                if attempt == _TRIES - 1:
                    raise

    async def _write(self, obj: A, finalizers: Sequence[str]) -> A:
        # A merge patch replaces the list: the version guards what others have put there since.
        patch = {"metadata": {"resourceVersion": obj.resource_version, "finalizers": list(finalizers)}}

        key = key_of(obj)
        async with AsyncExitStack() as around:
            if self._owners is not None:
                around.enter_context(self._owners.trying(obj, self._kind, key, (self.name, finalizers)))
                if self.name in finalizers:
                    await around.enter_async_context(
                        self._owners.repair(obj, self._kind, key, "changed", ["metadata.finalizers"])
                    )
            return await self._client.patch(self._kind, key, patch)
