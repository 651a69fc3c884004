"""What the reconcile writes of what the servers say: as little as there are news."""

from __future__ import annotations

import pytest

from memcached_operator.servers.certificates import STALE_S, Certificate
from memcached_operator.servers.server_connection import ErrorKind, Failure
from memcached_operator.servers.stats_answer import StatsAnswer
from tests.unit.memcached_operator.servers.support import answer
from tests.unit.memcached_operator.support import live_deployment
from tests.unit.memcached_operator.world import DELAY_S, WRITE_STATUS, World

SILENT = Failure(ErrorKind.SILENT, "no answer within 1 s")


@pytest.fixture
async def running() -> World:
    """Two servers that run and that nobody has asked yet."""
    world = World(queried=True)
    world.memcached(size=2)
    world.api.put(live_deployment())
    world.pods(2)
    for (kind, *_), pod in [*world.api.objects.items()]:
        if kind == "Pod":
            pod["status"]["podIP"] = "127.64.0.1"
            world.api.put(pod)
    await world.settle()
    return world


def record(world: World, received: StatsAnswer | Failure, *servers: int) -> None:
    """Record this as the answer of these servers."""
    assert world.stats_cache is not None
    pods = sorted(world.caches.pods.values(), key=lambda pod: pod.name)
    for number in servers:
        world.stats_cache.record(pods[number], received)


async def written(world: World) -> list[str]:
    """What is written until there is nothing more to be said."""
    calls = []
    for _ in range(3):
        await world.reconcile(after_s=DELAY_S)
        calls += world.api.verbs()
        world.show()
    return calls


async def test_good_answers_take_one_write_and_their_repetition_none(running: World) -> None:
    assert running.condition("Serving") == ("Unknown", "NotQueried")
    record(running, answer(), 0)
    assert await written(running) == [], "the other has yet to be asked"
    record(running, answer(), 1)
    assert await written(running) == [WRITE_STATUS]
    assert running.condition("Serving") == ("True", "Answering")
    assert running.status["version"] == "1.6.45"
    for count in range(3):
        record(running, answer(curr_connections=count, uptime=count), 0, 1)
        assert await written(running) == []


async def test_that_no_server_is_ready_is_over_when_some_are_whatever_their_first_answer(running: World) -> None:
    running.pods(0, 2)
    running.show()
    await written(running)
    assert running.message("Serving") == "No server is ready."
    running.pods(2)
    for (kind, *_), pod in [*running.api.objects.items()]:
        if kind == "Pod":
            pod["status"]["podIP"] = "127.64.0.1"
            running.api.put(pod)
    running.show()
    record(running, SILENT, 0, 1)
    await written(running)
    assert running.message("Serving") == "Some ready servers have not answered yet."
    record(running, answer(), 0, 1)
    await written(running)
    assert running.condition("Serving") == ("True", "Answering")


async def test_a_server_that_does_not_answer_is_told_once_and_that_it_does_once(running: World) -> None:
    record(running, answer(), 0, 1)
    await written(running)
    record(running, SILENT, 1)
    assert await written(running) == []
    record(running, SILENT, 1)
    assert await written(running) == [WRITE_STATUS]
    assert running.condition("Serving") == ("False", "NotAnswering")
    assert running.condition("Ready") == ("True", "AllServersReady")
    record(running, SILENT, 1)
    assert await written(running) == []
    record(running, answer(), 1)
    assert await written(running) == [WRITE_STATUS]


async def test_a_server_that_is_late_with_its_certificate_is_told_in_ten_minutes_without_event(running: World) -> None:
    assert running.stats_cache is not None
    now_s = 1_800_000_000 + running.clock.now + 0.7
    old, new = (Certificate(name, now_s + begins, now_s + 1e6) for name, begins in (("old", -9.0), ("new", -5.0)))
    pods = sorted(running.caches.pods.values(), key=lambda pod: pod.name)
    for pod, certificate in zip(pods, (old, new), strict=True):
        running.stats_cache.record(pod, answer(), certificate, now_s)
    await written(running)
    assert running.condition("Serving") == ("True", "Answering")
    assert await reported_after(running) == pytest.approx(STALE_S, abs=2.0)
    assert running.condition("Serving") == ("False", "CertificateStale")
    assert running.condition("Ready") == ("True", "AllServersReady")


async def reported_after(world: World) -> float:
    """Lets nothing happen but reconciles that are due; after how many seconds the status is written."""
    began = world.clock.now
    for _ in range(10):
        result = await world.reconcile()
        if world.api.verbs():
            world.show()
            return world.clock.now - began
        assert result.requeue_after_s is not None, "no reconcile is due"
        world.clock.advance(result.requeue_after_s)
    raise AssertionError("it is never written")


async def test_a_server_that_shows_another_certificate_than_a_new_one_would_is_replaced(running: World) -> None:
    assert running.stats_cache is not None
    running.clock.advance(3600)
    first, second = sorted(running.caches.pods.values(), key=lambda pod: pod.name)
    for pod in (first, second):
        running.stats_cache.record(pod, answer(), Certificate("old", 0.0, 9e9), due="new")
    await running.reconcile(after_s=DELAY_S)
    assert "create/eviction Pod" in running.api.verbs()
    (note,) = [each.note for each in running.recorder.events if each.reason == "Replacing"]
    assert note == f"Replacing the server {second.name} by one with the renewed certificate, 1 more to follow"
