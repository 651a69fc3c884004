from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator

import pytest

from operator_runtime.serving import scrape
from operator_runtime.serving.http_messages import HttpRequest, HttpResponse, text_response
from operator_runtime.serving.scrape import Scrapes
from operator_runtime.telemetry.metrics import Family, Kind, Metrics, Sample, gauge

DEADLINE_S = 10.0


def metrics(series: int = 1) -> Metrics:
    metrics = Metrics()
    metrics.add(lambda: [gauge("depth", "How deep.", ("of",), (((str(number),), number) for number in range(series)))])
    return metrics


@pytest.mark.parametrize("series", [1, scrape._AT_ONCE + 1])
async def test_a_scrape_shows_what_there_is_now(series: int) -> None:
    response = await Scrapes(metrics(series)).answer(HttpRequest("GET", "/metrics"))
    assert response.status == 200
    assert response.content_type.startswith("text/plain; version=0.0.4")
    assert response.body.count(b"\ndepth{") == series
    assert b"process_cpu_seconds_total" in response.body


async def test_the_scrapers_format_is_honoured() -> None:
    accept = {"accept": "application/openmetrics-text; version=1.0.0"}
    response = await Scrapes(metrics()).answer(HttpRequest("GET", "/metrics", headers=accept))
    assert response.content_type.startswith("application/openmetrics-text")
    assert response.body.endswith(b"# EOF\n")


async def test_elsewhere_there_is_nothing() -> None:
    answer = await Scrapes(metrics()).answer(HttpRequest("GET", "/"))
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
    held = Held([Sample((), 1)])
    begun: list[Held] = []

    def source() -> list[Family]:
        begun.append(held if not begun else Held([Sample((), len(begun) + 1)]))
        if len(begun) > 1:
            begun[-1].go_on.set()
        return [Family("scrapes", Kind.GAUGE, "How often.", (), begun[-1])]

    shown.add(source)
    scrapes = Scrapes(shown)
    get = HttpRequest("GET", "/metrics")
    openmetrics = HttpRequest("GET", "/metrics", headers={"accept": "application/openmetrics-text"})
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(scrapes.answer(get))
        assert await asyncio.to_thread(held.begun.wait, DEADLINE_S)
        others = [tasks.create_task(scrapes.answer(get)) for _ in range(10)]
        other_format = tasks.create_task(scrapes.answer(openmetrics))
        await asyncio.sleep(0)
        assert len(begun) == 1, "one at a time"
        held.go_on.set()
    assert b"\nscrapes 1.0\n" in first.result().body
    assert b"\nscrapes 2.0\n" in others[0].result().body, "what they asked for was read after they asked"
    assert all(each.result().body is others[0].result().body for each in others)
    assert b"\nscrapes 3.0\n" in other_format.result().body
    again = await scrapes.answer(get)
    assert b"\nscrapes 4.0\n" in again.body, "nothing is kept"


class Closed:
    async def refusal(self, request: HttpRequest) -> HttpResponse | None:
        return text_response(403, "Forbidden\n")


@pytest.mark.parametrize("path", ["/metrics", "/elsewhere"])
async def test_who_may_not_see_them_learns_nothing_else_either(path: str) -> None:
    response = await Scrapes(metrics(), Closed()).answer(HttpRequest("GET", path))
    assert (response.status, response.body) == (403, b"Forbidden\n")


def test_what_writes_metrics_and_what_signs_certificates_is_not_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, memcached_operator.operator\n"
        "costly = {'prometheus_client', 'cryptography', 'aiohttp.web_server', 'opentelemetry'}\n"
        "sys.exit(str(costly & set(sys.modules)) if costly & set(sys.modules) else 0)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
