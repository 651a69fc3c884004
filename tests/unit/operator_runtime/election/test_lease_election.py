"""The election on its thread, with an API server in memory: what crosses to the operator's thread, and what ends it."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import orjson
import pytest

from operator_runtime.cache.reflector import ByteStream
from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.asked import Asked
from operator_runtime.client.errors import Conflict, Forbidden, NotFound, Unreachable, WriteRefused
from operator_runtime.client.resources import Resource
from operator_runtime.election.lease_election import LeaseElection, awake_or_asleep, own_identity
from operator_runtime.election.timing import Timing
from operator_runtime.testing.waiting import async_until

LOCK = ObjectKey("ops", "lock")
DEADLINE_S = 60.0
# For who waits for the bound on a request, half of what a leader has. By a real clock it is too short.
QUICK = Timing(lease_s=1, renew_deadline_s=0.5, retry_s=0.02)
PATIENT = Timing(lease_s=3600, renew_deadline_s=3000.0, retry_s=0.02)
# What happens within a test does not happen by a renewal.
UNHURRIED = Timing(lease_s=3600, renew_deadline_s=3000.0, retry_s=1000.0)


class Watched:
    """A watch of the Lease: bytes to read on the election's thread, put in by any."""

    received_bytes = 0

    def __init__(self, first: list[bytes]) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        for line in first:
            self._lines.put_nowait(line)

    def show(self, kind: str, lease: Mapping[str, Any]) -> None:
        self._loop.call_soon_threadsafe(self._lines.put_nowait, event(kind, lease))

    async def read(self) -> bytes:
        line = await self._lines.get()
        self.received_bytes += len(line)
        return line


def event(kind: str, object_: Mapping[str, Any]) -> bytes:
    return orjson.dumps({"type": kind, "object": object_}) + b"\n"


INITIAL_EVENTS_END = {"metadata": {"resourceVersion": "100", "annotations": {"k8s.io/initial-events-end": "true"}}}


class Server:
    """One Lease. It is asked on the election's thread and looked at by the test's.

    Attributes:
        watch: the election's, None before it began one.
        watchable: whether its watch shows anything.
    """

    def __init__(self) -> None:
        self.stored: dict[str, Any] | None = None
        self.failure: Callable[[str], None] = lambda method: None
        self.hangs = False
        self.closed = False
        self.writes = 0
        self.changed = threading.Condition()
        self.watchable = False
        self.watch: Watched | None = None

    def hold(self, holder: str, duration_s: int = 3600) -> None:
        self._store({"holderIdentity": holder, "leaseDurationSeconds": duration_s, "leaseTransitions": 0})

    def _store(self, spec: Mapping[str, Any]) -> bytes:
        with self.changed:
            self.writes += 1
            metadata = {"name": "lock", "namespace": "ops", "uid": "uid", "resourceVersion": str(100 + self.writes)}
            self.stored = {"metadata": metadata, "spec": dict(spec)}
            self._show("MODIFIED")
            self.changed.notify_all()
            return orjson.dumps(self.stored)

    def delete(self) -> None:
        with self.changed:
            self._show("DELETED")
            self.stored = None

    def _show(self, kind: str) -> None:
        if self.watch is not None and self.stored is not None:
            self.watch.show(kind, self.stored)

    @property
    def holder(self) -> str:
        assert self.stored is not None
        return str(self.stored["spec"]["holderIdentity"])

    def await_writes(self, count: int) -> None:
        """Block this thread, and its event loop, until there were so many writes."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.writes >= count, DEADLINE_S)

    async def get(self, resource: Resource, namespace: str | None, name: str) -> bytes:
        await self._troubled("get")
        if self.stored is None:
            raise NotFound(404, "NotFound", "no such lease")
        return orjson.dumps(self.stored)

    async def create(self, resource: Resource, namespace: str | None, body: object, *, field_manager: str) -> bytes:
        await self._troubled("create")
        if self.stored is not None:
            raise Conflict(409, "AlreadyExists")
        return self._store(cast(dict[str, Any], body)["spec"])

    async def merge_patch(
        self, resource: Resource, namespace: str | None, name: str, body: object, *, field_manager: str
    ) -> bytes:
        await self._troubled("patch")
        wanted = cast(dict[str, Any], body)
        if self.stored is None:
            raise NotFound(404, "NotFound", "no such lease")
        if wanted["metadata"]["resourceVersion"] != self.stored["metadata"]["resourceVersion"]:
            raise Conflict(409, "Conflict")
        return self._store(wanted["spec"])

    async def _troubled(self, method: str) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        self.failure(method)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None,
        gzip: bool,
        max_bytes: int,
        asked: Asked | None = None,
    ) -> bytes:
        raise NotImplementedError

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str], silence_limit_s: float) -> AsyncIterator[ByteStream]:
        assert (path, query["fieldSelector"]) == (
            "/apis/coordination.k8s.io/v1/namespaces/ops/leases",
            "metadata.name=lock",
        )
        if not self.watchable:
            await asyncio.Event().wait()  # the watch brings nothing: the rules get by without
        with self.changed:
            first = [event("ADDED", self.stored)] if self.stored is not None else []
            self.watch = Watched([*first, event("BOOKMARK", INITIAL_EVENTS_END)])
        yield self.watch

    async def close(self) -> None:
        self.closed = True


class Ends:
    """Where the process would have ended."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.came = threading.Event()

    def __call__(self, code: int) -> None:
        self.codes.append(code)
        self.came.set()

    def wait(self) -> None:
        assert self.came.wait(DEADLINE_S)


