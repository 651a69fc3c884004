"""The alerts by Prometheus' own tools: each fires when it should, and not when it should not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.manifests.alert_cases import OPERATOR_CASES, Case
from tests.unit.manifests.memcached_alert_cases import MEMCACHED_CASES
from tests.unit.manifests.monitoring_files import RULE_FILE, alerts
from tests.unit.manifests.promtool import promtool

RUNBOOKS = Path(__file__).parents[3] / "docs" / "runbooks.md"
CASES = {**OPERATOR_CASES, **MEMCACHED_CASES}
SEVERITIES = {"critical", "warning", "info"}
PARTS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]


def promtool_test(rule: dict[str, Any], case: Case) -> dict[str, Any]:
    """A case as promtool's tests have it."""
    expected: list[dict[str, Any]] = []
    if case.firing is not None:
        annotations = {**rule["annotations"], "description": case.firing.description}
        expected = [{"exp_labels": {**rule["labels"], **case.firing.labels}, "exp_annotations": annotations}]
    return {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "alert_rule_test": [{"eval_time": case.at, "alertname": rule["alert"], "exp_alerts": expected}],
    }


def test_promtool_finds_no_fault_in_the_rules(tmp_path: Path) -> None:
    code, output = promtool(tmp_path, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")
    assert code == 0, output
    assert f"{len(alerts())} rules found" in output


@pytest.mark.parametrize(
    ("alert", "case"),
    [pytest.param(alert, case, id=f"{alert}: {case.says}") for alert, cases in CASES.items() for case in cases],
)
def test_an_alert_fires_when_it_should_and_only_then(alert: str, case: Case, tmp_path: Path) -> None:
    test = {"rule_files": ["rules.yaml"], "tests": [promtool_test(alerts()[alert], case)]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test))
    code, output = promtool(tmp_path, "test", "rules", "test.yaml")
    assert code == 0, output


def test_each_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    assert set(CASES) == set(alerts())
    for alert, cases in CASES.items():
        assert {case.firing is None for case in cases} == {True, False}, alert


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_says_how_bad_it_is_what_is_wrong_and_where_to_read_on(alert: str) -> None:
    rule = alerts()[alert]
    assert rule["labels"].keys() == {"severity"}
    assert rule["labels"]["severity"] in SEVERITIES
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert page == "https://example.com/memcached-operator/runbooks.html"
    assert anchor == alert.lower()


def test_each_alert_has_its_runbook_with_all_its_parts_and_its_severity_and_no_other_has_one() -> None:
    sections = re.findall(r"^### (\w+)\n(.+?)(?=^##|\Z)", RUNBOOKS.read_text(), re.MULTILINE | re.DOTALL)
    assert [name for name, _ in sections] == list(alerts())
    for name, text in sections:
        assert re.findall(r"^\*\*(\w+)\.\*\* \S", text, re.MULTILINE) == PARTS, name
        assert text.strip().startswith(f"Severity: {alerts()[name]['labels']['severity']}"), name


def test_the_command_that_sets_the_address_of_the_runbooks_finds_it_in_each_alert() -> None:
    text = RULE_FILE.read_text()
    command = re.search(r"sed -i 's\|(.+)\|(.+)\|'", text)
    assert command is not None
    changed = re.sub(command[1], command[2], text)
    assert changed.count(f"runbook_url: {command[2]}/runbooks.html#memcached") == len(alerts())
