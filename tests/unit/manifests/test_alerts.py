"""The alerts by Prometheus' own tools: each fires when it should, and not when it should not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.manifests.monitoring_files import RULE_FILE, alerts
from tests.unit.manifests.promtool import promtool

RUNBOOKS = Path(__file__).parents[3] / "docs" / "runbooks.md"
FILES = sorted(Path(__file__).parent.glob("*_alerts_test.yaml"))
SEVERITIES = {"critical", "warning", "info"}
PARTS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]


def cases(file: Path) -> dict[str, Any]:
    """The cases of a file, with what each alert says in every case."""
    read: dict[str, Any] = yaml.load(file.read_text(), yaml.CSafeLoader)
    for test in read["tests"]:
        test["interval"] = read["evaluation_interval"]  # which older releases of promtool do not take for it
        (check,) = test["alert_rule_test"]
        same = alerts()[check["alertname"]]["annotations"]
        for expected in check["exp_alerts"]:
            expected["exp_annotations"] = {**same, **expected["exp_annotations"]}
    return read


def test_promtool_finds_no_fault_in_the_rules(tmp_path: Path) -> None:
    code, output = promtool(tmp_path, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")
    assert code == 0, output
    assert f"{len(alerts())} rules found" in output


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_an_alert_fires_when_it_should_and_only_then(file: Path, tmp_path: Path) -> None:
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(cases(file)))
    code, output = promtool(tmp_path, "test", "rules", "test.yaml")
    assert code == 0, output


def test_each_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    checks = [check for file in FILES for test in cases(file)["tests"] for check in test["alert_rule_test"]]
    fires = {(check["alertname"], bool(check["exp_alerts"])) for check in checks}
    assert fires == {(alert, firing) for alert in alerts() for firing in (True, False)}


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
