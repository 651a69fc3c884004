"""The dashboard by Grafana's own types, and what a person sees of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from pydantic import ConfigDict, TypeAdapter, ValidationError

from tests.unit.manifests.expressions import metrics_of
from tests.unit.manifests.monitoring_files import alerts, dashboard, panels, queries
from tests.unit.manifests.promtool import promtool

WIDTH = 24
LOOSE = ConfigDict(arbitrary_types_allowed=True)


def read(document: dict[str, Any]) -> Dashboard:
    """The dashboard in Grafana's types; an unknown field is left out, and a value of a wrong type is not noticed."""
    register_default_plugins()
    return Dashboard.from_json(document)


def lost(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """The fields and values that did not survive; defaults that came in count for nothing."""
    match before, after:
        case dict(), dict():
            for key, value in before.items():
                yield from lost(value, after.get(key), f"{path}.{key}")
        case list(), list() if len(before) == len(after):
            for number, (one, other) in enumerate(zip(before, after, strict=True)):
                yield from lost(one, other, f"{path}[{number}]")
        case _ if before != after:
            yield path


def mistyped(value: Any, path: str = "") -> Iterator[str]:
    """The fields of a tree of Grafana's objects whose values are not of their types."""
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from mistyped(each, f"{path}[{number}]")
    elif type(value).__module__.startswith("grafana_foundation_sdk."):
        for name, hint in get_type_hints(type(value)).items():
            held = getattr(value, name)
            try:
                TypeAdapter(hint, config=LOOSE).validate_python(held)
            except ValidationError as error:
                yield f"{path}.{name}: {error.errors()[0]['msg']}"
            yield from mistyped(held, f"{path}.{name}")


def test_grafana_s_types_know_each_field_and_have_each_value() -> None:
    document = {name: value for name, value in dashboard().items() if not name.startswith("__")}
    found = read(document)
    assert list(lost(document, json.loads(JSONEncoder().encode(found)))) == []
    assert list(mistyped(found)) == []


def test_it_is_as_grafana_exports_it_for_others_and_names_what_it_requires() -> None:
    # grafana.com takes no other. Nothing is asked for at the import: a variable chooses the data source.
    assert dashboard()["__inputs"] == []
    required = {(each["type"], each["id"]) for each in dashboard()["__requires"]}
    kinds = {("panel", panel["type"]) for panel in panels() if panel["type"] != "row"}
    assert required == kinds | {("grafana", "grafana"), ("datasource", "prometheus")}


def test_each_panel_says_what_it_shows_and_asks_the_chosen_data_source() -> None:
    shown = [panel for panel in panels() if panel["type"] != "row"]
    assert len({panel["id"] for panel in panels()}) == len(list(panels()))
    for panel in shown:
        assert panel["title"], panel["id"]
        assert panel["targets"], panel["title"]
        assert {each["datasource"]["uid"] for each in (panel, *panel["targets"])} == {"${datasource}"}, panel["title"]


def test_no_panel_lies_on_another_or_beyond_the_edge() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in panels():
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= WIDTH, panel["title"]
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert taken.setdefault((x, y), panel["title"]) is panel["title"], (panel["title"], taken[x, y])


def test_every_metric_that_an_alert_looks_at_is_drawn() -> None:
    drawn = {name for expression in queries().values() for name in metrics_of(expression)}
    watched = {name for rule in alerts().values() for name in metrics_of(rule["expr"])}
    assert watched - drawn == set()


# Two installs: one in ops with two replicas that see the same of two namespaces, and one in shop.
CACHED = "watch_stream_cached_objects"
CONTESTED = "memcached_operator_contested_memcacheds"
KIND = 'resource="memcacheds.cache.example.com"'
TWO_INSTALLS = {
    f'{CACHED}{{namespace="ops",pod="a",{KIND},scope="bank"}}': "3",
    f'{CACHED}{{namespace="ops",pod="a",{KIND},scope="post"}}': "4",
    f'{CACHED}{{namespace="ops",pod="b",{KIND},scope="bank"}}': "3",
    f'{CACHED}{{namespace="ops",pod="b",{KIND},scope="post"}}': "4",
    f'{CACHED}{{namespace="ops",pod="a",resource="pods",scope="bank"}}': "50",
    f'{CACHED}{{namespace="shop",pod="c",{KIND},scope=""}}': "5",
    f'{CONTESTED}{{namespace="ops",pod="a"}}': "2",
    f'{CONTESTED}{{namespace="ops",pod="b"}}': "0",
    f'{CONTESTED}{{namespace="shop",pod="c"}}': "1",
}


@pytest.mark.parametrize(
    ("panel", "chosen", "shown"),
    [
        ("Memcacheds", ".*", 12),
        ("Memcacheds", "ops", 7),
        ("Contested Memcacheds", ".*", 3),
        ("Contested Memcacheds", "shop", 1),
    ],
)
def test_a_figure_is_of_all_chosen_installs_and_counts_no_replica_twice(
    panel: str, chosen: str, shown: int, tmp_path: Path
) -> None:
    expression = queries()[f"stat {panel} A"].replace("$namespace", chosen).replace("$pod", ".*")
    series = {name.replace("{", '{job="memcached-operator",'): value for name, value in TWO_INSTALLS.items()}
    assert_shown(tmp_path, expression, series, {"{}": shown})


def assert_shown(
    directory: Path, expression: str, series: dict[str, str], shown: dict[str, float], at: str = "0m"
) -> None:
    """An expression gives these values by their labels, where there are these series, with a sample each minute."""
    desired = {
        "expr": expression,
        "eval_time": at,
        "exp_samples": [{"labels": labels, "value": value} for labels, value in shown.items()],
    }
    given = [{"series": name, "values": value} for name, value in series.items()]
    test = {"interval": "1m", "input_series": given, "promql_expr_test": [desired]}
    (directory / "test.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [test]}))
    code, output = promtool(directory, "test", "rules", "test.yaml")
    assert code == 0, output


def test_conditions_are_those_of_all_installs_and_counted_once_where_replicas_see_the_same(tmp_path: Path) -> None:
    ready, waiting = 'status="True",reason="AllServersReady"', 'status="False",reason="Waiting"'
    counted = {("ops", "a", ready): 3, ("ops", "b", ready): 3, ("ops", "a", waiting): 1, ("shop", "c", ready): 2}
    of_operator = 'job="memcached-operator",condition="Ready"'
    series = {
        f'memcached_operator_memcacheds{{{of_operator},namespace="{namespace}",pod="{pod}",{why}}}': str(number)
        for (namespace, pod, why), number in counted.items()
    }
    expression = queries()["timeseries Ready, and why not A"].replace("$namespace", ".*").replace("$pod", ".*")
    assert_shown(tmp_path, expression, series, {f"{{{ready}}}": 5, f"{{{waiting}}}": 1})


@pytest.mark.parametrize(("query", "shown"), [("A", 1), ("B", 2)])
def test_a_server_that_two_leaders_told_of_counts_once(query: str, shown: int, tmp_path: Path) -> None:
    """Where a scrape gives each leader's series an instance of its own."""
    reported = {("first", "cache-0"): "1", ("second", "cache-0"): "1", ("second", "cache-1"): "0"}
    series = {
        f'memcached_up{{job="memcached-servers",instance="{by}",namespace="shop",memcached="cache",pod="{pod}"}}': value
        for (by, pod), value in reported.items()
    }
    expression = queries()[f"timeseries Servers that answer {query}"]
    chosen = expression.replace("$servers_namespace", "shop").replace("$memcached", "cache")
    assert_shown(tmp_path, chosen, series, {"{}": shown})


@pytest.mark.parametrize(("at", "shown"), [("1m", {}), ("2m", 1), ("4m", 2), ("30m", {}), ("41m", 1)])
def test_a_repair_is_drawn_also_the_first_one_with_which_its_series_comes(
    at: str, shown: float | dict[str, float], tmp_path: Path
) -> None:
    of_pod = 'job="memcached-operator",namespace="ops",pod="a"'
    field = 'kind="Service",field="spec.ports"'
    series = {f"memcached_operator_repairs_total{{{of_pod},{field}}}": "_ _ 1 1 2x36 3x10"}
    expression = queries()["timeseries Repairs A"].replace("$__rate_interval", "5m")
    chosen = f"round({expression})".replace("$namespace", ".*").replace("$pod", ".*")
    assert_shown(tmp_path, chosen, series, {f"{{{field}}}": shown} if isinstance(shown, float | int) else {}, at)


def test_each_query_is_looked_at_by_the_tests() -> None:
    targets = [target for panel in panels() for target in panel.get("targets", ())]
    assert {target["expr"] for target in targets} <= set(queries().values())
    assert len(queries()) == len(targets) + 4, "four variables, and no query hides another"
