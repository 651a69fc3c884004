"""One Memcached and all that its reconciler stands on: an API server in memory, real stores, and a fake clock.

`World.show` is the watch: it brings the stores to what the server has. Until it is called, they are behind.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import msgspec

from memcached_operator.api.names import USER_ID
from memcached_operator.core.objects.memory_annotation import Memory
from memcached_operator.core.objects.workload import DEPLOYMENT
from memcached_operator.core.objects.workload_types import WorkloadManifest
from memcached_operator.core.observed.caches import DEPLOYMENTS, MEMCACHEDS, PODS, STATEFUL_SETS, Caches
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.reconciler import MemcachedReconciler
from memcached_operator.core.status.status_writer import SLOW_RETRY_S
from memcached_operator.features.handover.server_state import PEERS, PeersPort
from memcached_operator.owned_kinds import AUXILIARY
from memcached_operator.servers.server_connection import Failure
from memcached_operator.servers.stats_cache import StatsCache
from memcached_operator.settings import Settings
from operator_runtime import (
    Client,
    EnsureResult,
    Keeper,
    Kind,
    ObjectKey,
    Operator,
    Owners,
    Result,
    StaleCache,
    Store,
    UnreadableObject,
)
from operator_runtime.cache.own_writes import OwnWrites
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import KubeError
from operator_runtime.controller.controller import ReconcileContext, current_reconcile
from operator_runtime.events.event_bodies import ObjectReference
from operator_runtime.events.recorder import EventRecorder
from operator_runtime.testing.clock import FakeClock
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.fake_api import FakeApi
from tests.unit.memcached_operator.support import IMAGE, NAME, NAMESPACE, UID, live_pod

VANISHED_RETRY_S = StaleCache("").retry_s
KEY = ObjectKey(NAMESPACE, NAME)
# As the API server fills it in.
UNSEEN: Json = {
    "conditions": [
        {
            "type": type_, "status": "Unknown", "reason": "Pending", "message": "Waiting for the operator.",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }
        for type_ in ("Ready", "Available", "Progressing", "Degraded", "Serving", "Discouraged")
    ]
}  # fmt: skip
DELAY_S = 0.25
PATCH, CREATE = "strategic_merge_patch Deployment", "create Deployment"
GET_DEPLOYMENT, GET_MEMCACHED = "get Deployment", "get Memcached"
WRITE_STATUS = "merge_patch/status Memcached"
DONE = Result()
# Nothing stands beside the servers.
BARE = {"service": {"type": "Disabled"}, "disruptionBudget": {"maxUnavailable": "100%"}}
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


class Parts:
    """What the reconciler takes of an operator, with a clock that the test moves."""

    def __init__(self, client: Client, events: EventRecorder, stores: dict[Kind[Any], Store[Any]], clock: FakeClock):
        self.client, self.own_namespace = client, ""
        self.events = events
        self.stores = stores
        self.of_memcacheds = Owners(client, events, MEMCACHEDS, stores[MEMCACHEDS], clock=clock)

    def owners(self, kind: Kind[Any]) -> Owners[Any]:
        assert kind is MEMCACHEDS
        return self.of_memcacheds

    def owned(
        self, owners: Kind[Any], kind: Kind[Any], *, rules: Any, on_change: Any, **_: Any
    ) -> Keeper[Any, Any, Any]:
        return Keeper(self.owners(owners), kind, self.stores[kind], rules, on_change)


class World:
    """One Memcached, the API server that holds it, and the operator's parts around its reconciler."""

    def __init__(
        self,
        *,
        finalizer: bool = False,
        user_id: int | None = USER_ID,
        queried: bool = False,
        api: FakeApi | None = None,
        peers_port: PeersPort = PEERS,
    ) -> None:
        self.clock = FakeClock()
        self.api = api or FakeApi()
        self.recorder = Recorder()
        self.limits_set: list[tuple[str, int]] = []
        self.disks_from: list[int | None] = []
        self.set_limit_failure: Failure | None = None
        self.woken: list[ObjectKey] = []
        self.stats_cache = StatsCache() if queried else None
        of_kinds: dict[Kind[Any], Store[Any]] = {DEPLOYMENTS: Store()}
        auxiliary = {each: of_kinds.setdefault(each.kind, Store()) for each in AUXILIARY}
        self.caches = Caches(Store(), of_kinds[DEPLOYMENTS], Store(), Store(), auxiliary)
        self.caches.index()
        self.stores: dict[Kind[Any], Store[Any]] = {
            MEMCACHEDS: self.caches.memcacheds,
            DEPLOYMENTS: self.caches.deployments,
            STATEFUL_SETS: self.caches.stateful_sets,
            PODS: self.caches.pods,
            **{each.kind: store for each, store in self.caches.auxiliary.items()},
        }
        stores = self.stores
        self.own_writes = OwnWrites(clock=self.clock)
        for kind in stores.keys() - {PODS}:
            self.own_writes.observe(kind.resource.qualified_name, stores[kind])
        client = Client(
            cast(ApiClient, self.api),
            field_manager="test-manager",
            own_writes_of=lambda _: self.own_writes,
            stores_of=lambda kind: [stores[kind]] if kind in stores else [],
        )
        self.parts = Parts(client, cast(EventRecorder, self.recorder), stores, self.clock)
        self.owners = self.parts.of_memcacheds
        self.reconciler = MemcachedReconciler(
            cast(Operator, self.parts),
            self.caches,
            Settings(
                memcached_image=IMAGE,
                memcached_user_id=user_id,
                status_interval_ms=int(DELAY_S * 1000),
                finalizer=finalizer,
            ),
            set_limit=self.set_limit,
            enqueue=self.woken.append,
            peers_port=peers_port,
            stats_cache=self.stats_cache,
            clock=self.clock,
            utc_now=lambda: datetime.fromtimestamp(1_800_000_000 + self.clock.now, UTC),
        )

    def wait_s(self, key: ObjectKey) -> float:
        return self.own_writes.put_off_s(key) or self.owners.wait_s(key)

    async def set_limit(self, pod: PodRecord, memory: Memory) -> Failure | None:
        """Record the limit that a memcached takes, unless `set_limit_failure` is set."""
        if not self.set_limit_failure:
            self.limits_set.append((pod.address, memory.mib))
            self.disks_from.append(memory.disk_from)
        return self.set_limit_failure

    def memcached(self, **spec: Any) -> Json:
        """Create the Memcached, or change its specification; with nothing beside its servers, if it does not say."""
        fresh: Json = {
            "kind": "Memcached",
            "metadata": {"name": NAME, "namespace": NAMESPACE, "uid": UID, "generation": 0},
            "status": copy.deepcopy(UNSEEN),
        }
        memcached = self.api.objects.get(("Memcached", NAMESPACE, NAME), fresh)
        memcached["metadata"]["generation"] += 1
        memcached["spec"] = BARE | spec
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
        held: dict[str, list[Json]] = defaultdict(list)
        for (name, *_), object_ in self.api.objects.items():
            held[name].append(object_)
        for kind, store in self.stores.items():
            records, unreadable = [], set()
            for each in held[kind.resource.kind]:
                try:
                    records.append(kind.decode(msgspec.json.encode(each)))
                except UnreadableObject:
                    unreadable.add(ObjectKey(each["metadata"]["namespace"], each["metadata"]["name"]))
            store.replace(records, unreadable)

    async def reconcile_shown(self) -> Result:
        """Reconcile once the watch has kept up."""
        self.show()
        return await self.reconcile()

    async def reconcile(self, *, after_s: float = 0.0) -> Result:
        """Reconcile as the controller does after a while, and forget the requests that came before."""
        self.clock.advance(after_s)
        self.api.calls.clear()
        token = current_reconcile.set(ReconcileContext("memcached", KEY, 1))
        try:
            return await self.owners.reconcile(KEY, self.reconciler.reconcile)
        except StaleCache as error:
            return Result(requeue_after_s=error.retry_s)
        finally:
            current_reconcile.reset(token)

    async def keep(self, desired: WorkloadManifest) -> EnsureResult[WorkloadRecord]:
        """Keep the Memcached's Deployment, and nothing else."""
        memcached = self.caches.memcacheds.get(KEY)
        assert memcached is not None
        keeper = self.parts.owned(MEMCACHEDS, DEPLOYMENTS, rules=DEPLOYMENT.rules, on_change=lambda *_: None)
        return cast("EnsureResult[WorkloadRecord]", await keeper.ensure(memcached, desired))

    def repairs_counted(self) -> dict[str, float]:
        """How often which field was put right that somebody else had changed."""
        family, *_ = self.reconciler.families()
        return {sample.labels["field"]: sample.value for sample in family.samples if sample.value}

    async def refused(self, verb: str, error: KubeError) -> Result:
        """Let the API server refuse `verb` on the Deployment once, have that reported, and pass the time of a retry."""
        self.api.refuse(verb, "Deployment", error)
        await self.reconcile()
        result = await self.reconcile(after_s=DELAY_S)
        self.clock.advance(SLOW_RETRY_S)
        return result

    async def settle(self) -> None:
        """Reconcile, with a watch that keeps up and after the delay of the status, until nothing is sent."""
        for _ in range(6):
            self.show()
            result = await self.reconcile(after_s=DELAY_S)
            if not self.api.calls and result in (DONE, SLOWLY):
                self.recorder.events.clear()
                return
        raise AssertionError(f"it never settles: {self.api.verbs()}")

    async def writes(self, reconciles: int = 5) -> list[str]:
        """What is sent but reads, with a watch that keeps up and after the delay of the status."""
        sent = []
        for _ in range(reconciles):
            self.show()
            await self.reconcile(after_s=DELAY_S)
            sent += [each for each in self.api.verbs() if not each.startswith("get ")]
        return sent

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
