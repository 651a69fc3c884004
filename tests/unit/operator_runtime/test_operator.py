"""The parts of an operator while it is set up."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from operator_runtime import Allowed, ConfigWithWebhooks, Family, ObjectKey, Operator, Program, Result, gauge
from operator_runtime.operator import election_config
from operator_runtime.telemetry.metrics import Metrics
from tests.unit.operator_runtime.client.client_support import client_of
from tests.unit.operator_runtime.controller.test_builder import SHELLS, begun, some
from tests.unit.operator_runtime.operator_support import config

PROGRAM = Program("my-own-shell", "1.2.3", leader_election_id="a9b2e162.jgato.io")


def operator_of(metrics: Metrics | None = None) -> Operator:
    return Operator(config(), PROGRAM, client_of("https://api.invalid"), metrics=metrics)


async def reconcile(key: ObjectKey) -> Result:
    return Result()


def names(metrics: Metrics) -> set[str]:
    return {family.name for family in metrics.families()}


def test_metrics_of_an_authors_own_are_shown_beside_the_controllers() -> None:
    metrics = Metrics()
    operator = operator_of(metrics)
    operator.controller("shell", SHELLS, reconcile)

    def shells() -> list[Family]:
        return [gauge("shells_open", "Shells that are open.", (), [((), 3)])]

    operator.add_metrics(shells)
    assert {"shells_open", "workqueue_depth", "controller_runtime_reconcile_total"} <= names(metrics)


def test_a_source_of_metrics_that_fails_is_named_and_keeps_nothing_else_from_being_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics = Metrics()
    operator = operator_of(metrics)

    def shells() -> list[Family]:
        raise LookupError("no shells yet")

    operator.add_metrics(shells)
    operator.controller("shell", SHELLS, reconcile)
    for _ in range(3):
        assert "workqueue_depth" in names(metrics)
    (line,) = caplog.messages
    assert "shells (" in line
    assert line.endswith(" failed for a scrape: LookupError: no shells yet. Its metrics are missing.")


async def test_a_source_of_metrics_that_would_have_to_be_awaited_is_refused() -> None:
    async def shells() -> list[Family]:
        return []

    with pytest.raises(TypeError, match=r"^the source of metrics is a coroutine function, .*shells \("):
        operator_of().add_metrics(shells)  # type: ignore[arg-type]


def test_where_no_metrics_are_served_none_are_kept() -> None:
    operator = operator_of()
    operator.add_metrics(lambda: pytest.fail("nobody asks"))
    operator.controller("shell", SHELLS, reconcile)
    assert vars(begun(operator))["_observer"] is None


def test_a_controller_has_the_workers_that_its_author_gives_it_or_else_the_settings() -> None:
    operator = operator_of()
    operator.controller("few", SHELLS, reconcile)
    operator.controller("many", SHELLS, reconcile, workers=7)
    assert {each.name: vars(each)["config"].workers for each in operator.manager._runnables} == {"few": 2, "many": 7}


def test_a_key_that_wrote_is_not_looked_at_before_the_cache_has_shown_it() -> None:
    operator = operator_of()
    operator.controller("shell", SHELLS, reconcile)
    controller, shells = begun(operator), operator.informer(SHELLS)
    shells.put(some(SHELLS, "a"))
    own = operator._own_writes["shell"]
    own.expect(ObjectKey("shop", "a"), SHELLS.resource.qualified_name, "uid-a", "2")
    ready = vars(controller)["_ready"]
    assert ready(ObjectKey("shop", "a")) > 0
    shells.put(some(SHELLS, "a", 2))
    assert ready(ObjectKey("shop", "a")) == 0.0


def test_webhooks_take_settings_for_them() -> None:
    with pytest.raises(TypeError, match=r"no settings for webhooks: give run\(settings=WebhookSettings"):
        _ = operator_of().webhooks


async def test_webhooks_are_served_where_the_settings_say_and_run_beside_everything(tmp_path: Path) -> None:
    plain = msgspec.structs.asdict(config())
    settled = ConfigWithWebhooks(**plain, webhook_bind_address="127.0.0.1:0", webhook_cert_dir=str(tmp_path))
    operator = Operator(settled, PROGRAM, client_of("https://api.invalid"))

    async def sane(request: object) -> Allowed:
        return Allowed()

    operator.webhooks.validate("/validate", sane)
    assert operator.webhooks.paths == ("/validate",)
    assert "webhook server" in [name for name, _ in operator.finish()._services]


def test_the_lock_of_its_leader_is_the_settings_or_bears_the_operators_name() -> None:
    named = election_config(config(leader_elect=True, leader_elect_id="a9b2e162.jgato.io"), PROGRAM)
    unnamed = election_config(config(leader_elect=True), PROGRAM)
    assert named is not None
    assert unnamed is not None
    assert (named.name, unnamed.name) == ("a9b2e162.jgato.io", "shells-lock")
    assert named.field_manager == "my-own-shell"
    assert election_config(config(), PROGRAM) is None


def test_an_operator_that_has_nothing_to_do_says_so(caplog: pytest.LogCaptureFixture) -> None:
    operator_of().finish()
    assert "has no controller and will do nothing" in caplog.text
    caplog.clear()
    busy = operator_of()
    busy.controller("shell", SHELLS, reconcile)
    busy.finish()
    assert caplog.text == ""


async def test_a_service_of_an_authors_own_runs_from_the_start_to_the_end() -> None:
    class Clockwork:
        def __init__(self) -> None:
            self.stopping = asyncio.Event()
            self.ran = False

        async def run(self) -> None:
            self.ran = True
            await self.stopping.wait()

        def stop(self) -> None:
            self.stopping.set()

    operator, clockwork, stop = operator_of(), Clockwork(), asyncio.Event()
    operator.add_service("clockwork", clockwork)
    stop.set()
    async with asyncio.timeout(10):
        await operator.finish().run(stop)
    assert clockwork.ran
    assert clockwork.stopping.is_set()
