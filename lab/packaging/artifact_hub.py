"""What catalogs show of the chart: the part of Chart.yaml that is made of other files.

The annotations are Artifact Hub's (https://artifacthub.io/docs/topics/annotations/helm). Their values are YAML as text.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import yaml

from lab.packaging.bundle import Sources
from lab.packaging.manifests import PROJECT
from memcached_operator import __version__

_PREFIX = "artifacthub.io/"


def metadata(sources: Sources, values: dict[str, Any], changelog: str) -> dict[str, Any]:
    """Fields of Chart.yaml.

    Args:
        sources: those of the bundle, whose words and examples are the chart's as well.
        values: values.yaml.
        changelog: text of CHANGELOG.md. Changes are shown of a release, and none before.
    """
    words: dict[str, Any] = sources.words["spec"]
    shown: dict[str, Any] = {
        "license": PROJECT["license"],
        "category": "database",
        "operator": "true",
        "operatorCapabilities": sources.words["metadata"]["annotations"]["capabilities"],
        "crds": [_kind(yaml.safe_load(sources.crd), words["customresourcedefinitions"]["owned"][0]["displayName"])],
        "crdsExamples": list(sources.samples),
        "images": [
            {
                "name": "memcached-operator",
                "image": f"{values['image']['repository']}:{__version__}",
                "platforms": _platforms(sources.words["metadata"]["labels"]),
            },
            {"name": "memcached", "image": values["memcachedImage"]},
        ],
        "links": [{"name": name, "url": url} for name, url in PROJECT["urls"].items()] + words["links"],
    }
    if found := list(changes(changelog, __version__)):
        shown["changes"] = found
    return {
        "home": PROJECT["urls"]["Documentation"],
        # An address that no server has to answer.
        "icon": f"data:image/svg+xml;base64,{base64.b64encode(sources.icon).decode()}",
        "maintainers": words["maintainers"],
        "annotations": {f"{_PREFIX}{name}": _as_text(value) for name, value in shown.items()},
    }


def changes(changelog: str, version: str) -> Iterator[dict[str, str]]:
    """Yield what a changelog has of a release, each entry by its kind and first sentence; nothing without its part."""
    _, _, part = changelog.partition(f"\n## {version} ")
    part = part.partition("\n## ")[0] + "\n"
    for heading, entries in re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", part, re.MULTILINE | re.DOTALL):
        for entry in re.findall(r"^- (.+?)(?=^- |\Z)", entries, re.MULTILINE | re.DOTALL):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(entry.split()))
            yield {"kind": heading.lower(), "description": re.split(r"(?<=\.) (?=[A-Z`])", text)[0]}


def _kind(crd: dict[str, Any], display_name: str) -> dict[str, str]:
    (version,) = crd["spec"]["versions"]
    return {
        "kind": crd["spec"]["names"]["kind"],
        "version": version["name"],
        "name": crd["metadata"]["name"],
        "displayName": display_name,
        "description": version["schema"]["openAPIV3Schema"]["description"],
    }


def _platforms(labels: dict[str, str]) -> list[str]:
    """What the labels of the ClusterServiceVersion say that the image is built for."""
    return [f"linux/{label.rpartition('.')[2]}" for label in labels if "/arch." in label]


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else yaml.safe_dump(value, sort_keys=False, width=110, allow_unicode=True)
