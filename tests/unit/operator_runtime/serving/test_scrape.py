"""What a scrape is answered; both text formats are read back by prometheus-client's own parsers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import pytest
from aiohttp.web import BaseRequest
from prometheus_client import Counter, Gauge, Histogram, Metric
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.samples import Sample

from operator_runtime.serving import scrape
from operator_runtime.serving.responses import HttpResponse, text_response
from operator_runtime.serving.scrape import Scrapes
from operator_runtime.telemetry.metrics import Metrics, gauge
from tests.unit.operator_runtime.http import get

DEADLINE_S = 60.0
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def metrics(series: int = 1) -> Metrics:
    metrics = Metrics()
    metrics.add(lambda: [gauge("depth", "How deep.", ("of",), (((str(number),), number) for number in range(series)))])
    return metrics


@pytest.mark.parametrize("series", [1, scrape._AT_ONCE + 1])
async def test_a_scrape_shows_what_there_is_now(series: int) -> None:
    response = await Scrapes({"/metrics": metrics(series)}).answer(get("/metrics"))
    assert response.status == 200
    assert response.content_type.startswith("text/plain; version=0.0.4")
    assert response.body.count(b"\ndepth{") == series


PROMETHEUS = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.5"


@pytest.mark.parametrize(
    ("accept", "openmetrics"), [("", False), ("*/*", False), (OPENMETRICS, True), (PROMETHEUS, True)]
)
async def test_both_formats_say_the_same(accept: str, openmetrics: bool) -> None:
    response = await Scrapes({"/metrics": some()}).answer(request_of(accept))
    assert response.content_type.startswith("application/openmetrics-text" if openmetrics else "text/plain")
    parse = parse_openmetrics if openmetrics else parse_text
    found: dict[object, float] = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(response.body.decode())
        for sample in family.samples
    }
    assert found == {
        ("ends_total", (("how", "well"),)): 3,
        ("ends_total", (("how", 'a "quote"\n'),)): 0,
        ("depth", ()): 2.5,
        ("time_seconds_bucket", (("le", "0.5"),)): 1,
        ("time_seconds_bucket", (("le", "1.0"),)): 3,
        ("time_seconds_bucket", (("le", "+Inf"),)): 4,
        ("time_seconds_count", ()): 4,
        ("time_seconds_sum", ()): 10.7,
    }, "and not when each was created"


def some() -> Metrics:
    """One of each kind."""
    metrics = Metrics()
    ends = Counter("ends_total", "How it ended.", ("how",), registry=metrics)
    ends.labels("well").inc(3)
    ends.labels('a "quote"\n')
    Gauge("depth", "How deep.", registry=metrics).set(2.5)
    Gauge("nothing", "No series yet.", ("name",), registry=metrics)
    seconds = Histogram("time_seconds", "How long.", registry=metrics, buckets=(0.5, 1.0))
    for each in (0.2, 0.7, 0.8, 9.0):
        seconds.observe(each)
    return metrics


def request_of(accept: str) -> BaseRequest:
    return get("/metrics", accept=accept)


@pytest.mark.parametrize("accept", ["application/openmetrics-text; version=nonsense", "\x00"])
async def test_whatever_is_asked_for_there_is_an_answer(accept: str) -> None:
    response = await Scrapes({"/metrics": some()}).answer(request_of(accept))
    assert b"ends_total" in response.body
    assert "nonsense" not in response.content_type


# Without its types, which would tell most of these mistakes to anyone who checks them.
GAUGE, COUNTER, HISTOGRAM = cast("Any", (GaugeMetricFamily, CounterMetricFamily, HistogramMetricFamily))


def labelled(value: object) -> Metric:
    family = GAUGE("shells", "", labels=("of",))
    family.add_metric([value], 1)
    return cast("Metric", family)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: labelled(3),
        lambda: labelled("\ud800"),
        lambda: GAUGE("shells", "\ud800", value=1),
        lambda: GAUGE("shells", "", value=10**400),
        lambda: COUNTER("shells", "", value="many"),
        lambda: HISTOGRAM("shells", "", buckets=[("+Inf", "many")], sum_value=1),
    ],
)
@pytest.mark.parametrize("accept", ["", OPENMETRICS])
async def test_a_family_that_cannot_be_written_goes_alone_and_is_told_once(
    wrong: Callable[[], Metric], accept: str, caplog: pytest.LogCaptureFixture
) -> None:
    shown = metrics()
    shown.add(lambda: [wrong(), GaugeMetricFamily("clerks", "Of the same source.", value=2)])
    scrapes = Scrapes({"/metrics": shown})
    for _ in range(2):
        answer = await scrapes.answer(request_of(accept))
        assert answer.status == 200
        assert b"\nclerks 2.0\n" in answer.body
        assert b"\ndepth{" in answer.body
        assert b"shells" not in answer.body
    (line,) = caplog.messages
    assert " failed for the metric shells: " in line
    assert line.endswith(" It is missing.")


@pytest.mark.parametrize("waits", [False, True])
async def test_each_path_has_metrics_of_its_own_also_for_whoever_waits_for_one(
    monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    if waits:
        monkeypatch.setattr(scrape, "_AT_ONCE", 0)
    scrapes = Scrapes({"/metrics": metrics(1), "/metrics/shops": metrics(2)})
    paths = ["/metrics", "/metrics/shops"] * 5
    answers = await asyncio.gather(*(scrapes.answer(get(path)) for path in paths))
    assert [answer.body.count(b"\ndepth{") for answer in answers] == [1, 2] * 5
    answer = await scrapes.answer(get("/metrics/shop"))
    assert (answer.status, answer.body) == (404, b"there is /metrics and /metrics/shops here\n")
    answer = await Scrapes({"/metrics": metrics()}).answer(get("/"))
    assert (answer.status, answer.body) == (404, b"there is /metrics here\n")


class Held(list[Sample]):
    """Samples that are written once the test lets them be."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        super().__init__(samples)
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __iter__(self) -> Iterator[Sample]:
        self.begun.set()
        assert self.go_on.wait(DEADLINE_S)
        return super().__iter__()


