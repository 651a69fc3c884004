"""List and watch one scope of one kind into a store: moves the bytes and the time that `client.watch` decides about."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import msgspec

from operator_runtime.cache.store import ObjectKey, Store, key_of
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import Forbidden, KubeError, NotFound, StreamStalled
from operator_runtime.client.frames import MAX_PAGE_BYTES, LineSplitter
from operator_runtime.client.resources import Resource, misnamed
from operator_runtime.client.response_identity import ExpectedList
from operator_runtime.client.watch import SILENCE_LIMIT_S, Record, Watch
from operator_runtime.client.watch_ends import Cause, Pause, remedy_for

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Record)

# Lines between two turns of the loop while a large snapshot comes in: about 2 ms of decoding, so that timers, probes
# and workers go on (75,000 objects a second were measured for a slower decoder).
_LINES_PER_TURN = 500
# The first failure of each cause in a row is kept quiet: a booting API server answers 403, 429 and 503 for some 300 ms,
# streams break, and the version that is held expires while no watch runs. Silence is the exception: it
# takes more than a minute to be noticed.
_FAILURES_BEFORE_WORDS = 2
# An unreadable object is named once; beyond so many names we only count.
_UNREADABLE_NAMES = 1000


class Reflector(Generic[R]):
    """Keeps a store up to date with one kind and scope; see `run`.

    It is the sink of its own `Watch`. While a snapshot is built, its records wait in `_snapshot` and reach the store in
    one go: readers never see half a snapshot. `_kept` holds what the snapshot has and could not be read, `_unreadable`
    the unreadable objects that were named in the log. `_causes` counts why requests failed since the watch last worked.

    Attributes:
        store: receives the records; others may feed it, too.
        optional: nothing waits for its first snapshot once that was refused, and it may never come.
        crd_hint: what to do where the cluster does not know the kind, for the log; "" for what is said of any kind.
        synced: set when the first snapshot is complete.
        refusal: why there was no snapshot yet: the API server forbids it, or does not know the kind. None before its
            answer, and as soon as there is one.
        when_late: called when the first snapshot comes after it was refused.
        restarts, relists, unreadable_objects: how often requests ended, by their cause, snapshots were complete, and
            objects could not be read; for metrics.
        last_byte_s: time of the last byte of an answer that was no refusal, its headers included, or of the first
            request.
        last_event_s: that of the last page or line.
    """

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        decode: Callable[[msgspec.Raw], R],
        store: Store[R],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        number: int = 1,
        silence_limit_s: float = SILENCE_LIMIT_S,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """
        Args:
            namespace: None for all namespaces.
            number: which watch of this kind and scope it is; from the second on, its names show it.
            silence_limit_s: a stream without a byte for so long is dead.
        """
        self.resource = resource
        self.namespace = namespace
        self.number = number
        self.optional = False
        self.crd_hint = ""
        self._selectors = ", ".join(each for each in (label_selector, field_selector) if each)
        self.synced = asyncio.Event()
        self.refusal: Forbidden | NotFound | None = None
        self.when_late: list[Callable[[], None]] = []
        self._answered = asyncio.Event()
        self.restarts: dict[Cause, int] = {}
        self.relists = 0
        self.last_byte_s = self.last_event_s = 0.0
        self.unreadable_objects = 0
        self._client = client
        self.store = store
        self._watch = Watch(
            decode,
            self,
            label_selector=label_selector,
            field_selector=field_selector,
            uniform=uniform,
        )
        self._path = resource.path(namespace)
        self.silence_limit_s = silence_limit_s
        self._clock = clock
        self._sleep = sleep
        self._snapshot: dict[ObjectKey, R] | None = None
        self._kept: set[ObjectKey] = set()
        self._unreadable: set[ObjectKey] = set()
        self._causes: Counter[Cause] = Counter()

    @property
    def description(self) -> str:
        """Kind and scope, for logs, and the selection where there are several of these."""
        where = f"namespace {self.namespace}" if self.namespace else "all namespaces"
        which = "" if self.number == 1 else f" ({self._selectors or f'watch {self.number}'})"
        return f"{self.resource.qualified_name} in {where}{which}"

    @property
    def scope(self) -> str:
        """The namespace, "" for all, and from the second watch of them on its number: `shop.2`; for metrics."""
        # No namespace has a dot in its name.
        return (self.namespace or "") + ("" if self.number == 1 else f".{self.number}")

    @property
    def resource_version(self) -> str:
        """The last version that the stream has vouched for, "" while there is no snapshot."""
        return self._watch.resource_version

    @property
    def settled(self) -> asyncio.Event:
        """Set when nothing need wait for the first snapshot any more: it is there, or is optional and was refused."""
        return self._answered if self.optional else self.synced

    @property
    def cached_objects(self) -> int:
        """Count the records that the store holds of this scope."""
        return len(self.store) if self.namespace is None else len(self.store.keys(self.namespace))

    @property
    def silent_s(self) -> float:
        """Seconds since the last byte; 0 before `run`."""
        return self._clock() - self.last_byte_s if self.last_byte_s else 0.0

    @property
    def eventless_s(self) -> float:
        """Seconds since the last page or line; 0 before `run`."""
        return self._clock() - self.last_event_s if self.last_event_s else 0.0

    async def run(self) -> None:
        """List, watch, resume, for ever; ends by cancellation only."""
        self.last_byte_s = self.last_event_s = self._clock()
        while True:
            started = self._clock()
            error, received_bytes = await self._one_request()
            if isinstance(error, Forbidden | NotFound) and not self.synced.is_set():
                self.refusal = error
                self._answered.set()
            pause = self._watch.ended(error, self._clock() - started, received_bytes)
            self.restarts[pause.cause] = self.restarts.get(pause.cause, 0) + 1
            await self._report(error, pause)
            if pause.seconds > 0:
                await self._sleep(pause.seconds)

    async def _one_request(self) -> tuple[KubeError | None, int]:
        """Send the next request and feed the answer; what ended it, and how many bytes came."""
        request = self._watch.next_request()
        received_bytes = 0
        try:
            if not request.streams:
                body = await self._client.request(
                    "GET",
                    self._path,
                    query=request.query,
                    gzip=True,
                    max_bytes=request.max_bytes,
                    expected=ExpectedList(self.resource),
                )
                received_bytes = len(body)
                self.last_byte_s = self._clock()
                self._watch.page(body)
                self._progressed()
                return None, received_bytes
            splitter = LineSplitter()
            async with self._client.stream(self._path, request.query, self.silence_limit_s) as stream:
                self.last_byte_s = self._clock()
                while True:
                    try:
                        chunk = await stream.read()
                    finally:
                        received_bytes = stream.received_bytes
                    if not chunk:
                        break
                    self.last_byte_s = self._clock()
                    await self._feed(splitter.feed(chunk))
                    del chunk  # nothing may come for hours, and it may be 256 KiB
                self._watch.last_line(splitter.rest())
            return None, received_bytes
        except KubeError as error:
            return error, received_bytes

    async def _feed(self, lines: list[bytes]) -> None:
        for number, line in enumerate(lines, 1):
            self._watch.line(line)
            if number % _LINES_PER_TURN == 0:
                await asyncio.sleep(0)
        if lines:
            self._progressed()

    def _progressed(self) -> None:
        self.last_event_s = self._clock()
        if self._causes and self._watch.failures == 0:
            if max(self._causes.values()) >= _FAILURES_BEFORE_WORDS:
                logger.info("watching %s again", self.description)
            self._causes.clear()

    async def _report(self, error: KubeError | None, pause: Pause) -> None:
        """Report once per cause what keeps the watch from working, and the remedy."""
        if pause.failures:
            self._causes[pause.cause] += 1
        if isinstance(error, StreamStalled) and self._causes[Cause.SILENT] == 1:
            # Not quiet as others are the first time: it explains why a change was seen late.
            logger.warning(
                "the watch of %s was silent (%s) and is replaced; changes of that time arrive now. "
                "If it happens again, check what is between the operator and the API server.",
                self.description,
                error,
            )
        if self._causes[pause.cause] != _FAILURES_BEFORE_WORDS:
            logger.debug("%s: %s, next request in %.1f s", self.description, pause.cause, pause.seconds)
            return
        what = "the answers end without an event" if error is None else str(error).rstrip(".")
        remedy = remedy_for(error, self.resource, self._selectors)
        if isinstance(error, NotFound):
            remedy = await self._found_instead(self.crd_hint or remedy)
        logger.error(
            "cannot watch %s: %s.%s The operator retries and recovers by itself.",
            self.description,
            what,
            f" {remedy}" if remedy else "",
        )

    async def _found_instead(self, remedy: str) -> str:
        """The remedy for a kind that is not found, or a better one where the server has it by another name."""
        try:
            answer = await self._client.request(
                "GET", self.resource.group_path, query=None, gzip=True, max_bytes=MAX_PAGE_BYTES
            )
        except KubeError:
            return remedy  # the group is not served, as a rule: there is nothing of it to report
        found, is_there = misnamed(self.resource, answer)
        return found if is_there else f"{remedy} {found}".rstrip()

    # The sink of the watch.

    def begin(self) -> None:
        self.store.begin(self.namespace)
        self._snapshot = {}
        self._kept = set()

    def put(self, record: R) -> None:
        if self._unreadable:
            self._unreadable.discard(key_of(record))
        if self._snapshot is None:
            self.store.put(record)
        else:
            self._snapshot[key_of(record)] = record

    def remove(self, record: R) -> None:
        """An object that left the watched set."""
        self._left(key_of(record), record.uid)

    def _left(self, key: ObjectKey, uid: str | None = None) -> None:
        if self._snapshot is None:
            self.store.remove(key, uid)
        else:
            self._snapshot.pop(key, None)
            self._kept.discard(key)

    def complete(self, resource_version: str) -> None:
        snapshot, self._snapshot = self._snapshot or {}, None
        self.store.replace(snapshot.values(), self._kept, self.namespace, version=resource_version)
        self._unreadable &= self._kept
        self.relists += 1
        logger.debug("%s: %d objects at resourceVersion %s", self.description, len(snapshot), resource_version)
        self.synced.set()
        self._answered.set()
        if self.refusal is not None:
            self.refusal = None
            for late in self.when_late:
                late()

    def unreadable(self, namespace: str, name: str, gone: bool, why: str) -> None:
        """Report once that one object cannot be decoded, keep what is known of it, go on."""
        key = ObjectKey(namespace, name)
        if gone:
            self._unreadable.discard(key)
            self._left(key)
            return
        self.unreadable_objects += 1
        if self._snapshot is not None:
            self._kept.add(key)
        if key not in self._unreadable and len(self._unreadable) < _UNREADABLE_NAMES:
            self._unreadable.add(key)
            logger.warning("cannot read %s %s, it is skipped until it changes: %s", self.resource.kind, key, why)
