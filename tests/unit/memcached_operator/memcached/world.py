"""One Memcached and all that its reconciler stands on: an API server in memory, real stores, and a fake clock.

`World.show` is the watch: it brings the stores to what the server has. Until it is called, they are behind.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from memcached_operator.memcached.desired import USER_ID
from memcached_operator.memcached.reconciler import MemcachedReconciler, ReconcilerConfig
from memcached_operator.memcached.records import deployment_record, memcached_record, pod_record
from memcached_operator.memcached.reporter import MEMCACHEDS, SLOW_RETRY_S, VANISHED_RETRY_S, Caches
from operator_runtime.cache.own_writes import OwnWrites
from operator_runtime.cache.store import ObjectKey, Store
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import KubeError
from operator_runtime.client.resources import DEPLOYMENTS
from operator_runtime.controller.controller import Result
from operator_runtime.events.event_bodies import ObjectReference
from operator_runtime.events.recorder import EventRecorder
from operator_runtime.testing.clock import FakeClock
from tests.unit.memcached_operator.memcached.fake_api import FakeApi, Json
from tests.unit.memcached_operator.memcached.support import IMAGE, NAME, NAMESPACE, UID, live_pod

KEY = ObjectKey(NAMESPACE, NAME)
DELAY_S = 0.25
APPLY, GET_DEPLOYMENT, GET_MEMCACHED = "apply Deployment", "get Deployment", "get Memcached"
WRITE_STATUS = "merge_patch/status Memcached"
DONE = Result()
SLOWLY = Result(requeue_after_s=SLOW_RETRY_S)
SOON = Result(requeue_after_s=VANISHED_RETRY_S)


class Event(NamedTuple):
    type: str
    reason: str
    note: str


class Recorder:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, regarding: ObjectReference, *, type: str, reason: str, action: str, note: str) -> None:
        assert (regarding.kind, regarding.namespace, regarding.name) == ("Memcached", NAMESPACE, NAME)
        assert regarding.uid == UID
        assert action
        self.events.append(Event(type, reason, note))


class World:
    """One Memcached, the API server that holds it, and the operator's parts around its reconciler."""

    def __init__(self, *, finalizer: bool = False, user_id: int | None = USER_ID) -> None:
        self.clock = FakeClock()
        self.api = FakeApi()
        self.recorder = Recorder()
        self.caches = Caches(Store(), Store(), Store({"memcached": lambda pod: pod.memcached_key}))
        self.own_writes = OwnWrites(clock=self.clock)
        self.own_writes.observe(MEMCACHEDS.qualified_name, self.caches.memcacheds)
        self.own_writes.observe(DEPLOYMENTS.qualified_name, self.caches.deployments)
        self.reconciler = MemcachedReconciler(
            cast(ApiClient, self.api),
            self.caches,
            self.own_writes,
            cast(EventRecorder, self.recorder),
            ReconcilerConfig(
                image=IMAGE, user_id=user_id, field_manager="test-manager", status_delay_s=DELAY_S, finalizer=finalizer
            ),
            clock=self.clock,
            utc_now=lambda: datetime.fromtimestamp(1_800_000_000 + self.clock.now, UTC),
        )

    def memcached(self, **spec: Any) -> Json:
        """Create the Memcached, or change its specification."""
        fresh: Json = {
            "kind": "Memcached",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "uid": UID, "generation": 0},
            "status": {},
        }
        memcached = self.api.objects.get(("Memcached", NAMESPACE, NAME), fresh)
        memcached["metadata"]["generation"] += 1
        memcached["spec"] = spec
        return self.api.put(memcached)

    def pods(self, ready: int, unready: int = 0) -> None:
        """Make these the pods of the Deployment."""
        for key in [key for key in self.api.objects if key[0] == "Pod"]:
            del self.api.objects[key]
        for number in range(ready + unready):
            pod = live_pod()
            pod["metadata"] |= {"name": f"{NAME}-7cc6f4b5f7-{number}", "uid": f"uid-of-pod-{number}"}
            pod["status"]["conditions"][0]["status"] = "True" if number < ready else "False"
            self.api.put(pod)

    def show(self) -> None:
        for kind, store, decode in (
            ("Memcached", self.caches.memcacheds, memcached_record),
            ("Deployment", self.caches.deployments, deployment_record),
            ("Pod", self.caches.pods, pod_record),
        ):
            held = [object_ for key, object_ in self.api.objects.items() if key[0] == kind]
            cast("Store[Any]", store).replace([decode(json.dumps(each).encode()) for each in held], set())

    async def reconcile(self) -> Result:
        """Reconcile, and forget the requests that came before."""
        self.api.calls.clear()
        return await self.reconciler.reconcile(KEY)

    async def refused(self, verb: str, error: KubeError) -> Result:
        """Let the API server refuse `verb` on the Deployment once, have that reported, and pass the time of a retry."""
        self.api.refuse(verb, "Deployment", error)
        await self.reconcile()
        self.clock.advance(DELAY_S)
        result = await self.reconcile()
        self.clock.advance(SLOW_RETRY_S)
        return result

    async def settle(self) -> None:
        """Reconcile, with a watch that keeps up and after the delay of the status, until nothing is sent."""
        for _ in range(6):
            self.show()
            self.clock.advance(DELAY_S)
            result = await self.reconcile()
            if not self.api.calls and result in (DONE, SLOWLY):
                self.recorder.events.clear()
                return
        raise AssertionError(f"it never settles: {self.api.verbs()}")

    @property
    def deployment(self) -> Json:
        return self.api.objects["Deployment", NAMESPACE, NAME]

    @property
    def status(self) -> Json:
        status: Json = self.api.objects["Memcached", NAMESPACE, NAME]["status"]
        return status

    def condition(self, type_: str) -> tuple[str, str]:
        (condition,) = [each for each in self.status["conditions"] if each["type"] == type_]
        return condition["status"], condition["reason"]

    def message(self, type_: str) -> str:
        (message,) = [each["message"] for each in self.status["conditions"] if each["type"] == type_]
        assert isinstance(message, str)
        return message
