"""The chart's files, as far as they can be judged without Helm; tests/helm has the rest."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from lab.packaging import artifact_hub
from lab.packaging.chart import CHART, COPIES, described
from lab.packaging.manifests import MANIFESTS
from memcached_operator import __version__, settings_schema

VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
# Maps that are handed on as they are: Kubernetes or prometheus-operator judges what is in them.
HANDED_ON = {
    *(f"metrics.{part}.labels" for part in ("dashboard", "podMonitor", "prometheusRule")),
    *("affinity", "commonLabels", "global", "metrics.podMonitor.tlsConfig", "nodeSelector", "podAnnotations"),
    *("podLabels", "podSecurityContext", "resources.limits", "resources.requests", "securityContext"),
    "serviceAccount.annotations",
}


def test_chart_and_operator_are_released_together() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def annotation(name: str) -> Any:
    """An annotation of Artifact Hub's as it reads it."""
    return yaml.safe_load(yaml.safe_load((CHART / "Chart.yaml").read_text())["annotations"][f"artifacthub.io/{name}"])


def test_what_catalogs_show_of_the_chart_is_made_of_the_other_files() -> None:
    text = (CHART / "Chart.yaml").read_text()
    assert described(text) == text, "run ./dev chart"


def test_catalogs_show_the_kind_its_examples_the_images_and_the_licence() -> None:
    crd = yaml.safe_load((CHART / "files" / "crd.yaml").read_text())
    [kind] = annotation("crds")
    assert (kind["name"], kind["kind"]) == (crd["metadata"]["name"], crd["spec"]["names"]["kind"])
    assert kind["version"] in {each["name"] for each in crd["spec"]["versions"]}
    assert {each["kind"] for each in annotation("crdsExamples")} == {kind["kind"]}
    install = (MANIFESTS / "install" / "cluster.yaml").read_text()
    assert all(each["image"] in install for each in annotation("images"))
    assert annotation("images")[0]["platforms"] == ["linux/amd64", "linux/arm64"]
    assert (MANIFESTS.parent / "LICENSE").read_text().split()[:4] == ["Apache", "License", "Version", "2.0,"]
    assert annotation("license") == "Apache-2.0"
    # A key is named once there is one; docs/releasing.md tells of it.
    assert "artifacthub.io/signKey" not in yaml.safe_load((CHART / "Chart.yaml").read_text())["annotations"]


def test_the_icon_needs_no_server() -> None:
    mediatype, _, data = yaml.safe_load((CHART / "Chart.yaml").read_text())["icon"].partition(";base64,")
    assert mediatype == "data:image/svg+xml"
    assert base64.b64decode(data) == (MANIFESTS / "olm" / "icon.svg").read_bytes()


def test_the_changes_of_a_release_are_those_of_its_part_of_the_changelog() -> None:
    changelog = """# Changelog

## 0.2.0 - 2026-12-01

### Added

- `spec.size`: the number
  of servers ([page](docs/a.md)). More of it.

### Fixed

- A fault.
- Another.

## 0.1.0 - 2026-11-01

### Added

- All.
"""
    assert [*artifact_hub.changes(changelog, "0.2.0")] == [
        {"kind": "added", "description": "`spec.size`: the number of servers (page)."},
        {"kind": "fixed", "description": "A fault."},
        {"kind": "fixed", "description": "Another."},
    ]
    assert [*artifact_hub.changes(changelog, "0.3.0")] == []


@pytest.mark.parametrize("copy", COPIES)
def test_what_the_chart_has_of_the_manifests_is_the_same_there(copy: str) -> None:
    assert (CHART / copy).read_bytes() == (MANIFESTS / COPIES[copy]).read_bytes(), "run ./dev chart"


def objects(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each part of the schema that is about a map, with its path in the values."""
    if "$ref" in schema:
        schema = SCHEMA["definitions"][schema["$ref"].removeprefix("#/definitions/")]
    if schema.get("type") == "object":
        yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from objects(part, f"{path}.{name}".lstrip("."))


def test_no_map_takes_keys_that_it_does_not_know() -> None:
    open_maps = {path for path, schema in objects(SCHEMA) if schema.get("additionalProperties") is not False}
    assert open_maps == HANDED_ON


def keys(values: dict[str, Any], path: str = "") -> Iterator[str]:
    """The path of each value; what is handed on is one value."""
    for name, value in values.items():
        here = f"{path}.{name}".lstrip(".")
        if isinstance(value, dict) and here not in HANDED_ON:
            yield from keys(value, here)
        else:
            yield here


def test_each_value_that_can_be_given_stands_in_the_values_and_is_explained() -> None:
    known = {
        f"{path}.{name}".lstrip(".")
        for path, schema in objects(SCHEMA)
        for name, part in schema.get("properties", {}).items()
        if part.get("type") != "object" or f"{path}.{name}".lstrip(".") in HANDED_ON
    }
    assert known - set(keys(VALUES)) == {"enabled", "global", "resources.claims"}
    assert set(keys(VALUES)) <= known


def test_the_defaults_are_the_operator_s_own() -> None:
    defaults = settings_schema.SCHEMA.load({}, {})
    assert VALUES["memcachedImage"] == defaults.memcached_image
    assert VALUES["workers"] == defaults.workers
    assert VALUES["log"]["level"] == defaults.log_level
    assert VALUES["leaderElection"]["mode"] == defaults.leader_elect_mode
    assert VALUES["metrics"]["perObject"] == defaults.metrics_per_object
    assert VALUES["metrics"]["secure"]["enabled"] == defaults.metrics_secure


def test_the_readme_tells_of_each_value_and_its_default_and_of_no_other() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| `(.*?)` \|", (CHART / "README.md").read_text(), re.MULTILINE)
    documented = {name: yaml.safe_load(default) for name, default in rows}
    assert documented == {path: value_at(path) for path in keys(VALUES)}


def value_at(path: str) -> Any:
    value: Any = VALUES
    for name in path.split("."):
        value = value[name]
    return value