class Log(logging.Handler):
    """What was said, by any thread."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        with self._changed:
            self._lines.append(record.getMessage())
            self._changed.notify_all()

    def wait_for(self, text: str) -> None:
        """Block this thread, and its event loop, until that is said."""
        with self._changed:
            assert self._changed.wait_for(lambda: any(text in line for line in self._lines), DEADLINE_S), self._lines


@pytest.fixture
def log() -> Iterator[Log]:
    handler, logger = Log(), logging.getLogger("operator_runtime")
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(before)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def ends() -> Ends:
    return Ends()


def election(server: Server, ends: Ends, timing: Timing = PATIENT, **settings: Any) -> LeaseElection:
    settings.setdefault("release_timeout_s", DEADLINE_S)  # who lets go has the time that a busy machine takes
    return LeaseElection(server, LOCK, "me", timing, field_manager="us", end_process=ends, **settings)


@asynccontextmanager
async def stood(server: Server, ends: Ends, timing: Timing = PATIENT, **settings: Any) -> AsyncIterator[LeaseElection]:
    """An election with somebody who waits for it, as a manager does."""
    async with election(server, ends, timing, **settings) as standing:
        waits = asyncio.create_task(standing.elected())
        await asyncio.sleep(0)  # it stands from the first step of that task on
        try:
            yield standing
        finally:
            waits.cancel()


def refuse(error: Exception) -> Callable[[str], None]:
    def fail(method: str) -> None:
        raise error

    return fail


async def elected(standing: LeaseElection) -> None:
    await asyncio.wait_for(standing.elected(), DEADLINE_S)


async def test_who_is_elected_may_write_until_it_lets_go(server: Server, ends: Ends) -> None:
    standing = election(server, ends)
    with pytest.raises(WriteRefused, match="does not hold Lease ops/lock"):
        standing.may_write()
    async with standing:
        await elected(standing)
        standing.may_write()
        assert standing.leading
        assert server.holder == "me"
    assert server.holder == ""
    assert server.stored is not None
    assert server.stored["spec"]["leaseDurationSeconds"] == 1
    with pytest.raises(WriteRefused):
        standing.may_write()
    assert server.closed
    assert ends.codes == []


async def test_who_stands_by_may_not_write_and_leaves_the_lease_alone(server: Server, ends: Ends, log: Log) -> None:
    server.hold("them")
    async with stood(server, ends) as standing:
        log.wait_for("standing by: Lease ops/lock is held by them")
        with pytest.raises(WriteRefused):
            standing.may_write()
    assert server.holder == "them"


async def test_renewal_goes_on_while_the_operators_event_loop_hangs(server: Server, ends: Ends) -> None:
    now_s = 0.0
    async with stood(server, ends, clock=lambda: now_s, hang_limit_s=math.inf) as standing:
        await elected(standing)
        for _ in range(10):  # several times the lease, and this thread does nothing else
            now_s += 1000.0
            server.await_writes(server.writes + 1)
        standing.may_write()
    assert ends.codes == []


async def test_an_operator_that_hangs_for_too_long_ends_and_says_where(server: Server, ends: Ends, log: Log) -> None:
    ahead_s = 0.0
    async with stood(server, ends, clock=lambda: awake_or_asleep() + ahead_s) as standing:
        await elected(standing)
        server.await_writes(server.writes + 3)
        assert ends.codes == [], "it is given time"
        ahead_s = 61.0
        ends.wait()  # and with it the event loop
    assert set(ends.codes) == {1}
    log.wait_for("and this process holds Lease ops/lock. Ending at once, so that another can lead. It hangs here:")
    log.wait_for("in test_an_operator_that_hangs_for_too_long_ends_and_says_where")


async def test_an_operator_whose_event_loop_turns_leads_on(server: Server, ends: Ends) -> None:
    ahead_s = 0.0
    async with stood(server, ends, clock=lambda: awake_or_asleep() + ahead_s) as standing:
        await elected(standing)
        for _ in range(10):
            ahead_s += 20.0
            await asyncio.to_thread(server.await_writes, server.writes + 1)
    assert ends.codes == []


async def test_who_does_not_ask_to_lead_leaves_the_lease_to_others(server: Server, ends: Ends) -> None:
    async with election(server, ends) as standing:
        assert standing.complaint() is None
    assert server.stored is None
    assert server.closed


async def test_writes_are_refused_by_the_clock_alone_before_anybody_notices(server: Server, ends: Ends) -> None:
    ahead_s = 0.0

    def clock() -> float:
        return awake_or_asleep() + ahead_s

    async with stood(server, ends, PATIENT, clock=clock) as standing:
        await elected(standing)
        server.hangs = True
        standing.may_write()
        ahead_s = 3000.0
        with pytest.raises(WriteRefused):
            standing.may_write()
        ahead_s = 0.0
        server.hangs = False


async def test_a_lease_that_was_taken_ends_the_process(
    server: Server, ends: Ends, caplog: pytest.LogCaptureFixture
) -> None:
    async with stood(server, ends) as standing:
        await elected(standing)
        server.hold("them")
        ends.wait()
        assert not standing.leading
    assert ends.codes == [1]
    assert "lost Lease ops/lock: the Lease is held by them. Ending at once: another may lead by now" in caplog.text
    assert server.holder == "them"
    assert standing.slow_paths == 1


@pytest.mark.parametrize(("holder", "why"), [("", "the Lease was released"), ("them", "the Lease is held by them")])
async def test_a_lease_that_somebody_empties_or_edits_ends_the_process_before_its_next_renewal(
    server: Server, ends: Ends, log: Log, holder: str, why: str
) -> None:
    server.watchable = True
    async with stood(server, ends, UNHURRIED) as standing:
        await elected(standing)
        server.hold(holder)
        ends.wait()
        assert not standing.leading
    log.wait_for(f"lost Lease ops/lock: {why}. Ending at once: another may lead by now")
    assert ends.codes == [1]
    assert server.holder == holder
    assert standing.slow_paths == 1


async def test_a_lease_that_somebody_deletes_is_made_again_before_its_next_renewal(server: Server, ends: Ends) -> None:
    server.watchable = True
    async with stood(server, ends, UNHURRIED) as standing:
        await elected(standing)
        writes = server.writes
        server.delete()
        server.await_writes(writes + 1)
        assert server.holder == "me"
    assert ends.codes == []


async def test_a_lease_that_cannot_be_renewed_ends_the_process(server: Server, ends: Ends, log: Log) -> None:
    now_s = 0.0
    async with stood(server, ends, clock=lambda: now_s) as standing:
        await elected(standing)
        server.failure = refuse(Unreachable("the cable is out"))
        now_s += PATIENT.retry_s
        log.wait_for("3000.0 s are left to do it: the cable is out")
        now_s = 3000.0
        ends.wait()
    assert ends.codes == [1]
    log.wait_for("it could not be renewed within 3000 s: the cable is out")


async def test_requests_that_hang_are_given_up_in_time(server: Server, ends: Ends, log: Log) -> None:
    now_s = 0.0
    async with stood(server, ends, QUICK, clock=lambda: now_s) as standing:
        await elected(standing)
        server.hangs = True
        now_s += QUICK.retry_s
        log.wait_for("no answer within 0.25 s")
        now_s = QUICK.renew_deadline_s
        ends.wait()
    assert ends.codes == [1]


async def test_permissions_that_are_missing_are_named_once_and_used_when_they_come(
    server: Server, ends: Ends, caplog: pytest.LogCaptureFixture
) -> None:
    tries, tried_enough = 0, threading.Event()

    def no(method: str) -> None:
        nonlocal tries
        tries += 1
        if tries == 3:
            tried_enough.set()
        raise Forbidden(403, "Forbidden", "no")

    server.failure = no
    async with stood(server, ends) as standing:
        assert tried_enough.wait(DEADLINE_S)
        server.failure = lambda method: None
        await elected(standing)
    (record,) = [each for each in caplog.records if "cannot take part" in each.message]
    assert "Grant get, list, watch, create and patch on leases.coordination.k8s.io in namespace ops" in record.message


async def test_a_namespace_that_is_missing_is_named(server: Server, ends: Ends, log: Log) -> None:
    def missing(method: str) -> None:
        if method == "create":
            raise NotFound(404, "NotFound", "namespaces ops not found")

    server.failure = missing
    async with stood(server, ends):
        log.wait_for("The namespace ops must exist")


async def test_a_lease_that_cannot_be_read_is_said(server: Server, ends: Ends, log: Log) -> None:
    server.stored = {"metadata": {}}
    async with stood(server, ends):
        log.wait_for("the Lease cannot be read")


async def test_letting_go_takes_no_longer_than_it_may(
    server: Server, ends: Ends, caplog: pytest.LogCaptureFixture
) -> None:
    async with stood(server, ends, release_timeout_s=0.05) as standing:
        await elected(standing)
        server.hangs = True
    assert "Lease ops/lock was not released within 0.05 s" in caplog.text
    assert not standing.leading
    assert server.holder == "me"
    await async_until("its connections are not closed", lambda: server.closed)


async def test_a_fault_of_the_thread_ends_the_process(
    server: Server, ends: Ends, caplog: pytest.LogCaptureFixture
) -> None:
    server.failure = refuse(RuntimeError("a fault of the test's"))
    async with stood(server, ends):
        ends.wait()
    assert ends.codes == [1]
    assert "leader election ended by a fault of its own" in caplog.text


async def test_a_probe_hears_of_a_renewal_that_should_long_have_been(server: Server, ends: Ends) -> None:
    here, ahead_s = threading.get_ident(), 0.0

    def clock() -> float:
        """As for a thread that hangs, the election's sees nothing of the jump."""
        return ahead_s if threading.get_ident() == here else 0.0

    standing = election(server, ends, PATIENT, clock=clock)
    assert standing.complaint() is None
    async with standing:
        await elected(standing)
        assert standing.complaint() is None
        ahead_s = 3700.0
        complaint = standing.complaint()
    assert complaint is not None
    assert complaint.startswith("Lease ops/lock should have been renewed or given up 100 s ago")


def test_lengths_that_do_not_fit_are_refused(server: Server, ends: Ends) -> None:
    with pytest.raises(ValueError, match="lease_s"):
        election(server, ends, Timing(lease_s=1))


def test_an_identity_is_the_pods_name_and_never_the_same_twice() -> None:
    first, second = (own_identity({"POD_NAME": "operator-7"}) for _ in range(2))
    assert first.startswith("operator-7_")
    assert first != second
    assert not own_identity({}).startswith("_")
