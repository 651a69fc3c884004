from __future__ import annotations

import subprocess
import sys

import pytest

from memcached_operator.runtime import scrape
from memcached_operator.runtime.http_messages import HttpRequest, HttpResponse, text_response
from memcached_operator.runtime.metrics import Metrics, gauge
from memcached_operator.runtime.scrape import Scrapes


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
    assert (await Scrapes(metrics()).answer(HttpRequest("GET", "/"))).status == 404


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
