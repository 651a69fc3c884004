"""An operator in a test: its settings, and what becomes of a test whose operator ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress

import pytest

from operator_runtime import Operator, Program, RuntimeSettings
from operator_runtime.testing.cluster import SimulatedCluster
from operator_runtime.testing.running import OperatorEndedError, settings_of
from tests.unit.operator_runtime.http import fetched
from tests.unit.operator_runtime.testing.greetings import CRD, set_up


class Ends:
    """A service that ends when it is told to, which a service never does; or never."""

    def __init__(self, error: Exception | None = None) -> None:
        self.ended = asyncio.Event()
        self.error = error

    async def run(self) -> None:
        await self.ended.wait()
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        self.ended.set()


def serving(service: Ends) -> Callable[[Operator, RuntimeSettings], None]:
    return lambda operator, config: operator.add_service("ends", service)


async def never() -> None:
    await asyncio.Event().wait()


async def ended(running: AbstractAsyncContextManager[Operator], error: Exception | None) -> None:
    with suppress(AssertionError):
        await running.__aexit__(type(error) if error else None, error, None)


# Settings


def test_a_test_watches_all_namespaces_takes_no_port_and_no_variable_has_a_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELLS_WORKERS", "3")
    monkeypatch.setenv("SHELLS_REQUEST_TIMEOUT_S", "20")
    monkeypatch.setenv("WATCH_NAMESPACE", "elsewhere")
    settings = settings_of(Program("shells", "1"), RuntimeSettings, {"workers": 5})
    assert (settings.workers, settings.request_timeout_s, settings.watch_namespaces) == (5, 30.0, ())
    assert (settings.health_probe_bind_address, settings.metrics_bind_address) == ("0", "0")
    assert settings.operator_name == "shells"
    assert not settings.leader_elect


# Its life


async def test_it_has_its_caches_when_the_block_begins_and_is_gone_when_it_ends(simulator: SimulatedCluster) -> None:
    simulator.install(CRD)
    async with simulator.operator(set_up) as operator:
        assert all(reflector.synced.is_set() for reflector in operator.manager.reflectors)
        assert len(operator.manager.reflectors) == 2
    assert [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_what_set_up_raises_reaches_the_test(simulator: SimulatedCluster) -> None:
    def wrong(operator: Operator, settings: RuntimeSettings) -> None:
        raise TypeError("reconcile is no coroutine function")

    with pytest.raises(TypeError, match="no coroutine function"):
        async with simulator.operator(wrong):
            pytest.fail("it runs")


async def test_a_watch_of_what_is_not_served_is_said_to_be_missing(simulator: SimulatedCluster) -> None:
    with pytest.raises(AssertionError, match="still so after 0 s: the first lists of its watches have not come"):
        async with simulator.operator(set_up, deadline_s=0):
            pytest.fail("it runs")


async def test_the_end_of_an_operator_ends_the_test_with_its_error(simulator: SimulatedCluster) -> None:
    service = Ends(ZeroDivisionError("in a service"))

    async def test() -> None:
        async with simulator.operator(serving(service)):
            service.ended.set()
            await never()

    with pytest.raises(OperatorEndedError, match="operator-under-test ended before the test did") as caught:
        await test()
    assert isinstance(caught.value.__cause__, ExceptionGroup)
    assert caught.value.__cause__.subgroup(ZeroDivisionError) is not None
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_test_that_is_cancelled_stops_its_operator_and_stays_cancelled(simulator: SimulatedCluster) -> None:
    service, began = Ends(), asyncio.Event()

    async def test() -> None:
        async with simulator.operator(serving(service)):
            began.set()
            await never()

    task = asyncio.create_task(test())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert service.ended.is_set()


@pytest.mark.parametrize("error", [None, AssertionError("of the test")])
async def test_an_operator_that_is_begun_in_a_fixture_ends_in_another_task_and_with_a_test_that_fails(
    simulator: SimulatedCluster, error: Exception | None
) -> None:
    service = Ends()
    running = simulator.operator(serving(service))
    await asyncio.create_task(running.__aenter__())
    await asyncio.create_task(ended(running, error))
    assert service.ended.is_set()


async def test_an_operator_without_watches_listens_when_the_block_begins(simulator: SimulatedCluster) -> None:
    async with simulator.operator(serving(Ends()), metrics_bind_address="127.0.0.1:0") as operator:
        assert set(operator.urls) == {"metrics"}
        status, _ = await fetched(f"{operator.urls['metrics']}/metrics")
        assert status == 200
