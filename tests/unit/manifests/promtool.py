"""Prometheus' own tool on the rules of the component, and on expressions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml

from tests.integration.monitoring import program
from tests.unit.manifests.monitoring_files import rule_groups


def promtool(directory: Path, *arguments: str, alert: str = "") -> tuple[int, str]:
    """Run it where the rules stand as Prometheus reads them, or one of them; exit code and all that it said."""
    groups = [
        {**group, "rules": [rule for rule in group["rules"] if alert in ("", rule["alert"])]} for group in rule_groups()
    ]
    (directory / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    finished = subprocess.run(
        [program("promtool"), *arguments], cwd=directory, capture_output=True, text=True, check=False
    )
    return finished.returncode, finished.stdout + finished.stderr
