"""The parts of an operator while it is set up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from operator_runtime import (
    Family,
    Histogram,
    ObjectKey,
    Operator,
    Program,
    Result,
    counter,
    gauge,
    histogram,
)
from operator_runtime.operator import election_config
from operator_runtime.serving.http_messages import HttpRequest
from operator_runtime.serving.scrape import Scrapes
from operator_runtime.telemetry.metrics import Kind, Metrics, Sample
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


# Without their types, which would tell most of these mistakes to whoever checks them.
GAUGE: Any = gauge
COUNTER: Any = counter
HISTOGRAM: Any = histogram


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            lambda: GAUGE("shells", "", ("of",), [((3,), 1)]),
            "the label of of the metric shells is of type int: give a text",
        ),
        (
            lambda: GAUGE("shells", "", ("of",), [((None,), 1)]),
            "the label of of the metric shells is of type NoneType: give a text",
        ),
        (lambda: GAUGE("shells", "", ("of",), [((), 1)]), "has 1 labels, ('of',), and a series of it 0 values, ()"),
        (lambda: GAUGE("shells", "", ("of",), [(("a", "b"), 1)]), "and a series of it 2 values, ('a', 'b')"),
        (lambda: GAUGE("shells", "", "of", [("a", 1)]), "labels are 'of': give several of them, such as ('of',)"),
        (lambda: GAUGE("shells", "", ("of",), [("a", 1)]), "labels are 'a': give several of them"),
        (lambda: GAUGE("shells", "", ("of",), [(("\ud800",), 1)]), "the label of of the metric shells is '\\ud800'"),
        (lambda: GAUGE("shells", "\ud800", (), []), "the help of the metric shells is '\\ud800'"),
        (lambda: GAUGE("shells", "", (3,), []), "a label of the metric shells is named 3"),
        (lambda: GAUGE(3, "", (), []), "a metric's name is 3"),
        (lambda: GAUGE("shells", "", ("of me",), []), "a label of the metric shells is named 'of me'"),
        (lambda: GAUGE("shells", "", ("__of",), []), "a label of the metric shells is named '__of'"),
        (lambda: GAUGE("shells", "", ("of", "of"), []), "a label of the metric shells is named 'of'"),
        (lambda: HISTOGRAM("shells", "", ("le",), []), "a label of the metric shells is named 'le'"),
        (lambda: GAUGE("shells-open", "", (), []), "a metric's name is 'shells-open'"),
        (lambda: GAUGE("shells", None, (), []), "the help of the metric shells is of type NoneType: give a text"),
        (lambda: GAUGE("shells", "", (), [((), "3")]), "a series of the gauge shells is of type str: give a number"),
        (
            lambda: GAUGE("shells", "", (), [((), None)]),
            "a series of the gauge shells is of type NoneType: give a number",
        ),
        (
            lambda: GAUGE("shells", "", (), [((), 10**400)]),
            "a series of the gauge shells is more than a float can hold",
        ),
        (lambda: COUNTER("shells_total", "", (), [((), Histogram((1,)))]), "is of type Histogram: give a number"),
        (
            lambda: Family("shells", Kind.HISTOGRAM, "", (), [Sample((), 3)]),
            "a series of the histogram shells is of type int: give a Histogram",
        ),
        (lambda: ("shells", 3), "a source of metrics gave a tuple: give what counter, gauge and histogram make"),
        (
            lambda: GAUGE("workqueue_depth", "", ("shell",), [(("a",), 1)]),
            "the metric workqueue_depth is shown already, as a gauge with the labels name, controller, priority",
        ),
    ],
)
async def test_a_family_that_cannot_be_written_goes_alone_and_the_author_is_told_which(
    wrong: Callable[[], Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics()
    operator = operator_of(metrics)
    operator.controller("shell", SHELLS, reconcile)

    def shells() -> Iterator[Family]:
        yield gauge("shells_well", "It goes with the other.", (), [((), 1)])
        yield wrong()

    def clerks() -> list[Family]:
        return [gauge("clerks", "Another source.", (), [((), 2)])]

    operator.add_metrics(shells)
    operator.add_metrics(clerks)
    scrapes = Scrapes(metrics)
    for _ in range(2):
        answer = await scrapes.answer(HttpRequest("GET", "/metrics"))
        text = answer.body.decode()
        assert answer.status == 200
        assert "\nclerks 2.0\n" in text
        assert '\nworkqueue_depth{controller="shell",name="shell",priority="0"} 0.0\n' in text
        assert "shells" not in text
    (line,) = caplog.messages
    assert "shells (" in line
    assert said in line
    assert line.endswith(" Its metrics are missing.")


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
    delay_s = vars(controller)["_delay_s"]
    assert delay_s(ObjectKey("shop", "a")) > 0
    shells.put(some(SHELLS, "a", 2))
    assert delay_s(ObjectKey("shop", "a")) == 0.0


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
