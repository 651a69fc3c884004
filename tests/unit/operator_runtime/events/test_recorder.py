"""The event recorder: what is written, how often, what becomes of writes that fail, and of all at the end."""

from __future__ import annotations

import asyncio

import pytest

from operator_runtime.client.errors import (
    Conflict,
    Forbidden,
    KubeError,
    NotFound,
    StatusCause,
    TooManyRequests,
    Unreachable,
)
from operator_runtime.events.event_bodies import ObjectReference
from operator_runtime.testing.clock import FakeClock
from tests.unit.operator_runtime.events.recorder_support import (
    NOW_NS,
    FakeApi,
    Recording,
    emit,
    objects,
    recorder_of,
    write_all,
)
from tests.unit.operator_runtime.running import DEADLINE_S, running, settle

# What is written


async def test_an_event_is_written_with_all_that_describe_shows(at: Recording) -> None:
    emit(at.recorder, type="Warning")
    await write_all(at.recorder)
    regarding = {"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "namespace": "team-a", "name": "shop"}
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"shop.{NOW_NS:x}", "namespace": "team-a"},
        "eventTime": "2026-11-21T10:00:00.123456Z",
        **{"type": "Warning", "reason": "Scaled", "action": "Scale", "note": "from 3 to 4"},
        "regarding": regarding | {"uid": "uid-1", "resourceVersion": "42"},
        "reportingController": "cache.example.com/memcached-operator",
        "reportingInstance": "memcached-operator-0",
    }
    assert at.api.created == [("team-a", body)]
    assert at.recorder.written == 1


async def test_an_event_about_a_cluster_scoped_object_goes_to_the_default_namespace(at: Recording) -> None:
    emit(at.recorder, ObjectReference("v1", "Node", "", "worker-1", "uid-2"))
    await write_all(at.recorder)
    ((namespace, body),) = at.api.created
    assert namespace == body["metadata"]["namespace"] == "default"
    assert body["regarding"] == {"apiVersion": "v1", "kind": "Node", "name": "worker-1", "uid": "uid-2"}


# Series


async def test_a_repeated_event_becomes_a_count_on_the_first(at: Recording) -> None:
    async with running(at.recorder):
        emit(at.recorder)
        await at.api.wait_for_tries(1)
        for _ in range(4):
            at.time.advance(10.0)
            emit(at.recorder)
        await settle()
        assert at.api.patched == []
        at.time.advance(20.0)
        emit(at.recorder)
        await at.api.wait_for_tries(2)
    ((_, created),) = at.api.created
    series = {"count": 6, "lastObservedTime": "2026-11-21T10:01:00.123456Z"}
    assert at.api.patched == [("team-a", created["metadata"]["name"], {"series": series})]


async def test_repeats_before_the_first_write_are_counted_after_it(at: Recording) -> None:
    for _ in range(3):
        emit(at.recorder)
    await write_all(at.recorder)
    assert len(at.api.created) == 1
    assert "series" not in at.api.created[0][1]
    assert [body["series"]["count"] for _, _, body in at.api.patched] == [3]


@pytest.mark.parametrize(("silence_s", "events"), [(359.0, 1), (360.0, 2)])
async def test_a_series_is_finished_after_six_minutes_of_silence(at: Recording, silence_s: float, events: int) -> None:
    emit(at.recorder)
    at.time.advance(silence_s)
    emit(at.recorder)
    await write_all(at.recorder)
    assert len(at.api.created) == events


async def test_a_series_whose_event_has_expired_begins_anew(at: Recording) -> None:
    async with running(at.recorder):
        emit(at.recorder)
        await at.api.wait_for_tries(1)
        at.api.errors = [NotFound(404, "NotFound", "events.events.k8s.io not found")]
        at.time.advance(100.0)
        emit(at.recorder)
        await at.api.wait_for_tries(3)
    (_, first), (_, second) = at.api.created
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert second["eventTime"] == "2026-11-21T10:01:40.123456Z"
    assert at.api.patched == []
    assert not at.recorder.dropped


# Rates


async def test_one_object_gets_a_burst_and_then_one_event_in_five_minutes(at: Recording) -> None:
    for number in range(30):
        emit(at.recorder, note=f"note {number}")
    assert at.recorder.dropped == {"object too busy": 5}
    emit(at.recorder, ObjectReference("v1", "Pod", "team-a", "other", "uid-9"))
    assert at.recorder.dropped == {"object too busy": 5}
    at.time.advance(300.0)
    emit(at.recorder, note="later")
    emit(at.recorder, note="too much again")
    assert at.recorder.dropped == {"object too busy": 6}
    await write_all(at.recorder)
    assert len(at.api.created) == 27


async def test_all_together_get_a_burst_and_then_five_a_second(at: Recording) -> None:
    async with running(at.recorder):
        for regarding in objects(30):
            emit(at.recorder, regarding)
        await at.api.wait_for_tries(30)
    assert sum(at.time.slept_s) == pytest.approx(1.0)
    assert len(at.api.created) == 30


async def test_the_oldest_are_dropped_when_the_queue_is_full_and_are_new_ones_when_they_come_again(
    at: Recording,
) -> None:
    first, *others = objects(1003)
    for regarding in (first, *others):
        emit(at.recorder, regarding)
    assert at.recorder.dropped == {"queue full": 3}
    assert [recorded.event.regarding.name for recorded in at.recorder._queue][0::999] == ["pod-3", "pod-1002"]
    emit(at.recorder, first)
    assert at.recorder._queue[-1].event.regarding == first


