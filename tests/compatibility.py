"""Lists of what a release promises, and what of them another state of the code breaks.

``python -m tests.compatibility`` writes what there is now into `FOLDER`, as the promises of the newest release that
CHANGELOG.md has; `tests/unit/test_compatibility.py` holds the code to them from then on.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from memcached_operator.api.names import CRD_FILE
from memcached_operator.api.status import OCCASIONAL_CONDITIONS, OWNED_CONDITIONS, Reason
from memcached_operator.cli import COMMANDS
from memcached_operator.settings_schema import SCHEMA
from operator_runtime.telemetry.metrics import Metrics
from tests.unit.lab.packaging.test_chart import VALUES, keys
from tests.unit.manifests.install_files import container
from tests.unit.manifests.test_expressions import all_metrics, server_metrics

PROJECT = Path(__file__).parents[1]
FOLDER = PROJECT / "tests" / "released"
LISTS, CRD = FOLDER / "lists.json", FOLDER / "crd.yaml"
UNRELEASED = "unreleased"
# prometheus-client's own.
_FOREIGN = ("python_", "process_")

Lists = Mapping[str, list[str]]
"""Lines by part, sorted. A line begins with a name; what follows the name is promised of it."""


def present_lists() -> Lists:
    """Collect what the code has now; the CRD's fields are in the CRD."""
    options = SCHEMA.options
    switches = [(flag, each) for each in options if each.none_of_several for flag in each.none_of_several.flags]
    with tempfile.TemporaryDirectory() as folder:
        metrics = {*_metrics(asyncio.run(all_metrics(Path(folder)))), *_metrics(server_metrics())}
    found: dict[str, Iterable[str]] = {
        "metrics": metrics,
        "flags": {f"{flag} ${each.variable}" for each in options for flag in each.flags}
        | {f"{flag} ${each.variable}" for flag, each in switches},
        # Some are no settings, such as that of the kind's group.
        "variables of the pod": (each["name"] for each in container()["env"]),
        "commands": COMMANDS,
        "conditions": (*OWNED_CONDITIONS, *OCCASIONAL_CONDITIONS),
        "reasons of conditions": map(str, Reason),
        "reasons of events": event_reasons(),
        "values of the chart": keys(VALUES),
    }
    return {part: sorted(lines) for part, lines in found.items()}


def _metrics(metrics: Metrics) -> Iterator[str]:
    for family in metrics.collect():
        if not family.name.startswith(_FOREIGN):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            # A metric may have no series yet, or may have been made without its labels' names.
            labels = {*getattr(family, "_labelnames", ()), *(label for each in family.samples for label in each.labels)}
            yield f"{name} {family.type} ({', '.join(sorted(labels - {'le'}))})"


def event_reasons() -> set[str]:
    """Read the reasons of events that docs/conditions.md lists; those of Degraded are reasons of conditions, too."""
    _, _, section = (PROJECT / "docs" / "conditions.md").read_text().partition("\n## Events and log lines\n")
    cells = re.findall(r"^\| (`.*?) \| (?:Normal|Warning)", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def crd_lists(crd: Mapping[str, Any]) -> Lists:
    """Collect the names, columns and fields of a CustomResourceDefinition; of a field its type, default and values."""
    spec = crd["spec"]
    names: dict[str, Any] = spec["names"]
    return {
        "names of the kind": [f"{spec['group']} {spec['scope']}", names["kind"], names["plural"], *names["shortNames"]],
        "columns": [f"{v['name']}:{each['name']}" for v in spec["versions"] for each in v["additionalPrinterColumns"]],
        "fields": [
            line
            for v in spec["versions"]
            for line in _fields(v["schema"]["openAPIV3Schema"], v["name"], required=False)
        ],
    }


def _fields(schema: Mapping[str, Any], path: str, *, required: bool) -> Iterator[str]:
    """A line for each field below, and one for each value that a field may have."""
    kind = "int-or-string" if schema.get("x-kubernetes-int-or-string") else schema.get("type", "any")
    # An object's default repeats those of its fields, and what a status has before its first write promises nothing.
    is_promised = "default" in schema and kind != "object" and ".status." not in path
    default = f" default={json.dumps(schema['default'])}" if is_promised else ""
    yield f"{path} {kind}{' required' * required}{default}"
    yield from (f"{path}={value}" for value in schema.get("enum", ()))
    for name, each in schema.get("properties", {}).items():
        yield from _fields(each, f"{path}.{name}", required=name in schema.get("required", ()))
    for mark, part in (("[]", schema.get("items")), ("{}", schema.get("additionalProperties"))):
        if isinstance(part, dict):
            yield from _fields(part, path + mark, required=False)


def broken(promised: Lists, present: Lists, removed: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield a sentence for each promise that is gone or changed, but for the names that may go; more is never wrong."""
    for part, lines in promised.items():
        now = {line.split()[0]: line for line in present.get(part, ())}
        for line in lines:
            name = line.split()[0]
            if now.get(name) != line and name not in removed:
                yield f"{part}: {line!r} is {f'now {now[name]!r}' if name in now else 'gone'}"


def releases(changelog: str) -> list[str]:
    """Read the releases that a changelog has, the newest first."""
    return re.findall(r"^## \[?(\d+\.\d+\.\d+)", changelog, re.MULTILINE)


def removed_names(page: str, released: Iterable[str]) -> frozenset[str]:
    """Read which names may be gone: those of the table of deprecations that an earlier release has deprecated."""
    rows = re.findall(r"^\| ([^|]*`[^|]+`[^|]*) \| (\d+\.\d+\.\d+) \| (\d+\.\d+\.\d+) \|", page, re.MULTILINE)
    return frozenset(name for cell, since, _ in rows if since in released for name in re.findall(r"`([^`]+)`", cell))


def main() -> None:
    """Write the lists and the CRD."""
    newest = [*releases((PROJECT / "CHANGELOG.md").read_text()), UNRELEASED][0]
    FOLDER.mkdir(exist_ok=True)
    LISTS.write_text(json.dumps({"release": newest, "lists": present_lists()}, indent=1) + "\n")
    CRD.write_text((PROJECT / CRD_FILE).read_text())


if __name__ == "__main__":
    main()
