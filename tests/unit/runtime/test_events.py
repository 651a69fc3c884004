"""The event recorder: what is written, how often, and that it never gets in the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.errors import (
    Cause,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from memcached_operator.kube.resources import EVENTS, Resource
from memcached_operator.runtime.events import EventRecorder, EventsApi, EventType, ObjectReference, event_name

DEADLINE_S = 5.0
SHOP = ObjectReference("cache.example.com/v1alpha1", "Memcached", "team-a", "shop", "uid-1", "42")
# 2026-11-21T10:00:00.123456Z
NOW_NS = 1_795_255_200_123_456_789


class FakeTime:
    """A clock that only moves when told to, or when someone sleeps by it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept_s: list[float] = []

    def clock(self) -> float:
        return self.now

    def now_ns(self) -> int:
        return NOW_NS + round((self.now - 1000.0) * 1_000_000_000)

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class FakeApi:
    """Takes what is written; answers from a script of errors first."""

    def __init__(self, *errors: KubeError) -> None:
        self.errors = list(errors)
        self.tries = 0
        self.created: list[tuple[str, dict[str, Any]]] = []
        self.patched: list[tuple[str, str, dict[str, Any]]] = []
        self.hold = asyncio.Event()
        self.hold.set()
        self.changed = asyncio.Condition()

    async def create(self, resource: Resource, namespace: str, body: Any, *, field_manager: str) -> bytes:
        await self.answer(resource, field_manager)
        self.created.append((namespace, body))
        return b"{}"

    async def merge_patch(
        self, resource: Resource, namespace: str, name: str, body: Any, *, field_manager: str
    ) -> bytes:
        await self.answer(resource, field_manager)
        self.patched.append((namespace, name, body))
        return b"{}"

    async def answer(self, resource: Resource, field_manager: str) -> None:
        assert resource == EVENTS
        assert field_manager == "memcached-operator"
        self.tries += 1
        async with self.changed:
            self.changed.notify_all()
        await self.hold.wait()
        if self.errors:
            raise self.errors.pop(0)

    async def wait_for_tries(self, number: int) -> None:
        async with asyncio.timeout(DEADLINE_S), self.changed:
            await self.changed.wait_for(lambda: self.tries >= number)


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


def recorder_of(api: EventsApi, time: FakeTime, **options: Any) -> EventRecorder:
    return EventRecorder(
        api,
        reporting_controller="cache.example.com/memcached-operator",
        reporting_instance="memcached-operator-0",
        field_manager="memcached-operator",
        clock=time.clock,
        now_ns=time.now_ns,
        sleep=time.sleep,
        **options,
    )


def emit(
    recorder: EventRecorder,
    regarding: ObjectReference = SHOP,
    *,
    type: EventType = "Normal",
    reason: str = "Scaled",
    action: str = "Scale",
    note: str = "from 3 to 4",
) -> None:
    recorder.emit(regarding, type=type, reason=reason, action=action, note=note)


@asynccontextmanager
async def running(recorder: EventRecorder) -> AsyncIterator[None]:
    task = asyncio.create_task(recorder.run())
    try:
        yield
    finally:
        recorder.stop()
        await asyncio.wait_for(task, DEADLINE_S)


async def write_all(recorder: EventRecorder) -> None:
    """Run for as long as there is something to write now, then flush."""
    async with running(recorder):
        pass


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_an_api_client_is_what_the_recorder_writes_to() -> None:
    # Checked by mypy.
    def accepts(client: ApiClient) -> EventsApi:
        return client

    assert accepts is not None


# What is written


async def test_an_event_is_written_with_all_that_describe_shows(time: FakeTime) -> None:
    api = FakeApi()
    recorder = recorder_of(api, time)
    emit(recorder, type="Warning")
    await write_all(recorder)
    assert api.created == [
        (
            "team-a",
            {
                "apiVersion": "events.k8s.io/v1",
                "kind": "Event",
                "metadata": {"name": f"shop.{NOW_NS:x}", "namespace": "team-a"},
                "eventTime": "2026-11-21T10:00:00.123456Z",
                "type": "Warning",
                "reason": "Scaled",
                "action": "Scale",
                "note": "from 3 to 4",
                "regarding": {
                    "apiVersion": "cache.example.com/v1alpha1",
                    "kind": "Memcached",
                    "namespace": "team-a",
                    "name": "shop",
                    "uid": "uid-1",
                    "resourceVersion": "42",
                },
                "reportingController": "cache.example.com/memcached-operator",
                "reportingInstance": "memcached-operator-0",
            },
        )
    ]
    assert recorder.written == 1