def test_what_is_remembered_is_bounded(at: Recording) -> None:
    for regarding in objects(5000):
        emit(at.recorder, regarding)
    assert len(at.recorder._known) <= 1024
    assert len(at.recorder._objects) == 4096
    at.time.advance(1000.0)
    emit(at.recorder)
    assert len(at.recorder._objects) == 1
    assert len(at.recorder._known) == 1, "what is not written yet is still in the queue"


# The end


async def test_a_stop_writes_what_is_queued_without_minding_the_rate(at: Recording) -> None:
    for regarding in objects(100):
        emit(at.recorder, regarding)
    at.recorder.stop()
    await asyncio.wait_for(at.recorder.run(), DEADLINE_S)
    assert len(at.api.created) == 100
    assert at.time.slept_s == []


async def test_a_stop_waits_no_longer_than_the_flush_may_take(at: Recording, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    api = FakeApi()
    api.hold.clear()
    recorder = recorder_of(api, at.time, flush_s=0.005)
    async with running(recorder):
        for regarding in objects(3):
            emit(recorder, regarding)
        await api.wait_for_tries(1)
    assert api.created == []
    assert caplog.records[-1].getMessage() == "stopped with 3 events not written"


async def test_a_count_that_the_stop_interrupts_is_tried_once_more(at: Recording) -> None:
    async with running(at.recorder):
        emit(at.recorder)
        await at.api.wait_for_tries(1)
        at.api.hold.clear()
        at.time.advance(61.0)
        emit(at.recorder)
        await at.api.wait_for_tries(2)
        at.recorder.stop()
        await at.api.wait_for_tries(3)
        at.api.hold.set()
    assert [body["series"]["count"] for _, _, body in at.api.patched] == [2]


async def test_an_event_that_waits_for_its_next_try_is_written_at_the_stop() -> None:
    api, time = FakeApi(Unreachable("refused")), FakeClock()
    recorder = recorder_of(api, time)
    async with running(recorder):
        emit(recorder)
        await time.asleep()
    assert len(api.created) == 1


@pytest.mark.parametrize(("requested_s", "slept_s"), [(4.0, 4.0), (300.0, 10.0)])
async def test_the_wait_that_a_server_asks_for_is_honoured_up_to_a_bound(
    at: Recording, requested_s: float, slept_s: float
) -> None:
    at.api.errors = [TooManyRequests(429, retry_after_s=requested_s)]
    async with running(at.recorder):
        emit(at.recorder)
        await at.api.wait_for_tries(2)
    assert at.time.slept_s == [slept_s]


async def test_a_write_is_given_up_after_three_tries_and_the_next_event_gets_its_own(
    at: Recording, caplog: pytest.LogCaptureFixture
) -> None:
    at.api.errors = [Unreachable("refused")] * 3
    async with running(at.recorder):
        emit(at.recorder, note="lost")
        emit(at.recorder, note="written")
        await at.api.wait_for_tries(4)
    assert [body["note"] for _, body in at.api.created] == ["written"]
    assert at.recorder.dropped == {"write failed": 1}
    assert caplog.messages == ["events are not written: refused"]


async def test_an_event_that_an_earlier_try_wrote_unheard_counts_as_written(at: Recording) -> None:
    at.api.errors = [Unreachable("reset"), Conflict(409, "AlreadyExists", "already exists")]
    async with running(at.recorder):
        emit(at.recorder)
        await at.api.wait_for_tries(2)
    assert at.recorder.written == 1
    assert not at.recorder.dropped


async def test_a_forbidden_write_is_said_once_with_the_remedy(at: Recording, caplog: pytest.LogCaptureFixture) -> None:
    at.api.errors = [Forbidden(403, "Forbidden", "events.events.k8s.io is forbidden")] * 3
    async with running(at.recorder):
        for note in "abc":
            emit(at.recorder, note=note)
        await at.api.wait_for_tries(3)
        assert [record.getMessage() for record in caplog.records] == [
            "events are not written: 403 Forbidden: events.events.k8s.io is forbidden; to see events, grant create and "
            "patch on events.events.k8s.io to the operator's service account"
        ]
        emit(at.recorder, note="mended")
        await at.api.wait_for_tries(4)
        at.api.errors = [Forbidden(403, "Forbidden", "again")]
        emit(at.recorder, note="broken again")
        await at.api.wait_for_tries(5)
    assert len(caplog.records) == 2
    assert at.recorder.dropped == {"write failed": 4}
    assert at.recorder.written == 1


@pytest.mark.parametrize(
    "error",
    [
        Forbidden(403, "Forbidden", "is being terminated", causes=(StatusCause(reason="NamespaceTerminating"),)),
        NotFound(404, "NotFound", 'namespaces "team-a" not found'),
    ],
)
async def test_events_of_a_namespace_that_goes_are_dropped_without_a_word(
    at: Recording, caplog: pytest.LogCaptureFixture, error: KubeError
) -> None:
    at.api.errors = [error]
    emit(at.recorder)
    await write_all(at.recorder)
    assert at.recorder.dropped == {"write failed": 1}
    assert caplog.records == []


async def test_a_count_that_could_not_be_written_goes_with_the_next_one(at: Recording) -> None:
    async with running(at.recorder):
        emit(at.recorder)
        await at.api.wait_for_tries(1)
        at.api.errors = [Forbidden(403)]
        for _ in range(2):
            at.time.advance(61.0)
            emit(at.recorder)
            await settle()
    assert [body["series"]["count"] for _, _, body in at.api.patched] == [3]
    assert not at.recorder.dropped
