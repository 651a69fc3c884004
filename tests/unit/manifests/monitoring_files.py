"""What manifests/components/prometheus has for Prometheus and Grafana, read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

COMPONENT = Path(__file__).parents[3] / "manifests" / "components" / "prometheus"
RULE_FILE = COMPONENT / "prometheusrule.yaml"
DASHBOARD_FILE = COMPONENT / "dashboard.json"


@cache
def rule_groups() -> list[dict[str, Any]]:
    """The groups of the PrometheusRule, which Prometheus reads as they are."""
    groups: list[dict[str, Any]] = yaml.safe_load(RULE_FILE.read_text())["spec"]["groups"]
    return groups


def alerts() -> dict[str, dict[str, Any]]:
    """The rules by their alert's name."""
    return {rule["alert"]: rule for group in rule_groups() for rule in group["rules"]}


@cache
def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana reads it."""
    read: dict[str, Any] = json.loads(DASHBOARD_FILE.read_text())
    return read


def panels() -> Iterator[dict[str, Any]]:
    """Its panels, those of rows included."""
    for panel in dashboard()["panels"]:
        yield panel
        yield from panel.get("panels", ())


def queries() -> dict[str, str]:
    """The PromQL of each panel and variable, by what it is for."""
    found = {
        f"{panel['type']} {panel['title']} {target['refId']}": target["expr"]
        for panel in panels()
        for target in panel.get("targets", ())
    }
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            found[f"variable {variable['name']}"] = variable["query"]["query"]
    return found
