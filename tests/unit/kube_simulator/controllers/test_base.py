"""The queue of a controller: nothing twice, nothing lost, and what fails is tried again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from kube_simulator.controllers.base import Controller, Key, own_key
from kube_simulator.errors import ApiError
from kube_simulator.store.store import Store
from tests.unit.kube_simulator.controllers.world import turns

DEADLINE_S = 60.0
KEY = ("shop", "a")


@asynccontextmanager
async def running(reconcile: Callable[[Key], Awaitable[None]], **options: Any) -> AsyncIterator[Controller[Key]]:
    controller: Controller[Key] = Controller("test", reconcile, **options)
    controller.start()
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield controller
    finally:
        await controller.stop()


async def drained(controller: Controller[Key]) -> None:
    await turns(lambda: controller.idle)


async def test_a_key_that_is_added_twice_is_done_once() -> None:
    done: list[Key] = []

    async def reconcile(key: Key) -> None:
        done.append(key)

    async with running(reconcile) as controller:
        for key in (KEY, ("shop", "b"), KEY):
            controller.add(key)
        await drained(controller)
    assert done == [KEY, ("shop", "b")]


async def test_a_key_that_is_added_while_it_is_done_is_done_again_and_never_twice_at_once() -> None:
    gate, entered = asyncio.Event(), asyncio.Event()
    at_once: list[int] = []
    busy = 0

    async def reconcile(_key: Key) -> None:
        nonlocal busy
        busy += 1
        at_once.append(busy)
        entered.set()
        await gate.wait()
        busy -= 1

    async with running(reconcile, workers=3) as controller:
        controller.add(KEY)
        await entered.wait()
        controller.add(KEY)
        controller.add(KEY)
        gate.set()
        await drained(controller)
    assert at_once == [1, 1]


async def test_one_that_waits_does_not_hold_up_the_others() -> None:
    done = asyncio.Event()

    async def reconcile(key: Key) -> None:
        if key == KEY:
            await asyncio.Event().wait()
        done.set()

    async with running(reconcile, workers=2) as controller:
        controller.add(KEY)
        controller.add(("shop", "b"))
        await done.wait()


async def test_what_is_refused_is_tried_again_until_it_succeeds() -> None:
    attempts, succeeded = 0, asyncio.Event()

    async def reconcile(_key: Key) -> None:
        nonlocal attempts
        attempts += 1
        if attempts < 4:
            raise ApiError(409, "Conflict", "again")
        succeeded.set()

    async with running(reconcile) as controller:
        controller.add(KEY)
        await succeeded.wait()
    assert attempts == 4


async def test_what_has_vanished_is_not_tried_again() -> None:
    attempts = 0

    async def reconcile(_key: Key) -> None:
        nonlocal attempts
        attempts += 1
        raise ApiError(404, "NotFound", "gone")

    async with running(reconcile) as controller:
        controller.add(KEY)
        await drained(controller)
        assert not controller._later
    assert attempts == 1


async def test_a_fault_of_ours_is_said_aloud_and_stops_nobody_else() -> None:
    said: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: said.append(context))
    done: list[Key] = []

    async def reconcile(key: Key) -> None:
        if key == KEY:
            raise KeyError("spec")
        done.append(key)

    async with running(reconcile, workers=1) as controller:
        controller.add(KEY)
        controller.add(("shop", "b"))
        await drained(controller)
    [context] = said
    assert (type(context["exception"]), "('shop', 'a')" in context["message"]) == (KeyError, True)
    assert done == [("shop", "b")]


async def test_what_is_to_be_done_later_is_done_once_and_at_the_earlier_time() -> None:
    done: list[float] = []
    loop = asyncio.get_running_loop()
    begun = loop.time()
    twice = asyncio.Event()

    async def reconcile(_key: Key) -> None:
        done.append(loop.time() - begun)
        twice.set()

    async with running(reconcile) as controller:
        controller.add_after(KEY, 3600)
        controller.add_after(KEY, 0.01)
        controller.add_after(KEY, 1800)
        await twice.wait()
        assert not controller._later
    assert len(done) == 1
    assert done[0] >= 0.009


async def test_it_begins_with_all_there_is_follows_what_changes_and_stops() -> None:
    store, done = Store(), list[str]()

    async def reconcile(key: Key) -> None:
        done.append(key[1])

    def put(name: str) -> None:
        store.put("configmaps", {"metadata": {"namespace": "shop", "name": name}})

    controller: Controller[Key] = Controller("test", reconcile)
    controller.watch(store, "configmaps", own_key)
    put("before")
    controller.start()
    await drained(controller)
    put("during")
    await drained(controller)
    await controller.stop()
    put("after")
    assert (done, controller.idle) == (["before", "during"], True)
    controller.start()
    await drained(controller)
    await controller.stop()
    assert sorted(done[2:]) == ["after", "before", "during"]