async def test_whoever_asks_while_a_scrape_is_written_shares_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrape, "_AT_ONCE", 0)
    shown = Metrics()
    held = Held([Sample("scrapes", {}, 1)])
    begun: list[Held] = []

    def source() -> list[Metric]:
        begun.append(held if not begun else Held([Sample("scrapes", {}, len(begun) + 1)]))
        if len(begun) > 1:
            begun[-1].go_on.set()
        family = GaugeMetricFamily("scrapes", "How often.")
        family.samples = begun[-1]
        return [family]

    shown.add(source)
    scrapes = Scrapes({"/metrics": shown})
    openmetrics = request_of("application/openmetrics-text")
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(scrapes.answer(get("/metrics")))
        assert await asyncio.to_thread(held.begun.wait, DEADLINE_S)
        gone, *others = [tasks.create_task(scrapes.answer(get("/metrics"))) for _ in range(11)]
        other_format = tasks.create_task(scrapes.answer(openmetrics))
        await asyncio.sleep(0)
        assert len(begun) == 1, "one at a time"
        gone.cancel()
        held.go_on.set()
    assert b"\nscrapes 1.0\n" in first.result().body
    assert b"\nscrapes 2.0\n" in others[0].result().body, "what they asked for was read after they asked"
    assert all(each.result().body is others[0].result().body for each in others)
    assert b"\nscrapes 3.0\n" in other_format.result().body
    again = await scrapes.answer(get("/metrics"))
    assert b"\nscrapes 4.0\n" in again.body, "nothing is kept"


async def closed(request: BaseRequest) -> HttpResponse | None:
    return text_response(403, "Forbidden\n")


@pytest.mark.parametrize("path", ["/metrics", "/metrics/shops", "/elsewhere"])
async def test_who_may_not_see_them_learns_nothing_else_either(path: str) -> None:
    response = await Scrapes({"/metrics": metrics(), "/metrics/shops": metrics()}, closed).answer(get(path))
    assert (response.status, response.body) == (403, b"Forbidden\n")
