"""The election with an API server in memory: what it may do, and what ends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.errors import Forbidden, NotFound, Unreachable, WriteRefused
from operator_runtime.election.lease_election import LeaseElection, awake_or_asleep
from operator_runtime.settings.timing import Timing
from operator_runtime.testing.waiting import async_until
from tests.unit.fake_server import FakeServer, Sent
from tests.unit.operator_runtime.cache.reflector_support import end_mark, line
from tests.unit.operator_runtime.log_support import DEADLINE_S, Log, logged

LOCK = ObjectKey("ops", "lock")
# For who waits for the bound on a request, half of what a leader has. By a real clock it is too short.
QUICK = Timing(lease_s=1, renew_deadline_s=0.5, retry_s=0.02)
PATIENT = Timing(lease_s=3600, renew_deadline_s=3000.0, retry_s=0.02)
# What happens within a test does not happen by a renewal.
UNHURRIED = Timing(lease_s=3600, renew_deadline_s=3000.0, retry_s=1000.0)


class Watched:
    """A watch of the Lease."""

    received_bytes = 0

    def __init__(self, *first: bytes) -> None:
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        for each in first:
            self._lines.put_nowait(each)

    def show(self, kind: str, lease: Mapping[str, Any]) -> None:
        self._lines.put_nowait(line(kind, lease))

    async def read(self) -> bytes:
        return await self._lines.get()


PATH = "/apis/coordination.k8s.io/v1/namespaces/ops/leases/lock"


class World(FakeServer):
    """A server with one Lease, what was said, and the codes with which the process would have ended.

    Attributes:
        failure: what a request of a method fails with.
        watchable: whether its watch shows anything; else the rules get by without.
    """

    def __init__(self, log: Log) -> None:
        super().__init__()
        self.log = log
        self.ends: list[int] = []
        self.failure: Callable[[str], Exception | None] = lambda method: None
        self.hangs = False
        self.closed = False
        self.watchable = False
        self.watch: Watched | None = None

    def hold(self, holder: str) -> None:
        metadata = {"name": "lock", "namespace": "ops"}
        self.store(PATH, {"metadata": metadata, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 3600}})

    def store(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        stored = super().store(path, body)
        if self.watch is not None:
            self.watch.show("MODIFIED", stored)
        return stored

    def delete_it(self) -> None:
        assert self.watch is not None
        self.watch.show("DELETED", self.by_path.pop(PATH))

    @property
    def holder(self) -> str:
        return str(self.by_path[PATH]["spec"]["holderIdentity"])

    async def renews(self, more: int) -> None:
        until = self.version + more
        await async_until("it does not renew", lambda: self.version >= until)

    async def said(self, text: str) -> None:
        await async_until(f"not logged: {text}", lambda: any(text in line for line in self.log.lines))

    async def request(self, *call: Any, **settings: Any) -> bytes:
        if self.hangs:
            await asyncio.Event().wait()
        return await super().request(*call, **settings)

    def refusal(self, sent: Sent) -> Any:
        return self.failure(sent.method)

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str], silence_limit_s: float) -> AsyncIterator[Any]:
        assert (path, query["fieldSelector"]) == (PATH.rpartition("/")[0], "metadata.name=lock")
        if not self.watchable:
            await asyncio.Event().wait()
        held = self.by_path.get(PATH)
        self.watch = Watched(*([line("ADDED", held)] if held else []), end_mark(100))
        yield self.watch

    async def close(self) -> None:
        self.closed = True

    async def end(self) -> None:
        """Wait until the process would have ended."""
        await async_until("it goes on", lambda: len(self.ends) > 0)


@pytest.fixture
def at() -> Iterator[World]:
    with logged() as log:
        yield World(log)


def election(at: World, timing: Timing = PATIENT, **settings: Any) -> LeaseElection:
    settings.setdefault("release_timeout_s", DEADLINE_S)  # who lets go has the time that a busy machine takes
    return LeaseElection(at, LOCK, "me", timing, field_manager="us", end_process=at.ends.append, **settings)


@asynccontextmanager
async def stood(at: World, timing: Timing = PATIENT, **settings: Any) -> AsyncIterator[LeaseElection]:
    """An election with somebody who waits for it, as a manager does."""
    async with aclosing(election(at, timing, **settings)) as standing:
        waits = asyncio.create_task(standing.elected())
        await asyncio.sleep(0)  # it stands from the first step of that task on
        try:
            yield standing
        finally:
            waits.cancel()


async def elected(standing: LeaseElection) -> None:
    await asyncio.wait_for(standing.elected(), DEADLINE_S)


async def test_who_is_elected_may_write_until_it_lets_go(at: World) -> None:
    standing = election(at)
    with pytest.raises(WriteRefused, match="does not hold Lease ops/lock"):
        standing.may_write()
    async with aclosing(standing):
        await elected(standing)
        standing.may_write()
        assert standing.leading
        assert at.holder == "me"
    assert at.holder == ""
    assert at.by_path[PATH]["spec"]["leaseDurationSeconds"] == 1
    with pytest.raises(WriteRefused):
        standing.may_write()
    assert at.closed
    assert at.ends == []


async def test_who_stands_by_may_not_write_and_leaves_the_lease_alone(at: World) -> None:
    at.hold("them")
    async with stood(at) as standing:
        await at.said("waiting: Lease ops/lock is held by them")
        with pytest.raises(WriteRefused):
            standing.may_write()
    assert at.holder == "them"


async def test_renewal_goes_on(at: World) -> None:
    ahead_s = 0.0
    async with stood(at, clock=lambda: awake_or_asleep() + ahead_s) as standing:
        await elected(standing)
        for _ in range(10):  # several times the lease
            ahead_s += 1000.0
            await at.renews(1)
        standing.may_write()
    assert at.ends == []


async def test_after_an_event_loop_that_hung_for_too_long_nothing_is_written_and_the_process_ends(at: World) -> None:
    ahead_s = 0.0
    async with stood(at, clock=lambda: awake_or_asleep() + ahead_s) as standing:
        await elected(standing)
        ahead_s = 3001.0  # in which no task had its turn
        with pytest.raises(WriteRefused):
            standing.may_write()
        await at.end()
    await at.said("lost Lease ops/lock: it could not be renewed within 3000 s")
    assert at.ends == [1]


async def test_who_does_not_ask_to_lead_leaves_the_lease_to_others(at: World) -> None:
    async with aclosing(election(at)) as standing:
        assert not standing.leading
    assert at.sent == []
    assert at.closed


@pytest.mark.parametrize(("holder", "why"), [("", "the Lease was released"), ("them", "the Lease is held by them")])
async def test_a_lease_that_somebody_empties_or_edits_ends_the_process_before_its_next_renewal(
    at: World, holder: str, why: str
) -> None:
    at.watchable = True
    async with stood(at, UNHURRIED) as standing:
        await elected(standing)
        at.hold(holder)
        await at.end()
        assert not standing.leading
    await at.said(f"lost Lease ops/lock: {why}. Exiting at once: another replica may lead by now")
    assert at.ends == [1]
    assert at.holder == holder
    assert standing.slow_paths == 1


async def test_a_lease_that_somebody_deletes_is_made_again_before_its_next_renewal(at: World) -> None:
    at.watchable = True
    async with stood(at, UNHURRIED) as standing:
        await elected(standing)
        at.delete_it()
        await async_until("it is not made again", lambda: PATH in at.by_path)
        assert at.holder == "me"
    assert at.ends == []


async def test_a_lease_that_cannot_be_renewed_ends_the_process(at: World) -> None:
    now_s = 0.0
    async with stood(at, clock=lambda: now_s) as standing:
        await elected(standing)
        at.failure = lambda method: Unreachable("the cable is out")
        now_s += PATIENT.retry_s
        await at.said("3000.0 s are left to do it: the cable is out")
        now_s = 3000.0
        await at.end()
    assert at.ends == [1]
    await at.said("it could not be renewed within 3000 s: the cable is out")


async def test_requests_that_hang_are_given_up_in_time(at: World) -> None:
    now_s = 0.0
    async with stood(at, QUICK, clock=lambda: now_s) as standing:
        await elected(standing)
        at.hangs = True
        now_s += QUICK.retry_s
        await at.said("no answer within 0.25 s")
        now_s = QUICK.renew_deadline_s
        await at.end()
    assert at.ends == [1]


async def test_permissions_that_are_missing_are_named_once_and_used_when_they_come(at: World) -> None:
    at.failure = lambda method: Forbidden(403, "Forbidden", "no")
    async with stood(at) as standing:
        await async_until("it gives up", lambda: len(at.sent) >= 3)
        at.failure = lambda method: None
        await elected(standing)
    (line,) = [each for each in at.log.lines if "cannot take part" in each]
    assert "Grant get, list, watch, create and patch on leases.coordination.k8s.io in namespace ops" in line


@pytest.mark.parametrize(
    ("lease", "message"), [(None, "The namespace ops must exist"), ({"metadata": {}}, "the Lease cannot be read")]
)
async def test_what_keeps_it_from_taking_part_is_named(at: World, lease: dict[str, Any] | None, message: str) -> None:
    if lease is not None:
        at.by_path[PATH] = lease
    missing = NotFound(404, "NotFound", "namespaces ops not found")
    at.failure = lambda method: missing if method == "POST" else None
    async with stood(at):
        await at.said(message)


async def test_letting_go_takes_no_longer_than_it_may(at: World) -> None:
    async with stood(at, release_timeout_s=0.05) as standing:
        await elected(standing)
        at.hangs = True
    await at.said("Lease ops/lock was not released within 0.05 s")
    assert not standing.leading
    assert at.holder == "me"
    assert at.closed


async def test_a_fault_of_its_own_ends_the_process(at: World) -> None:
    at.failure = lambda method: RuntimeError("a fault of the test's")
    async with stood(at):
        await at.end()
    assert at.ends == [1]
    await at.said("leader election ended by an internal error")


def test_lengths_that_do_not_fit_are_refused(at: World) -> None:
    with pytest.raises(ValueError, match="lease-duration-s"):
        election(at, Timing(lease_s=1))