async def test_an_event_about_a_cluster_scoped_object_goes_to_the_default_namespace(time: FakeTime) -> None:
    api = FakeApi()
    recorder = recorder_of(api, time)
    emit(recorder, ObjectReference("v1", "Node", "", "worker-1", "uid-2"))
    await write_all(recorder)
    ((namespace, body),) = api.created
    assert namespace == body["metadata"]["namespace"] == "default"
    assert body["regarding"] == {"apiVersion": "v1", "kind": "Node", "name": "worker-1", "uid": "uid-2"}


async def test_events_of_one_instant_have_different_names(time: FakeTime) -> None:
    api = FakeApi()
    recorder = recorder_of(api, time)
    for note in "abc":
        emit(recorder, note=note)
    await write_all(recorder)
    assert len({body["metadata"]["name"] for _, body in api.created}) == 3


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shop", "shop.ff"),
        ("a" * 253, "a" * 250 + ".ff"),
        ("a" * 249 + ".b", "a" * 249 + ".ff"),
        ("system:node", "clusterrole.ff"),
        ("", "clusterrole.ff"),
    ],
)
def test_a_name_is_made_of_the_objects_and_is_always_valid(name: str, expected: str) -> None:
    assert event_name(ObjectReference("v1", "ClusterRole", "", name, "uid"), 255) == expected


async def test_a_time_on_the_full_second_keeps_its_six_digits(time: FakeTime) -> None:
    api = FakeApi()
    recorder = recorder_of(api, time)
    time.now -= 0.123456789
    emit(recorder)
    await write_all(recorder)
    assert api.created[0][1]["eventTime"] == "2026-11-21T10:00:00.000000Z"


