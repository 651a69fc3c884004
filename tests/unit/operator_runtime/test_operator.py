"""The parts of an operator while it is set up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client import Counter
from prometheus_client.metrics_core import GaugeMetricFamily

from operator_runtime import ObjectKey, Operator, Program, Result, plain
from operator_runtime.owned.contention import REPAIRS
from tests.unit.operator_runtime.client.client_support import client_of
from tests.unit.operator_runtime.controller.test_builder import SHELLS, begun, some
from tests.unit.operator_runtime.operator_support import settings
from tests.unit.operator_runtime.series import series

CONFIG_MAPS = plain("v1", "ConfigMap", "configmaps")
PROGRAM = Program("my-own-shell", "1.2.3", leader_election_id="a9b2e162.jgato.io")


def operator_of() -> Operator:
    return Operator(settings(), PROGRAM, client_of("https://api.invalid"))


async def reconcile(key: ObjectKey) -> Result:
    return Result()


def test_metrics_of_an_authors_own_are_shown_beside_the_controllers() -> None:
    operator = operator_of()
    operator.controller("shell", SHELLS, reconcile)
    Counter("shells_opened", "Shells that were opened.", ("namespace",), registry=operator.metrics).labels("shop").inc()
    operator.metrics.add(lambda: [GaugeMetricFamily("shells_open", "Shells that are open.", value=3)])
    found = series(operator.metrics.collect())
    assert (found["shells_opened_total"], found["shells_open"]) == ({("shop",): 1}, {(): 3})
    assert found["workqueue_depth"] == {("shell", "shell", "0"): 0}


def test_another_path_has_metrics_of_its_own_and_the_same_path_the_same() -> None:
    parts = operator_of()
    shops = parts.metrics_at("/metrics/shops")
    assert shops is parts.metrics_at("/metrics/shops")
    assert shops is not parts.metrics
    assert parts.metrics_at("/metrics") is parts.metrics
    with pytest.raises(ValueError, match="must begin with /"):
        parts.metrics_at("shops")


def test_an_operator_without_a_controller_says_so_and_others_have_workers(caplog: pytest.LogCaptureFixture) -> None:
    operator_of().finish()
    assert "has no controller and will do nothing" in caplog.text
    caplog.clear()
    busy = operator_of()
    busy.controller("few", SHELLS, reconcile)
    busy.controller("many", SHELLS, reconcile, workers=7)
    busy.finish()
    assert caplog.text == ""
    assert {each.name: vars(each)["workers"] for each in busy.manager._runnables} == {"few": 2, "many": 7}


def test_a_controller_of_no_worker_or_no_coroutine_function_is_refused() -> None:
    def plain(key: ObjectKey) -> Any:
        return Result()

    with pytest.raises(TypeError, match="controller 'shell' is not a coroutine function: write `async def`"):
        operator_of().controller("shell", SHELLS, plain)
    with pytest.raises(ValueError, match="workers is 0: a controller needs at least 1"):
        operator_of().controller("shell", SHELLS, reconcile, workers=0)


class Clockwork:
    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.ran = False

    async def run(self) -> None:
        self.ran = True
        await self.stopping.wait()

    def stop(self) -> None:
        self.stopping.set()


async def test_a_service_of_an_authors_own_runs_and_a_path_of_metrics_that_comes_too_late_is_told() -> None:
    operator, clockwork, stop = operator_of(), Clockwork(), asyncio.Event()
    shops = operator.metrics_at("/metrics/shops")
    operator.add_service("clockwork", clockwork)
    stop.set()
    async with asyncio.timeout(60):
        await operator.finish().run(stop)
    assert clockwork.ran
    assert clockwork.stopping.is_set()
    assert operator.metrics_at("/metrics/shops") is shops
    with pytest.raises(RuntimeError, match="set-up function"):
        operator.metrics_at("/metrics/clerks")


@pytest.mark.parametrize("owned_first", [True, False])
async def test_what_is_owned_holds_a_controller_back_whichever_is_added_first(owned_first: bool) -> None:
    operator, key = operator_of(), ObjectKey("shop", "a")
    if owned_first:
        operator.owned(SHELLS, CONFIG_MAPS)
    operator.controller("shell", SHELLS, reconcile)
    if not owned_first:
        operator.owned(SHELLS, CONFIG_MAPS)
    controller, shell = begun(operator), some(SHELLS, "a")
    operator.informer(SHELLS).put(shell)
    for _ in range(REPAIRS):
        assert controller.delay_s(key) == 0.0
        async with operator.owners(SHELLS).repair(shell, CONFIG_MAPS, key, "deleted"):
            pass
    assert controller.delay_s(key) > 0.0
    assert (await controller.reconcile(key)).requeue_after_s is not None
