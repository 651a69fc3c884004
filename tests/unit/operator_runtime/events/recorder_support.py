"""What the tests of the event recorder share: an API by the test's word."""

from __future__ import annotations

import asyncio
from typing import Any

from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import KubeError
from operator_runtime.events.event_bodies import ObjectReference
from operator_runtime.events.recorder import EventRecorder
from operator_runtime.testing.clock import START_S, FakeClock
from operator_runtime.testing.waiting import async_until
from tests.unit.fake_server import FakeServer, Sent
from tests.unit.operator_runtime.running import running, settle

SHOP = ObjectReference("cache.example.com/v1alpha1", "Memcached", "team-a", "shop", "uid-1", "42")
# 2026-11-21T10:00:00.123456Z
NOW_NS = 1_795_255_200_123_456_789


class FakeApi(FakeServer):
    """Takes what is written while `hold` is set; answers from a script of errors first."""

    def __init__(self, *errors: KubeError) -> None:
        super().__init__()
        self.errors = list(errors)
        self.tries = 0
        self.created: list[tuple[str, dict[str, Any]]] = []
        self.patched: list[tuple[str, str, dict[str, Any]]] = []
        self.hold = asyncio.Event()
        self.hold.set()

    async def request(self, method: str, path: str, **sent: Any) -> bytes:
        self.tries += 1
        await self.hold.wait()
        answer = await super().request(method, path, **sent)
        namespace, _, name = path.removeprefix("/apis/events.k8s.io/v1/namespaces/").partition("/events")
        if method == "POST":
            self.created.append((namespace, self.last.body))
        else:
            self.patched.append((namespace, name[1:], self.last.body))
        return answer

    def refusal(self, sent: Sent) -> KubeError | None:
        assert sent.query["fieldManager"] == "memcached-operator"
        return self.errors.pop(0) if self.errors else None

    async def wait_for_tries(self, number: int) -> None:
        """Wait until so many writes were tried, and what follows from the last has happened."""
        await async_until("so many writes were not tried", lambda: self.tries >= number)
        await settle()


def recorder_of(api: ApiClient, time: FakeClock, **options: Any) -> EventRecorder:
    return EventRecorder(
        api,
        reporting_controller="cache.example.com/memcached-operator",
        reporting_instance="memcached-operator-0",
        field_manager="memcached-operator",
        clock=time,
        now_ns=lambda: NOW_NS + round((time.now - START_S) * 1_000_000_000),
        sleep=time.sleep,
        **options,
    )


class JumpingClock(FakeClock):
    """Moves to the end of each sleep at once."""

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.advance(max(seconds, 0.0))
        await asyncio.sleep(0)


class Recording:
    """A recorder, the API that it writes to, and its time, which goes on by itself while it sleeps."""

    def __init__(self) -> None:
        self.time = JumpingClock()
        self.api = FakeApi()
        self.recorder = recorder_of(self.api, self.time)


def emit(recorder: EventRecorder, regarding: ObjectReference = SHOP, **fields: Any) -> None:
    whole = {"type": "Normal", "reason": "Scaled", "action": "Scale", "note": "from 3 to 4"} | fields
    recorder.emit(regarding, **whole)


async def write_all(recorder: EventRecorder) -> None:
    """Run for as long as there is something to write now, then flush."""
    async with running(recorder):
        pass


def objects(number: int) -> list[ObjectReference]:
    return [ObjectReference("v1", "Pod", "team-a", f"pod-{n}", f"uid-{n}") for n in range(number)]
