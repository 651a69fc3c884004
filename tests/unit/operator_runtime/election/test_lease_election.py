"""The election on its thread, with an API server in memory: what crosses to the operator's thread, and what ends it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import orjson
import pytest

from operator_runtime.cache.reflector import ByteStream
from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.errors import Conflict, Forbidden, NotFound, Unreachable, WriteRefused
from operator_runtime.client.resources import Resource
from operator_runtime.election.leader import Timing
from operator_runtime.election.lease_election import LeaseElection, awake_or_asleep, own_identity

LOCK = ObjectKey("ops", "lock")
DEADLINE_S = 10.0
# Short, as nothing here waits for anything but these.
QUICK = Timing(lease_s=1, renew_deadline_s=0.5, retry_s=0.02)
PATIENT = Timing(lease_s=3600, renew_deadline_s=3000.0, retry_s=0.02)


class Server:
    """One Lease. It is asked on the election's thread and looked at by the test's."""

    def __init__(self) -> None:
        self.stored: dict[str, Any] | None = None
        self.failure: Callable[[str], None] = lambda method: None
        self.hangs = False
        self.closed = False
        self.writes = 0
        self.changed = threading.Condition()

    def hold(self, holder: str, duration_s: int = 3600) -> None:
        self._store({"holderIdentity": holder, "leaseDurationSeconds": duration_s, "leaseTransitions": 0})

    def _store(self, spec: Mapping[str, Any]) -> bytes:
        with self.changed:
            self.writes += 1
            metadata = {"name": "lock", "namespace": "ops", "uid": "uid", "resourceVersion": str(100 + self.writes)}
            self.stored = {"metadata": metadata, "spec": dict(spec)}
            self.changed.notify_all()
            return orjson.dumps(self.stored)

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
        self, method: str, path: str, *, query: Mapping[str, str] | None, gzip: bool, max_bytes: int
    ) -> bytes:
        raise NotImplementedError

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str], silence_limit_s: float) -> AsyncIterator[ByteStream]:
        assert (path, query["fieldSelector"]) == (
            "/apis/coordination.k8s.io/v1/namespaces/ops/leases",
            "metadata.name=lock",
        )
        await asyncio.Event().wait()  # the watch brings nothing: the rules get by without
        yield cast(ByteStream, None)

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
    async with stood(server, ends, QUICK) as standing:
        await elected(standing)
        server.await_writes(server.writes + 30)  # longer than the deadline, and this thread does nothing else
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


async def test_a_lease_that_cannot_be_renewed_ends_the_process(
    server: Server, ends: Ends, caplog: pytest.LogCaptureFixture
) -> None:
    async with stood(server, ends, QUICK) as standing:
        await elected(standing)
        server.failure = refuse(Unreachable("the cable is out"))
        ends.wait()
    assert ends.codes == [1]
    assert "it could not be renewed within 0.5 s: the cable is out" in caplog.text
    assert "s are left to do it: the cable is out" in caplog.text


async def test_requests_that_hang_are_given_up_in_time(
    server: Server, ends: Ends, caplog: pytest.LogCaptureFixture
) -> None:
    async with stood(server, ends, QUICK) as standing:
        await elected(standing)
        server.hangs = True
        ends.wait()
    assert "no answer within 0.25 s" in caplog.text


async def test_rights_that_are_missing_are_named_once_and_used_when_they_come(
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
    assert server.closed


async def test_a_fault_of_the_thread_ends_the_process(
    server: Server, ends: Ends, caplog: pytest.LogCaptureFixture
) -> None:
    server.failure = refuse(RuntimeError("a fault of the test's"))
    async with stood(server, ends):
        ends.wait()
    assert ends.codes == [1]
    assert "leader election ended by a fault of its own" in caplog.text


async def test_a_probe_hears_of_a_renewal_that_should_long_have_been(server: Server, ends: Ends) -> None:
    ahead_s = 0.0
    standing = election(server, ends, PATIENT, clock=lambda: awake_or_asleep() + ahead_s)
    assert standing.complaint() is None
    async with standing:
        await elected(standing)
        assert standing.complaint() is None
        server.hangs = True  # the thread sees nothing of the jump
        ahead_s = 3700.0
        complaint = standing.complaint()
        ahead_s, server.hangs = 0.0, False
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
