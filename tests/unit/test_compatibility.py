"""What a release has promised is still there: metrics, flags, reasons, the kind's fields, the chart's values."""

from __future__ import annotations

import ast
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.programs import crdify, go_tools
from memcached_operator.api.crd import memcached_crd
from tests.cluster import REQUIRED_VARIABLE
from tests.compatibility import (
    CRD,
    LISTS,
    PROJECT,
    UNRELEASED,
    Lists,
    broken,
    crd_lists,
    event_reasons,
    present_lists,
    releases,
    removed_names,
)

RELEASED = releases((PROJECT / "CHANGELOG.md").read_text())
REMOVED = removed_names((PROJECT / "docs" / "support.md").read_text(), RELEASED)
REMEDY = (
    "./dev freeze writes the lists anew: there is no release yet"
    if not RELEASED
    else "keep it, or write it into the table of deprecations in docs/support.md and into CHANGELOG.md"
)


@pytest.fixture(scope="module")
def present() -> Lists:
    """What the code has now."""
    return {**present_lists(), **crd_lists(memcached_crd())}


@pytest.fixture
def frozen_crd() -> dict[str, Any]:
    """The last release's definition."""
    read: dict[str, Any] = yaml.safe_load(CRD.read_text())
    return read


def test_all_that_the_last_release_promised_is_there(present: Lists, frozen_crd: dict[str, Any]) -> None:
    promised = {**json.loads(LISTS.read_text())["lists"], **crd_lists(frozen_crd)}
    assert promised.keys() == present.keys()
    assert all(promised.values())
    found = [*broken(promised, present, REMOVED)]
    assert not found, "\n".join((*found, REMEDY))


def test_the_lists_are_of_the_newest_release() -> None:
    assert json.loads(LISTS.read_text())["release"] == [*RELEASED, UNRELEASED][0], "run ./dev freeze"


@pytest.mark.skipif(
    not go_tools.is_built("crdify") and not os.environ.get(REQUIRED_VARIABLE),
    reason="crdify was never built; ./dev test --all builds it",
)
def test_crdify_finds_nothing_that_breaks_memcacheds_and_does_find_a_narrower_bound(
    tmp_path: Path, frozen_crd: dict[str, Any]
) -> None:
    def of(schema_of_size: dict[str, Any]) -> list[str]:
        crd = json.loads(json.dumps(memcached_crd()))
        spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"]["size"] |= schema_of_size
        (tmp_path / "crd.json").write_text(json.dumps(crd))
        found = crdify.breaking_changes(CRD, tmp_path / "crd.json")
        return [each for each in found if not any(name in each for name in REMOVED)]

    found = of({})
    assert not found, "\n".join((*found, REMEDY))
    assert of({"description": "Other words.", "default": 1}) == []
    [narrower] = of({"maximum": 2})
    assert "v1alpha1.spec.size: maximum" in narrower


def definition(*, required: bool = False, **size: Any) -> dict[str, Any]:
    """A definition of one field."""
    schema = {
        "properties": {"size": {"type": "integer", "default": 1, "enum": [1, 2], **size}},
        "required": ["size"] if required else [],
    }
    names = {"kind": "Cache", "plural": "caches", "shortNames": ["ca"]}
    version = {"name": "v1", "additionalPrinterColumns": [], "schema": {"openAPIV3Schema": schema}}
    return {"spec": {"group": "a.io", "scope": "Namespaced", "names": names, "versions": [version]}}


@pytest.mark.parametrize(
    ("now", "found"),
    [
        ({"description": "Other words.", "enum": [1, 2, 3]}, ""),
        ({"type": "string"}, "'v1.size integer default=1' is now 'v1.size string default=1'"),
        ({"default": 2}, "'v1.size integer default=1' is now 'v1.size integer default=2'"),
        ({"required": True}, "'v1.size integer default=1' is now 'v1.size integer required default=1'"),
        ({"enum": [1]}, "'v1.size=2' is gone"),
    ],
)
def test_a_field_s_type_default_and_values_are_promised_and_its_words_are_not(now: dict[str, Any], found: str) -> None:
    promised, present = crd_lists(definition()), crd_lists(definition(**now))
    assert [*broken(promised, present)] == ([f"fields: {found}"] if found else [])


def test_what_was_deprecated_in_a_release_may_be_gone_in_a_later_one() -> None:
    page = (
        "| what | deprecated in | gone in | instead |\n|---|---|---|---|\n"
        "| `--old`, `old_total` | 0.1.0 | 0.2.0 | |\n"
        "| `--hasty` | 0.2.0 | 0.2.0 | |\n"
        "| `--later` | 0.1.0 | | |\n"
    )
    changelog = "# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-12-01\n\n### Added\n"
    assert releases(changelog) == ["0.1.0"]
    removed = removed_names(page, releases(changelog))
    assert removed == {"--old", "old_total"}
    promised = {"flags": ["--old $OLD", "--later $LATER"]}
    assert [*broken(promised, {}, removed)] == ["flags: '--later $LATER' is gone"]


def named_in_code(source: str) -> set[str]:
    """The reasons that calls which record an event of a Memcached name themselves."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(
                func=ast.Name(id="record_event") | ast.Attribute(attr="record_event"),
                args=[_, _, ast.Constant(value=str(reason)), *_],
            ):
                found.add(reason)
            case _:
                pass
    return found


def test_the_table_of_events_has_each_reason_that_the_code_names() -> None:
    code = {name for each in (PROJECT / "memcached_operator").rglob("*.py") for name in named_in_code(each.read_text())}
    assert {"Handover", "Resized", "ServerRestarted"} <= code
    assert code <= event_reasons()


def test_the_labels_of_each_metric_stand_in_its_table(present: Lists) -> None:
    section = (PROJECT / "docs" / "operations.md").read_text().partition("\n## Metrics\n")[2].partition("\n## ")[0]
    documented = {
        f"{name} ({', '.join(sorted(filter(None, labels.split(', '))))})"
        for name, labels in re.findall(r"^\| `(\w+)` \| ([^|]*?) ?\|", section, re.MULTILINE)
        if not name.startswith(("process_", "python_"))
    }
    own = {re.sub(r" \w+ ", " ", line) for line in present["metrics"] if not re.match(r"memcached_(?!operator_)", line)}
    assert documented == own