@settings(max_examples=50)
@given(st.text(max_size=12))
def test_a_note_is_cut_to_the_limit_without_half_a_character(text: str) -> None:
    recorder = recorder_of(FakeApi(), FakeTime())
    note = text * (1 + 1500 // max(1, len(text)))
    emit(recorder, note=note, reason=note, action=note)
    event = recorder._queue[0]
    assert len(event.note.encode()) <= 1024
    assert len(event.reason.encode()) <= 128
    assert len(event.action.encode()) <= 128
    whole = note.encode("utf-8", "replace").decode()
    if len(whole.encode()) > 1024:
        assert event.note.endswith("...")
        assert whole.startswith(event.note[:-3])
        assert len(event.note.encode()) > 1024 - 4
    else:
        assert event.note == whole


async def test_a_lone_surrogate_in_a_note_does_not_make_it_fail(time: FakeTime) -> None:
    api = FakeApi()
    recorder = recorder_of(api, time)
    emit(recorder, note="file \udcff is missing")
    await write_all(recorder)
    assert api.created[0][1]["note"] == "file ? is missing"


# Series


async def test_a_repeated_event_becomes_a_count_on_the_first(time: FakeTime) -> None:
    api = FakeApi()
    recorder = recorder_of(api, time)
    async with running(recorder):
        emit(recorder)
        await api.wait_for_tries(1)
        await settle()
        for _ in range(4):
            time.now += 10.0
            emit(recorder)
        await settle()
        assert api.patched == []
        time.now += 20.0
        emit(recorder)
        await api.wait_for_tries(2)
        await settle()
    name = api.created[0][1]["metadata"]["name"]
    assert len(api.created) == 1
    assert api.patched == [
        ("team-a", name, {"series": {"count": 6, "lastObservedTime": "2026-11-21T10:01:00.123456Z"}})
    ]


async def test_repeats_before_the_first_write_are_counted_after_it(time: FakeTime) -> None:
    api = FakeApi()
    recorder = recorder_of(api, time)
    for _ in range(3):
        emit(recorder)
    await write_all(recorder)
    assert len(api.created) == 1
    assert "series" not in api.created[0][1]
    assert [body["series"]["count"] for _, _, body in api.patched] == [3]


@pytest.mark.parametrize(
    "change",
    [
        {"type": "Warning"},
        {"reason": "Created"},
        {"action": "Create"},
        {"note": "from 4 to 5"},
        {"regarding": ObjectReference("cache.example.com/v1alpha1", "Memcached", "team-a", "shop", "uid-2", "42")},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_events_that_differ_are_no_series(time: FakeTime, change: dict[str, Any]) -> None:
    api = FakeApi()
    recorder = recorder_of(api, time)
    emit(recorder)
    emit(recorder, **change)
    await write_all(recorder)
    assert len(api.created) == 2
    assert api.patched == []


async def test_a_new_version_of_the_object_continues_the_series(time: FakeTime) -> None:
    api = FakeApi()
    recorder = recorder_of(api, time)
    emit(recorder)
    emit(recorder, ObjectReference(SHOP.api_version, SHOP.kind, SHOP.namespace, SHOP.name, SHOP.uid, "43"))
    await write_all(recorder)
    assert len(api.created) == 1


@pytest.mark.parametrize(("silence_s", "events"), [(359.0, 1), (360.0, 2)])
async def test_a_series_is_finished_after_six_minutes_of_silence(time: FakeTime, silence_s: float, events: int) -> None:
    api = FakeApi()
    recorder = recorder_of(api, time)
    emit(recorder)
    time.now += silence_s
    emit(recorder)
    await write_all(recorder)
    assert len(api.created) == events


async def test_a_series_whose_event_has_expired_begins_anew(time: FakeTime) -> None:
    api = FakeApi()
    recorder = recorder_of(api, time)
    async with running(recorder):
        emit(recorder)
        await api.wait_for_tries(1)
        await settle()
        api.errors = [NotFound(404, "NotFound", "events.events.k8s.io not found")]
        time.now += 100.0
        emit(recorder)
        await api.wait_for_tries(3)
        await settle()
    (_, first), (_, second) = api.created
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert second["eventTime"] == "2026-11-21T10:01:40.123456Z"
    assert api.patched == []
    assert not recorder.dropped


# Rates


async def test_one_object_gets_a_burst_and_then_one_event_in_five_minutes(time: FakeTime) -> None:
    api = FakeApi()
    recorder = recorder_of(api, time)
    for number in range(30):
        emit(recorder, note=f"note {number}")
    assert recorder.dropped == {"object too busy": 5}
    emit(recorder, ObjectReference("v1", "Pod", "team-a", "other", "uid-9"))
    assert recorder.dropped == {"object too busy": 5}
    time.now += 300.0
    emit(recorder, note="later")
    emit(recorder, note="too much again")
    assert recorder.dropped == {"object too busy": 6}
    await write_all(recorder)
    assert len(api.created) == 27


def objects(number: int) -> list[ObjectReference]:
    return [ObjectReference("v1", "Pod", "team-a", f"pod-{n}", f"uid-{n}") for n in range(number)]


async def test_all_together_get_a_burst_and_then_five_a_second(time: FakeTime) -> None:
    api = FakeApi()
    recorder = recorder_of(api, time)
    async with running(recorder):
        for regarding in objects(30):
            emit(recorder, regarding)
        await api.wait_for_tries(30)
        await settle()
    assert sum(time.slept_s) == pytest.approx(1.0)
    assert len(api.created) == 30


async def test_the_oldest_are_dropped_when_the_queue_is_full(time: FakeTime) -> None:
    recorder = recorder_of(FakeApi(), time)
    for regarding in objects(1003):
        emit(recorder, regarding)
    assert recorder.dropped == {"queue full": 3}
    assert [event.regarding.name for event in recorder._queue][0::999] == ["pod-3", "pod-1002"]


async def test_a_dropped_event_that_comes_again_is_a_new_one(time: FakeTime) -> None:
    recorder = recorder_of(FakeApi(), time)
    first, *others = objects(1001)
    emit(recorder, first)
    for regarding in others:
        emit(recorder, regarding)
    emit(recorder, first)
    assert recorder._queue[-1].regarding == first


def test_what_is_remembered_is_bounded(time: FakeTime) -> None:
    recorder = recorder_of(FakeApi(), time)
    for regarding in objects(5000):
        emit(recorder, regarding)
    assert len(recorder._known) <= 1024
    assert len(recorder._objects) == 4096
    time.now += 1000.0
    emit(recorder)
    assert len(recorder._objects) == 1


# Failures


@pytest.mark.parametrize("error", [Unreachable("refused"), ServerError(503, message="shutting down")])
async def test_a_write_that_may_work_later_is_tried_again(time: FakeTime, error: KubeError) -> None:
    api = FakeApi(error, error)
    recorder = recorder_of(api, time)
    async with running(recorder):
        emit(recorder)
        await api.wait_for_tries(3)
        await settle()
    assert len(api.created) == 1
    assert time.slept_s == [1.0, 2.0]


@pytest.mark.parametrize(("asked_s", "slept_s"), [(4.0, 4.0), (300.0, 10.0)])
async def test_the_wait_that_a_server_asks_for_is_honoured_up_to_a_bound(
    time: FakeTime, asked_s: float, slept_s: float
) -> None:
    api = FakeApi(TooManyRequests(429, retry_after_s=asked_s))
    recorder = recorder_of(api, time)
    async with running(recorder):
        emit(recorder)
        await api.wait_for_tries(2)
        await settle()
    assert time.slept_s == [slept_s]


async def test_a_write_is_given_up_after_three_tries_and_the_next_event_gets_its_own(
    time: FakeTime, caplog: pytest.LogCaptureFixture
) -> None:
    api = FakeApi(*[Unreachable("refused")] * 3)
    recorder = recorder_of(api, time)
    async with running(recorder):
        emit(recorder, note="lost")
        emit(recorder, note="written")
        await api.wait_for_tries(4)
        await settle()
    assert [body["note"] for _, body in api.created] == ["written"]
    assert recorder.dropped == {"write failed": 1}
    assert [record.getMessage() for record in caplog.records] == ["events are not written: refused"]


async def test_an_event_that_an_earlier_try_wrote_unheard_counts_as_written(time: FakeTime) -> None:
    api = FakeApi(Unreachable("reset"), Conflict(409, "AlreadyExists", "already exists"))
    recorder = recorder_of(api, time)
    async with running(recorder):
        emit(recorder)
        await api.wait_for_tries(2)
        await settle()
    assert recorder.written == 1
    assert not recorder.dropped


async def test_a_forbidden_write_is_said_once_with_the_remedy(time: FakeTime, caplog: pytest.LogCaptureFixture) -> None:
    api = FakeApi(*[Forbidden(403, "Forbidden", "events.events.k8s.io is forbidden")] * 3)
    recorder = recorder_of(api, time)
    async with running(recorder):
        for note in "abc":
            emit(recorder, note=note)
        await api.wait_for_tries(3)
        await settle()
        assert [record.getMessage() for record in caplog.records] == [
            "events are not written: 403 Forbidden: events.events.k8s.io is forbidden; to see events, grant create and "
            "patch on events.events.k8s.io to the operator's service account"
        ]
        emit(recorder, note="mended")
        await api.wait_for_tries(4)
        await settle()
        api.errors = [Forbidden(403, "Forbidden", "again")]
        emit(recorder, note="broken again")
        await api.wait_for_tries(5)
        await settle()
    assert len(caplog.records) == 2
    assert recorder.dropped == {"write failed": 4}
    assert recorder.written == 1


@pytest.mark.parametrize(
    "error",
    [
        Forbidden(403, "Forbidden", "is being terminated", causes=(Cause(reason="NamespaceTerminating"),)),
        NotFound(404, "NotFound", 'namespaces "team-a" not found'),
    ],
)
async def test_events_of_a_namespace_that_goes_are_dropped_without_a_word(
    time: FakeTime, caplog: pytest.LogCaptureFixture, error: KubeError
) -> None:
    recorder = recorder_of(FakeApi(error), time)
    emit(recorder)
    await write_all(recorder)
    assert recorder.dropped == {"write failed": 1}
    assert caplog.records == []


async def test_a_refused_event_that_comes_again_is_a_new_one(time: FakeTime) -> None:
    api = FakeApi(Invalid(422, "Invalid", "reason: Required value"))
    recorder = recorder_of(api, time)
    async with running(recorder):
        emit(recorder)
        await api.wait_for_tries(1)
        await settle()
        emit(recorder)
        await api.wait_for_tries(2)
        await settle()
    assert len(api.created) == 1


async def test_a_count_that_could_not_be_written_goes_with_the_next_one(time: FakeTime) -> None:
    api = FakeApi()
    recorder = recorder_of(api, time)
    async with running(recorder):
        emit(recorder)
        await api.wait_for_tries(1)
        await settle()
        api.errors = [Forbidden(403)]
        for _ in range(2):
            time.now += 61.0
            emit(recorder)
            await settle()
    assert [body["series"]["count"] for _, _, body in api.patched] == [3]
    assert not recorder.dropped


# The end


async def test_a_stop_writes_what_is_queued_without_minding_the_rate(time: FakeTime) -> None:
    api = FakeApi()
    recorder = recorder_of(api, time)
    for regarding in objects(100):
        emit(recorder, regarding)
    recorder.stop()
    await asyncio.wait_for(recorder.run(), DEADLINE_S)
    assert len(api.created) == 100
    assert time.slept_s == []


async def test_a_stop_waits_no_longer_than_the_flush_may_take(time: FakeTime, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    api = FakeApi()
    api.hold.clear()
    recorder = recorder_of(api, time, flush_s=0.005)
    async with running(recorder):
        for regarding in objects(3):
            emit(recorder, regarding)
        await api.wait_for_tries(1)
    assert api.created == []
    assert caplog.records[-1].getMessage() == "stopped with 3 events not written"


async def test_a_write_that_the_stop_interrupts_is_tried_once_more(time: FakeTime) -> None:
    api = FakeApi()
    api.hold.clear()
    recorder = recorder_of(api, time)
    async with running(recorder):
        emit(recorder)
        await api.wait_for_tries(1)
        recorder.stop()
        await api.wait_for_tries(2)
        api.hold.set()
    assert len(api.created) == 1


async def test_a_count_that_the_stop_interrupts_is_tried_once_more(time: FakeTime) -> None:
    api = FakeApi()
    recorder = recorder_of(api, time)
    async with running(recorder):
        emit(recorder)
        await api.wait_for_tries(1)
        await settle()
        api.hold.clear()
        time.now += 61.0
        emit(recorder)
        await api.wait_for_tries(2)
        recorder.stop()
        await api.wait_for_tries(3)
        api.hold.set()
    assert [body["series"]["count"] for _, _, body in api.patched] == [2]


async def test_an_event_that_waits_for_its_next_try_is_written_at_the_stop(time: FakeTime) -> None:
    api = FakeApi(Unreachable("refused"))
    sleeping = asyncio.Event()

    async def sleep_on(seconds: float) -> None:
        sleeping.set()
        await asyncio.Event().wait()

    time.sleep = sleep_on  # type: ignore[method-assign]
    recorder = recorder_of(api, time)
    async with running(recorder):
        emit(recorder)
        await asyncio.wait_for(sleeping.wait(), DEADLINE_S)
    assert len(api.created) == 1


async def test_an_event_is_noted_also_when_nobody_runs_the_recorder(time: FakeTime) -> None:
    recorder = recorder_of(FakeApi(), time)
    emit(recorder)
    assert recorder.written == 0
    assert len(recorder._queue) == 1


@pytest.mark.parametrize(("operator", "process"), [("", "pod-0"), ("memcached-operator", "")])
def test_a_recorder_without_a_name_is_refused(operator: str, process: str) -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        EventRecorder(
            FakeApi(), reporting_controller=operator, reporting_instance=process, field_manager="memcached-operator"
        )
