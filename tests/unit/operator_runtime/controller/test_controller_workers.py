"""The controller's workers: how many, how they share the loop, how they stop and how they fail."""

from __future__ import annotations

import asyncio

import pytest

from operator_runtime.controller.controller import Controller, ControllerConfig, Result
from tests.unit.operator_runtime.controller.controller_support import DEADLINE_S, Reconciler, never, running


async def test_as_many_reconciles_run_at_once_as_there_are_workers() -> None:
    release = asyncio.Event()

    async def hold() -> Result:
        await release.wait()
        return Result()

    reconciler = Reconciler(hold, hold, hold)
    async with running(controller := Controller("memcached", reconciler, config=ControllerConfig(workers=2))):
        for key in "abc":
            controller.queue.add(key)
        await reconciler.wait_for_calls(2)
        assert controller.queue.core.processing == 2
        assert len(controller.queue.core) == 1
        release.set()
        await reconciler.wait_for_calls(3)


async def test_reconciles_that_never_wait_let_the_loop_breathe() -> None:
    seconds = 0.0

    def clock() -> float:
        nonlocal seconds
        seconds += 0.001
        return seconds

    async def reconcile(key: str) -> Result:
        controller.queue.add(key)
        return Result()

    async with running(controller := Controller("memcached", reconcile, clock=clock)):
        controller.queue.add("a")
        for _ in range(10):
            await asyncio.sleep(0)


async def test_a_stop_lets_the_work_finish_and_takes_no_more_keys() -> None:
    release, finished = asyncio.Event(), []

    async def hold() -> Result:
        await release.wait()
        finished.append(True)
        return Result()

    reconciler = Reconciler(hold)
    controller = Controller("memcached", reconciler, config=ControllerConfig(workers=1))
    run = asyncio.create_task(controller.run())
    controller.queue.add("a")
    controller.queue.add("b")
    await reconciler.wait_for_calls(1)
    controller.stop()
    await asyncio.sleep(0)
    assert not run.done()
    release.set()
    await asyncio.wait_for(run, DEADLINE_S)
    await asyncio.wait_for(controller.run(), DEADLINE_S)
    assert (finished, reconciler.calls) == ([True], ["a"])


async def test_work_that_outlasts_the_drain_is_cancelled_and_said(caplog: pytest.LogCaptureFixture) -> None:
    reconciler = Reconciler(never)
    controller = Controller("memcached", reconciler, config=ControllerConfig(drain_timeout_s=0.005))
    async with running(controller):
        controller.queue.add("a")
        await reconciler.wait_for_calls(1)
    assert "memcached: cancelled 1 reconciles that had not finished within 0.005 s of the stop" in caplog.text


@pytest.mark.parametrize(
    ("shut_down", "error", "said"),
    [(False, LookupError, "no such store"), (True, RuntimeError, "'memcached' found its queue shut down")],
)
async def test_a_worker_that_ends_unexpectedly_or_finds_its_queue_shut_down_ends_the_run(
    shut_down: bool, error: type[Exception], said: str
) -> None:
    def broken(key: str) -> float:
        raise LookupError("no such store")

    controller = Controller("memcached", Reconciler(), delay_s=broken)
    controller.queue.add("a")
    if shut_down:
        controller.queue.shut_down()
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(controller.run(), DEADLINE_S)
    assert caught.group_contains(error, match=said)


async def test_a_cancelled_run_takes_its_workers_along() -> None:
    reconciler = Reconciler(never)
    controller = Controller("memcached", reconciler)
    run = asyncio.create_task(controller.run())
    controller.queue.add("a")
    await reconciler.wait_for_calls(1)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(run, DEADLINE_S)
    assert controller.queue.core.processing == 0
