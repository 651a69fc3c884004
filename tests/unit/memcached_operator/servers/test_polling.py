"""Which servers are asked when, how many at once, and whose Memcached is looked at again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import msgspec
import pytest

from memcached_operator.core.observed.caches import Caches
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.servers.polling import AT_ONCE, TICK_S, TIMEOUT_S, Poller, Rounds
from memcached_operator.servers.queried_pod import QueriedPod
from memcached_operator.servers.server_connection import SATURATED, Endpoint, ErrorKind, Failure
from memcached_operator.servers.stats_answer import StatsAnswer
from memcached_operator.servers.stats_cache import AnswerVerdict, StatsCache
from memcached_operator.servers.transport import Transport
from operator_runtime import Channel, ObjectKey, Store
from operator_runtime.testing.clock import FakeClock
from operator_runtime.testing.waiting import async_until
from tests.certificates import Authority, mounted, tls_arguments
from tests.unit.memcached_operator.servers.support import ONE_THREAD, answer, running, server_pod

INTERVAL_S = 30.0


@pytest.fixture
def caches() -> Caches:
    caches = Caches(Store(), Store(), Store(), Store(), {})
    caches.index()
    return caches


def add(caches: Caches, name: str, servers: int) -> list[PodRecord]:
    """A Memcached with so many servers that are ready."""
    caches.memcacheds.put(MemcachedRecord("shop", name, name, "1", 1, False, b"", b""))
    pods = [server_pod(f"{name}-{number}", of=name, address=f"127.64.0.{number}") for number in range(servers)]
    for pod in pods:
        caches.pods.put(pod)
    return pods


class Day:
    """Rounds, and a clock that the test moves tick by tick."""

    def __init__(self, caches: Caches) -> None:
        self.caches, self.stats_cache, self.now = caches, StatsCache(), 100.0
        self.rounds = Rounds(caches, self.stats_cache, INTERVAL_S, self.now)

    def tick(self) -> list[QueriedPod]:
        """Who is due next; each answers."""
        found = self.rounds.due(self.now)
        for pod in found:
            self.stats_cache.record(pod, answer())
        self.now += TICK_S
        return found

    def interval(self) -> list[list[QueriedPod]]:
        return [self.tick() for _ in range(int(INTERVAL_S / TICK_S))]


@pytest.mark.parametrize("servers", [1, 3, 60, 500])
def test_each_server_is_asked_once_an_interval_and_evenly(caches: Caches, servers: int) -> None:
    pods = add(caches, "cache", servers)
    day = Day(caches)
    ticks = [tick for _ in range(4) for tick in day.interval()]
    assert max(map(len, ticks)) <= servers * TICK_S / INTERVAL_S + 1
    when = {pod.name: list[float]() for pod in pods}
    for number, tick in enumerate(ticks):
        for pod in tick:
            when[pod.name].append(number * TICK_S)
    for times in when.values():
        assert len(times) in (3, 4)
        assert all(INTERVAL_S <= after - before <= INTERVAL_S + TICK_S for before, after in pairwise(times))


def test_those_of_all_memcacheds_are_asked_and_nobody_elses(caches: Caches) -> None:
    own = [*add(caches, "a", 2), *add(caches, "b", 1)]
    caches.pods.put(server_pod("stranger-0", of="stranger"))
    caches.pods.put(server_pod("starting-0", of="a", ready=False))
    queried = [pod for tick in Day(caches).interval() for pod in tick]
    assert sorted(queried, key=lambda each: each.name) == own


def test_servers_that_are_not_ready_are_passed_over_few_at_once(
    caches: Caches, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(600):
        for pod in add(caches, f"cache-{number}", 1):
            caches.pods.put(msgspec.structs.replace(pod, resource_version="2", ready=False))
    lookups: list[str] = []
    servers_of = Caches.servers_of

    def counted(self: Caches, memcached: MemcachedRecord) -> list[PodRecord]:
        lookups.append(memcached.name)
        return servers_of(self, memcached)

    monkeypatch.setattr(Caches, "servers_of", counted)
    day = Day(caches)
    for tick in range(1, 61):
        assert day.tick() == []
        assert len(lookups) <= tick * 600 * TICK_S / INTERVAL_S + 1
    assert len(set(lookups)) >= 590


def test_a_server_that_somebody_looks_for_is_asked_at_the_next_tick(caches: Caches) -> None:
    add(caches, "cache", 3)
    day = Day(caches)
    day.interval()
    (new,) = add(caches, "another", 1)
    day.stats_cache.read([new])
    assert new in day.tick()
    assert new not in day.tick()


def test_many_that_somebody_looks_for_do_not_come_all_at_once(caches: Caches) -> None:
    pods = add(caches, "cache", 500)
    day = Day(caches)
    day.stats_cache.read(pods)
    ticks = day.interval()
    assert max(map(len, ticks)) < 50
    queried = Counter(pod.name for tick in ticks for pod in tick)
    assert queried == Counter(pod.name for pod in pods), "each once, and not once more in its turn"


@pytest.mark.parametrize("change", ["gone", "another", "not ready"])
def test_whoever_was_looked_for_and_is_not_there_any_more_is_not_asked(caches: Caches, change: str) -> None:
    day = Day(caches)
    day.tick()
    (pod,) = add(caches, "cache", 1)
    day.stats_cache.read([pod])
    if change == "gone":
        caches.pods.remove(ObjectKey("shop", pod.name))
    else:
        later = {"uid": "another"} if change == "another" else {"ready": False}
        caches.pods.put(msgspec.structs.replace(pod, resource_version="2", **later))
    assert pod.uid not in {each.uid for each in day.tick()}
    assert day.stats_cache.missing == {}


def test_what_was_heard_of_a_pod_that_is_gone_is_forgotten_within_two_intervals(caches: Caches) -> None:
    pods = add(caches, "cache", 3)
    day = Day(caches)
    day.interval()
    assert len(day.stats_cache) == 3
    caches.pods.remove(ObjectKey("shop", pods[0].name))
    day.interval()
    day.interval()
    assert len(day.stats_cache) == 2


class Request:
    """Answers for all servers, when the test lets it."""

    def __init__(self) -> None:
        self.reply: StatsAnswer | Failure = answer()
        self.timeouts: set[float] = set()
        self.now = self.most = self.count = 0
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def __call__(self, endpoint: Endpoint, timeout_s: float) -> tuple[StatsAnswer | Failure, bytes]:
        self.timeouts.add(timeout_s)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await self.go_on.wait()
            return self.reply, b""
        finally:
            self.now -= 1
            self.count += 1


@asynccontextmanager
async def polling(
    caches: Caches,
    stats_cache: StatsCache,
    queried: Request,
    sent: list[ObjectKey],
    clock: FakeClock,
    on_answer: Callable[[QueriedPod, StatsAnswer], bool] = lambda *_: False,
) -> AsyncIterator[Poller]:
    changed: Channel[ObjectKey] = Channel()
    changed.listen(sent.append)
    poller = Poller(
        caches, stats_cache, changed, interval_s=INTERVAL_S, on_answer=on_answer, query=queried, clock=clock, tick_s=0.0
    )
    task = asyncio.create_task(poller.run())
    try:
        yield poller
    finally:
        poller.stop()
        async with asyncio.timeout(60):
            await task


async def test_a_memcached_is_reconciled_again_when_there_are_news_of_a_server_and_only_then(caches: Caches) -> None:
    add(caches, "cache", 1)
    stats_cache, queried, sent, clock = StatsCache(), Request(), list[ObjectKey](), FakeClock()
    key = ObjectKey("shop", "cache")
    async with polling(caches, stats_cache, queried, sent, clock):
        await async_until("no first answer", lambda: queried.count == 1)
        assert sent == [key]
        for count, received, news in (
            (2, answer(curr_connections=7), 1),
            (3, Failure(ErrorKind.SILENT, "silent"), 1),
            (4, Failure(ErrorKind.SILENT, "silent"), 2),
            (5, Failure(ErrorKind.SILENT, "silent"), 2),
            (6, SATURATED, 3),
        ):
            queried.reply = received
            clock.advance(INTERVAL_S)
            await async_until(f"not asked {count} times", lambda count=count: queried.count == count)
            assert sent == [key] * news
    assert queried.timeouts == {TIMEOUT_S}


async def test_answers_are_handed_on_and_may_be_news_of_their_own(caches: Caches) -> None:
    (pod,) = add(caches, "cache", 1)
    queried, sent, clock = Request(), list[ObjectKey](), FakeClock()
    handed: list[tuple[QueriedPod, StatsAnswer]] = []

    def on_answer(of: QueriedPod, received: StatsAnswer) -> bool:
        handed.append((of, received))
        return len(handed) == 2

    async with polling(caches, StatsCache(), queried, sent, clock, on_answer):
        received: tuple[StatsAnswer | Failure, ...] = (answer(), answer(uptime=1), Failure(ErrorKind.SILENT, "silent"))
        for count, queried.reply in enumerate(received, 1):
            clock.advance(INTERVAL_S)
            await async_until(f"not asked {count} times", lambda count=count: queried.count == count)
    assert repr(handed) == repr([(pod, answer()), (pod, answer(uptime=1))]), "NaN is not equal to itself"
    assert sent == [ObjectKey("shop", "cache")] * 2, "it answers, and says something else"


@pytest.mark.parametrize("answer", [True, False])
async def test_only_a_few_are_asked_at_once_and_nobody_is_waited_for_at_the_end(caches: Caches, answer: bool) -> None:
    pods = add(caches, "cache", 3 * AT_ONCE)
    stats_cache, queried, clock = StatsCache(), Request(), FakeClock()
    queried.go_on.clear()
    async with polling(caches, stats_cache, queried, [], clock):
        await async_until("none is asked", lambda: queried.now == 1)
        clock.advance(INTERVAL_S)
        await async_until("they are not asked", lambda: queried.now == AT_ONCE)
        if answer:
            queried.go_on.set()
            await async_until("not all are asked", lambda: len(stats_cache) == len(pods))
    assert (queried.most, queried.now, len(stats_cache)) == (AT_ONCE, 0, len(pods) if answer else 0)


async def test_what_goes_wrong_in_asking_ends_the_operator(caches: Caches) -> None:
    add(caches, "cache", 1)

    async def broken(endpoint: Endpoint, timeout_s: float) -> tuple[StatsAnswer | Failure, bytes]:
        raise ZeroDivisionError(endpoint.address)

    poller = Poller(caches, StatsCache(), Channel(), interval_s=INTERVAL_S, query=broken, tick_s=0.0)
    with pytest.raises(BaseExceptionGroup) as raised:
        async with asyncio.timeout(60):
            await poller.run()
    assert raised.group_contains(ZeroDivisionError)


async def test_what_an_answer_leads_to_does_not_end_the_operator(
    caches: Caches, caplog: pytest.LogCaptureFixture
) -> None:
    add(caches, "cache", 1)
    queried, clock = Request(), FakeClock()

    def broken(pod: QueriedPod, received: StatsAnswer) -> bool:
        raise ZeroDivisionError(pod.address)

    async with polling(caches, StatsCache(), queried, [], clock, broken):
        for count in (1, 2):
            clock.advance(INTERVAL_S)
            await async_until(f"not asked {count} times", lambda count=count: queried.count == count)
    (record,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert record.getMessage().startswith("the answer of shop/cache-0 is dropped, as it cannot be used: ZeroDivision")
    assert record.exc_info is not None


async def test_a_server_is_asked_as_its_pod_says_and_its_certificate_is_kept(caches: Caches) -> None:
    pair = Authority().issue("cache.shop.svc")
    (pod,) = add(caches, "cache", 1)
    with mounted({**pair.files, "password-file": b"ann:secret\n"}) as folder:
        async with running(*tls_arguments(folder), "-Y", f"{folder}/password-file", *ONE_THREAD) as where:
            transport = Transport(tls=True, passwords=True)
            there = msgspec.structs.replace(pod, resource_version="2", address=where, transport=transport)
            caches.pods.put(there)
            stats_cache = StatsCache()
            poller = Poller(caches, stats_cache, Channel(), interval_s=INTERVAL_S, now=lambda: 7.0)
            polling = asyncio.create_task(poller.run())
            await async_until("it is never judged", lambda: len(stats_cache) == 1)
            poller.stop()
            await polling
    (found,) = stats_cache.read([there])
    assert (found.verdict, found.why) == (AnswerVerdict.DENIED, "it requires a login, and --server-credentials is off")
    assert found.shown is not None
    assert (found.shown.certificate.names, found.shown.since_s) == (("cache.shop.svc",), 7.0)
