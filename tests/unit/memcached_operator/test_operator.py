"""The parts put together, fed by hand: which changes enqueue which Memcached, and with what urgency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from memcached_operator import operator
from memcached_operator.about import PROGRAM
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pod_status import NO_PROBLEM
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.settings_schema import SCHEMA
from operator_runtime.cache.own_writes import OwnWrites
from operator_runtime.cache.reflector import Reflector
from operator_runtime.cache.store import ObjectKey
from operator_runtime.controller.controller import Controller
from operator_runtime.operator import Operator
from operator_runtime.workqueue.async_queue import AsyncWorkQueue
from operator_runtime.workqueue.queue import LOW_PRIORITY
from tests.unit.operator_runtime.client.client_support import client_of

KEY = ObjectKey("shop", "sessions")


@dataclass(slots=True)
class Built:
    """The operator for some namespaces, not running; its caches are fed by `show`."""

    reflectors: dict[tuple[str, str | None], Reflector[Any]]
    controller: Controller[ObjectKey]
    own_writes: OwnWrites

    @property
    def queue(self) -> AsyncWorkQueue[ObjectKey]:
        return self.controller.queue

    def show(self, resource: str, *records: object) -> None:
        """A first list, or a later one, that holds these."""
        reflector = self.reflectors[resource, None]
        reflector.begin()
        for record in records:
            reflector.put(record)
        reflector.complete("7")

    def change(self, resource: str, record: object) -> None:
        """An event of a watch."""
        self.reflectors[resource, None].put(record)

    def remove(self, resource: str, record: object) -> None:
        """A deletion, or a departure from the selection, that a watch tells of."""
        self.reflectors[resource, None].remove(record)

    def enqueued(self) -> list[tuple[ObjectKey, int]]:
        """Which keys are due, and with what priority; empties the queue."""
        enqueued: list[tuple[ObjectKey, int]] = []
        while True:
            depth = self.queue.depth()
            key = self.queue.get_nowait()
            if key is None:
                return enqueued
            rest = self.queue.depth()
            (priority,) = (level for level, count in depth.items() if count != rest.get(level, 0))
            self.queue.done(key)
            enqueued.append((key, priority))


def build(*namespaces: str, begun: bool = True, **settings: object) -> Built:
    client = client_of("https://nowhere.invalid")
    is_observed = SCHEMA.load({"server_stats_interval_s": 0} | settings, {})
    parts = Operator(is_observed, PROGRAM, client, namespaces=namespaces)
    operator.set_up(parts, is_observed)
    manager = parts.finish()
    (controller,) = manager._runnables
    assert isinstance(controller, Controller)
    reflectors = {(each.resource.plural, each.namespace): each for each in manager.reflectors}
    assert len(reflectors) == len(manager.reflectors)
    if begun:
        controller.begin()
    return Built(reflectors, cast(Controller[ObjectKey], controller), parts._own_writes["memcached"])


def memcached(version: str = "1", *, name: str = KEY.name, spec: bytes = b'{"size":1}') -> MemcachedRecord:
    return MemcachedRecord(
        namespace=KEY.namespace, name=name, uid="u", resource_version=version, generation=1, deleting=False,
        spec=spec, status=b"",
    )  # fmt: skip


def deployment(version: str = "1", *, name: str = KEY.name, ready: bool = False) -> WorkloadRecord:
    return WorkloadRecord(
        namespace=KEY.namespace, name=name, kind="Deployment", uid="d", resource_version=version,
        owner_kind="", owner_name="", owner_uid="", made_for_uid="", deleting=False, generation=1, is_observed=ready,
        revised=False, rolled_out=False,
    )  # fmt: skip


def pod(version: str = "1", *, of: str = KEY.name, ready: bool = False) -> PodRecord:
    return PodRecord(
        namespace=KEY.namespace, name="sessions-abc-de", uid="p", resource_version=version, memcached=of,
        revision="abc", active=True, ready=ready, problem=NO_PROBLEM,
    )  # fmt: skip


@pytest.fixture
async def built() -> Built:
    """An operator for all namespaces that knows one Memcached, with everything that enqueued it dealt with."""
    built = build()
    built.show("memcacheds", memcached())
    built.enqueued()
    return built


class TestWatchedNamespaces:
    async def test_each_namespace_has_a_watch_for_each_kind(self) -> None:
        kinds = (
            *("memcacheds", "deployments", "pods", "statefulsets", "services"),
            *("poddisruptionbudgets", "networkpolicies", "configmaps"),
        )
        assert set(build("a", "b").reflectors) == {(kind, namespace) for kind in kinds for namespace in ("a", "b")}
        assert set(build().reflectors) == {(kind, None) for kind in kinds}


async def test_the_workers_are_as_many_as_the_settings_say() -> None:
    controller = vars(build(workers=3, reconcile_timeout_s=7, shutdown_timeout_s=2).controller)
    numbers = [controller[each] for each in ("workers", "_reconcile_timeout_s", "_drain_timeout_s")]
    assert numbers == [3, 7.0, 2.0]


class TestStandingBy:
    async def test_what_comes_and_goes_leaves_nothing_to_do(self) -> None:
        built = build(begun=False)
        built.show("memcacheds", memcached())
        built.change("memcacheds", memcached("2", spec=b'{"size":2}'))
        built.change("deployments", deployment())
        built.remove("memcacheds", memcached("3"))
        assert built.enqueued() == []
        built.controller.begin()
        assert built.enqueued() == []


class TestEnqueueing:
    async def test_what_a_list_brings_enqueues_with_low_priority(self) -> None:
        built = build()
        built.show("memcacheds", memcached())
        assert built.enqueued() == [(KEY, LOW_PRIORITY)]

    async def test_an_event_lifts_what_a_list_left_waiting(self) -> None:
        built = build()
        built.show("memcacheds", memcached())
        built.change("memcacheds", memcached("2", spec=b'{"size":2}'))
        assert built.enqueued() == [(KEY, 0)]

    async def test_a_deployment_of_another_name_enqueues_nothing(self, built: Built) -> None:
        built.show("deployments", deployment(name="web"))
        built.change("deployments", deployment("2", name="web", ready=True))
        built.remove("deployments", deployment("2", name="web"))
        assert built.enqueued() == []

    @pytest.mark.parametrize(
        ("resource", "made", "changed"),
        [("deployments", deployment(), deployment("2", ready=True)), ("pods", pod(), pod("2", ready=True))],
        ids=["a Deployment, by its name", "a pod, by its label"],
    )
    async def test_what_belongs_to_a_memcached_enqueues_it(
        self, built: Built, resource: str, made: object, changed: object
    ) -> None:
        for event, record in ((built.change, made), (built.change, changed), (built.remove, changed)):
            event(resource, record)
            assert built.enqueued() == [(KEY, 0)]

    async def test_a_pod_whose_label_changes_enqueues_the_one_left_and_the_one_joined(self, built: Built) -> None:
        built.show("pods", pod())
        built.enqueued()
        built.change("pods", pod("2", of="other"))
        assert sorted(built.enqueued()) == [(ObjectKey("shop", "other"), 0), (KEY, 0)]


@pytest.mark.parametrize(("interval_s", "expected"), [(30, True), (0, False)])
async def test_servers_are_asked_by_the_leader_alone_unless_that_is_switched_off(
    interval_s: int, expected: bool
) -> None:
    settings = SCHEMA.load({"server_stats_interval_s": interval_s}, {})
    parts = Operator(settings, PROGRAM, client_of("https://nowhere.invalid"))
    operator.set_up(parts, settings)
    manager = parts.finish()
    # What waits for the election, and what does not.
    assert [each.name for each in manager._runnables] == ["memcached", *(["server stats"] if expected else [])]
    assert "server stats" not in [name for name, _ in manager._services]
    assert list(parts.metrics_by_path) == ["/metrics", "/metrics/servers"]
    assert bool(list(parts.metrics_at("/metrics/servers").collect())) == expected
    assert not any(family.name == "memcached_up" for family in parts.metrics.collect())
