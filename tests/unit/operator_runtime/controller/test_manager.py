from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from operator_runtime.cache.reflector import Reflector
from operator_runtime.cache.store import Store
from operator_runtime.client.errors import Forbidden
from operator_runtime.client.resources import DEPLOYMENTS, PODS, Resource
from operator_runtime.controller import manager as manager_module
from operator_runtime.controller.manager import Manager, UnexpectedEndError
from operator_runtime.testing.waiting import async_until
from tests.unit.operator_runtime.running import DEADLINE_S, settle

SERVICES = Resource("", "v1", "services", "Service")


class Record(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    uid: str
    resource_version: str


class Watch(Reflector[Record]):
    """A reflector whose snapshot comes when the test says so."""

    def __init__(self, resource: Resource, story: list[str], *, synced: bool = True) -> None:
        nobody: Any = None
        super().__init__(nobody, resource, lambda raw: Record("", "", "", ""), Store(), namespace="here")
        self.story = story
        self.ends = asyncio.Event()
        if synced:
            self.synced.set()

    async def run(self) -> None:
        self.story.append(f"{self.resource.plural} watched")
        try:
            await self.ends.wait()
        finally:
            self.story.append(f"{self.resource.plural} no longer watched")

    def refuse(self, error: Forbidden) -> None:
        """Its first list is refused."""
        self.refusal = error
        self._answered.set()


class Part:
    """A controller or a service that tells of itself; `fate` ends it: None quietly, an exception with it."""

    def __init__(self, name: str, story: list[str]) -> None:
        self.name = name
        self.story = story
        self.began = asyncio.Event()
        self.fate: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        self.story.append(f"{self.name} runs")
        self.began.set()
        try:
            await self.fate
        finally:
            self.story.append(f"{self.name} ended")

    def stop(self) -> None:
        self.story.append(f"{self.name} is asked to stop")
        if not self.fate.done():
            self.fate.set_result(None)


@pytest.fixture(autouse=True)
def _pace() -> Iterator[None]:
    """The manager sets the collector's pace, which is for a process that ends with it."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.fixture
def story() -> list[str]:
    """What happened, in order."""
    return []


async def run(manager: Manager, stop: asyncio.Event) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await manager.run(stop)


@pytest.mark.parametrize("elected", [True, False])
async def test_a_stop_before_the_sync_or_the_election_ends_it_without_any_controller_having_run(
    story: list[str], elected: bool
) -> None:
    manager, stop = Manager(None if elected else Election().elected), asyncio.Event()
    manager.add_runnable(Part("controller", story))
    manager.add_reflector(Watch(PODS, story, synced=not elected))
    running = asyncio.create_task(run(manager, stop))
    await settle()
    stop.set()
    await running
    assert story == ["pods watched", "pods no longer watched"]


async def test_a_late_sync_is_said_once_and_again_when_fewer_are_missing(
    story: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(manager_module, "_SYNC_PATIENCE_S", 0.0)
    manager, stop = Manager(), asyncio.Event()
    watches = [Watch(PODS, story, synced=False), Watch(DEPLOYMENTS, story, synced=False)]
    for watch in watches:
        manager.add_reflector(watch)
    logged = [
        "nothing is reconciled yet: still waiting for the first list of "
        "deployments.apps in namespace here, pods in namespace here",
        "nothing is reconciled yet: still waiting for the first list of deployments.apps in namespace here",
    ]
    running = asyncio.create_task(run(manager, stop))
    await async_until("it waits without a word", lambda: bool(caplog.messages))
    await settle()
    assert caplog.messages == logged[:1]
    watches[0].synced.set()
    await async_until("it does not say it again", lambda: len(caplog.messages) > 1)
    await settle()
    assert caplog.messages == logged
    stop.set()
    await running


async def test_an_optional_cache_is_waited_for_until_it_is_there_or_refused(
    story: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "operator_runtime")
    manager, stop = Manager(), asyncio.Event()
    controller = Part("controller", story)
    manager.add_runnable(controller)
    needed, there, refused = (Watch(each, story, synced=each is PODS) for each in (PODS, DEPLOYMENTS, SERVICES))
    for watch in (needed, there, refused):
        watch.optional = watch is not needed
        manager.add_reflector(watch)
    assert manager.awaited == [needed]
    running = asyncio.create_task(run(manager, stop))
    there.complete("1")
    await settle()
    assert not controller.began.is_set()
    assert not manager.settled
    refused.refuse(Forbidden(403, "Forbidden", "services is forbidden"))
    await controller.began.wait()
    assert manager.settled
    stop.set()
    await running
    assert caplog.messages == [
        "caches are in sync: pods in namespace here, deployments.apps in namespace here; going on without services in "
        "namespace here (403 Forbidden: services is forbidden)"
    ]


async def test_two_controllers_of_one_name_are_refused(story: list[str]) -> None:
    manager = Manager()
    manager.add_runnable(Part("memcached", story))
    with pytest.raises(ValueError, match="two controllers are named 'memcached': give each a name of its own"):
        manager.add_runnable(Part("memcached", story))


@pytest.mark.parametrize(
    ("which", "how"),
    [
        ("controller", "controller ended by itself"),
        ("recorder", "recorder ended by itself"),
        ("watch", "watch of pods in namespace here ended by itself"),
    ],
)
async def test_whatever_ends_although_nobody_asked_it_to_ends_the_whole_and_everything_else_with_it(
    story: list[str], which: str, how: str
) -> None:
    manager = Manager()
    controller, recorder, watch = Part("controller", story), Part("recorder", story), Watch(PODS, story)
    manager.add_runnable(controller)
    manager.add_runnable(other := Part("other", story))
    manager.add_service("recorder", recorder)
    manager.add_reflector(watch)
    running = asyncio.create_task(run(manager, asyncio.Event()))
    await other.began.wait()
    {
        "controller": lambda: controller.fate.set_result(None),
        "recorder": lambda: recorder.fate.set_result(None),
        "watch": watch.ends.set,
    }[which]()
    with pytest.RaisesGroup(pytest.RaisesExc(UnexpectedEndError, match=how), flatten_subgroups=True):
        await running
    assert {"controller ended", "other ended", "recorder ended", "pods no longer watched"} <= set(story)


@pytest.mark.parametrize("of_the_election", [False, True])
async def test_an_exception_is_passed_on(story: list[str], of_the_election: bool) -> None:
    election = Election()
    manager = Manager(election.elected)
    manager.add_runnable(controller := Part("controller", story))
    (election.won if of_the_election else controller.fate).set_exception(RuntimeError("a bug"))
    if not of_the_election:
        election.won.set_result(None)
    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="a bug"), flatten_subgroups=True):
        await run(manager, asyncio.Event())


class Election:
    """Is won when the test says so; an error of the test's loses it."""

    def __init__(self) -> None:
        self.won: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def elected(self) -> None:
        await self.won


async def test_workers_wait_for_leadership_with_warm_caches_and_services_do_not(story: list[str]) -> None:
    election, stop = Election(), asyncio.Event()
    manager = Manager(election.elected)
    manager.add_runnable(controller := Part("controller", story))
    manager.add_service("recorder", recorder := Part("recorder", story))
    manager.add_reflector(Watch(PODS, story))
    running = asyncio.create_task(run(manager, stop))
    await recorder.began.wait()
    await settle()
    assert story == ["recorder runs", "pods watched"]
    election.won.set_result(None)
    await controller.began.wait()
    stop.set()
    await running
    ends = ["controller ended", "recorder is asked to stop", "pods no longer watched", "recorder ended"]
    assert story[2:] == ["controller runs", "controller is asked to stop", *ends]


async def test_what_comes_when_it_runs_already_is_refused_as_nobody_would_run_it(story: list[str]) -> None:
    manager, stop, part = Manager(), asyncio.Event(), Part("late", story)
    manager.add_runnable(first := Part("first", story))
    running = asyncio.create_task(run(manager, stop))
    await first.began.wait()
    late: list[Callable[[], None]] = [
        lambda: manager.add_reflector(Watch(PODS, story)),
        lambda: manager.add_runnable(part),
        lambda: manager.add_service("late", part),
    ]
    for add in late:
        with pytest.raises(RuntimeError, match=r"^the .* comes too late: add it in the set-up function, as the "):
            add()
    stop.set()
    await running
    assert "late runs" not in story
