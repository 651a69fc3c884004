"""Copies of manifests/ in the Helm chart, as a chart is packed from its own folder alone, and what catalogs show of it.

``python -m lab.packaging.chart`` makes them anew. The templates are the chart's own; a test compares what they make
with what kustomize makes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from lab.packaging import artifact_hub
from lab.packaging.bundle import read_sources
from lab.packaging.manifests import MANIFESTS, of_group
from memcached_operator.api import names

CHART = MANIFESTS.parent / "charts" / "memcached-operator"

COPIES = {
    # The templates take the kind and the rules from these.
    "files/crd.yaml": f"crd/{Path(names.CRD_FILE).name}",
    "files/role.yaml": "rbac/role.yaml",
    "files/leader_for_life.yaml": "components/leader-for-life/role.yaml",
    "files/memcached_admin.yaml": "tenants/memcached_admin.yaml",
    "files/memcached_edit.yaml": "tenants/memcached_edit.yaml",
    "files/memcached_view.yaml": "tenants/memcached_view.yaml",
    # Files and no templates: what stands in braces there is Prometheus' and Grafana's.
    "files/prometheusrule.yaml": "components/prometheus/prometheusrule.yaml",
    "files/dashboard.json": "components/prometheus/dashboard.json",
}
"""Where a copy lies in the chart, and where it comes from in manifests/."""

_MADE = "# Made by `./dev chart` from here on.\n"


def described(chart_yaml: str) -> str:
    """Chart.yaml with what catalogs show of it, as the other files have it now."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    made = artifact_hub.metadata(read_sources(), values, (MANIFESTS.parent / "CHANGELOG.md").read_text())
    text = yaml.dump(made, Dumper=_Blocks, sort_keys=False, width=1000, allow_unicode=True)
    return f"{chart_yaml.partition(_MADE)[0]}{_MADE}{of_group(text)}"


class _Blocks(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


_Blocks.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def write(chart: Path = CHART, manifests: Path = MANIFESTS) -> None:
    """Copy every file anew."""
    for copy, source in COPIES.items():
        (chart / copy).parent.mkdir(exist_ok=True)
        (chart / copy).write_text(of_group((manifests / source).read_text()))
    (chart / "Chart.yaml").write_text(described((chart / "Chart.yaml").read_text()))


if __name__ == "__main__":
    write()
    sys.exit(0)
