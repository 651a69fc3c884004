"""The event recorder: writes that fail are tried again or given up, said once, and never in anybody's way."""

from __future__ import annotations

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
from operator_runtime.events.recorder import EventRecorder
from operator_runtime.testing.clock import FakeClock
from tests.unit.operator_runtime.events.recorder_support import FakeApi, emit, running, settle, write_all


@pytest.mark.parametrize(("asked_s", "slept_s"), [(4.0, 4.0), (300.0, 10.0)])
async def test_the_wait_that_a_server_asks_for_is_honoured_up_to_a_bound(
    api: FakeApi, recorder: EventRecorder, time: FakeClock, asked_s: float, slept_s: float
) -> None:
    api.errors = [TooManyRequests(429, retry_after_s=asked_s)]
    async with running(recorder):
        emit(recorder)
        await api.wait_for_tries(2)
    assert time.slept_s == [slept_s]


async def test_a_write_is_given_up_after_three_tries_and_the_next_event_gets_its_own(
    api: FakeApi, recorder: EventRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    api.errors = [Unreachable("refused")] * 3
    async with running(recorder):
        emit(recorder, note="lost")
        emit(recorder, note="written")
        await api.wait_for_tries(4)
    assert [body["note"] for _, body in api.created] == ["written"]
    assert recorder.dropped == {"write failed": 1}
    assert caplog.messages == ["events are not written: refused"]


async def test_an_event_that_an_earlier_try_wrote_unheard_counts_as_written(
    api: FakeApi, recorder: EventRecorder
) -> None:
    api.errors = [Unreachable("reset"), Conflict(409, "AlreadyExists", "already exists")]
    async with running(recorder):
        emit(recorder)
        await api.wait_for_tries(2)
    assert recorder.written == 1
    assert not recorder.dropped


async def test_a_forbidden_write_is_said_once_with_the_remedy(
    api: FakeApi, recorder: EventRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    api.errors = [Forbidden(403, "Forbidden", "events.events.k8s.io is forbidden")] * 3
    async with running(recorder):
        for note in "abc":
            emit(recorder, note=note)
        await api.wait_for_tries(3)
        assert [record.getMessage() for record in caplog.records] == [
            "events are not written: 403 Forbidden: events.events.k8s.io is forbidden; to see events, grant create and "
            "patch on events.events.k8s.io to the operator's service account"
        ]
        emit(recorder, note="mended")
        await api.wait_for_tries(4)
        api.errors = [Forbidden(403, "Forbidden", "again")]
        emit(recorder, note="broken again")
        await api.wait_for_tries(5)
    assert len(caplog.records) == 2
    assert recorder.dropped == {"write failed": 4}
    assert recorder.written == 1


@pytest.mark.parametrize(
    "error",
    [
        Forbidden(403, "Forbidden", "is being terminated", causes=(StatusCause(reason="NamespaceTerminating"),)),
        NotFound(404, "NotFound", 'namespaces "team-a" not found'),
    ],
)
async def test_events_of_a_namespace_that_goes_are_dropped_without_a_word(
    api: FakeApi, recorder: EventRecorder, caplog: pytest.LogCaptureFixture, error: KubeError
) -> None:
    api.errors = [error]
    emit(recorder)
    await write_all(recorder)
    assert recorder.dropped == {"write failed": 1}
    assert caplog.records == []


async def test_a_count_that_could_not_be_written_goes_with_the_next_one(
    api: FakeApi, recorder: EventRecorder, time: FakeClock
) -> None:
    async with running(recorder):
        emit(recorder)
        await api.wait_for_tries(1)
        api.errors = [Forbidden(403)]
        for _ in range(2):
            time.advance(61.0)
            emit(recorder)
            await settle()
    assert [body["series"]["count"] for _, _, body in api.patched] == [3]
    assert not recorder.dropped
