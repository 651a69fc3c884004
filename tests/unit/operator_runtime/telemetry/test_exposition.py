"""The two text formats, read back by prometheus-client's own parsers."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from operator_runtime.telemetry.exposition import Exposition
from operator_runtime.telemetry.metrics import Family, Histogram, counter, gauge, histogram

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)


def families() -> list[Family]:
    seconds = Histogram((0.5, 1.0))
    for each in (0.2, 0.7, 0.8, 9.0):
        seconds.observe(each)
    return [
        counter("ends_total", "How it ended.", ("how",), [(("well",), 3), (('a "quote"\n',), 0)]),
        gauge("depth", "How deep.", (), [((), 2.5)]),
        gauge("nothing", "No series yet.", ("name",), []),
        histogram("time_seconds", "How long.", ("of",), [(("a",), seconds)]),
    ]


def rendered(families: list[Family], accept: str) -> tuple[bytes, str]:
    exposition = Exposition()
    content_type = exposition.content_type(accept)
    return exposition.render(families, content_type), content_type


def samples(text: str, openmetrics: bool) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    parse = parse_openmetrics if openmetrics else parse_text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(text)
        for sample in family.samples
    }


@pytest.mark.parametrize(
    ("accept", "openmetrics"),
    [("", False), ("text/plain", False), ("*/*", False), (OPENMETRICS, True), (PROMETHEUS, True)],
)
def test_both_formats_say_the_same(accept: str, openmetrics: bool) -> None:
    body, content_type = rendered(families(), accept)
    assert content_type.startswith("application/openmetrics-text" if openmetrics else "text/plain")
    found = samples(body.decode(), openmetrics)
    assert found["ends_total", (("how", "well"),)] == 3
    assert found["ends_total", (("how", 'a "quote"\n'),)] == 0
    assert found["depth", ()] == 2.5
    buckets = {bound: found["time_seconds_bucket", (("le", bound), ("of", "a"))] for bound in ("0.5", "1.0", "+Inf")}
    assert buckets == {"0.5": 1, "1.0": 3, "+Inf": 4}
    assert found["time_seconds_count", (("of", "a"),)] == 4
    assert found["time_seconds_sum", (("of", "a"),)] == pytest.approx(10.7)


@pytest.mark.parametrize(
    "accept", ["application/openmetrics-text; version=nonsense", "application/openmetrics-text; version=99.0.0", "\x00"]
)
def test_whatever_is_asked_for_there_is_an_answer(accept: str) -> None:
    body, content_type = rendered(families(), accept)
    assert b"ends_total" in body
    assert "nonsense" not in content_type


def test_the_process_is_shown_too() -> None:
    body, _ = rendered([], "")
    found = {name for name, _ in samples(body.decode(), openmetrics=False)}
    assert {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "python_info"} <= found
    assert found == set(Exposition().names())


def test_a_counter_is_not_told_to_have_been_created() -> None:
    body, _ = rendered(families(), OPENMETRICS)
    assert b"_created" not in body
