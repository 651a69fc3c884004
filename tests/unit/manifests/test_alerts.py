"""The alerts by Prometheus' own tools: each fires when it should, and not when it should not."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.packaging.manifests import PROJECT
from tests.unit.manifests.monitoring_files import RULE_FILE, alerts
from tests.unit.manifests.promtool import promtool

RUNBOOKS = Path(__file__).parents[3] / "docs" / "runbooks.md"
FILES = sorted(Path(__file__).parent.glob("*_alerts_test.yaml"))
SEVERITIES = {"critical", "warning", "info"}
PARTS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]


@cache
def cases() -> dict[str, list[dict[str, Any]]]:
    """promtool's tests of each alert, with what the alert says in every case."""
    found: dict[str, list[dict[str, Any]]] = {}
    for file in FILES:
        read = yaml.load(file.read_text(), yaml.CSafeLoader)
        for test in read["tests"]:
            test["interval"] = read["evaluation_interval"]  # which older releases of promtool do not take for it
            (check,) = test["alert_rule_test"]
            same = alerts()[check["alertname"]]["annotations"]
            for expected in check["exp_alerts"]:
                expected["exp_annotations"] = {**same, **expected["exp_annotations"]}
            found.setdefault(check["alertname"], []).append(test)
    return found


def test_promtool_finds_no_fault_in_the_rules(tmp_path: Path) -> None:
    code, output = promtool(tmp_path, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")
    assert code == 0, output
    assert f"{len(alerts())} rules found" in output


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_fires_when_it_should_and_only_then(alert: str, tmp_path: Path) -> None:
    assert {bool(test["alert_rule_test"][0]["exp_alerts"]) for test in cases()[alert]} == {True, False}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": cases()[alert]}))
    code, output = promtool(tmp_path, "test", "rules", "test.yaml", alert=alert)
    assert code == 0, output


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_says_how_bad_it_is_what_is_wrong_and_where_to_read_on(alert: str) -> None:
    rule = alerts()[alert]
    assert rule["labels"].keys() == {"severity"}
    assert rule["labels"]["severity"] in SEVERITIES
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert page == f"{PROJECT['urls']['Documentation']}/runbooks.html", "run ./dev manifests"
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
    assert changed.count(f"{command[2]}.html#memcached") == len(alerts())
