"""Images are named whole wherever we name them: CRI-O refuses short names, and other runtimes guess a registry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from memcached_operator.settings_schema import SCHEMA

ROOT = Path(__file__).parents[3]
FOLDERS = ("manifests", "bundle", "examples")
PAGES = [
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "examples").rglob("*.md"),
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
]
# Fields whose text is an image's name.
FIELDS = {"image", "containerImage", "newName"}
PLACEHOLDERS = {"REPLACE_IMAGE", "IMAGE"}


def is_whole(name: str) -> bool:
    """Whether a name begins with its registry, by the rule of container runtimes' reference grammar."""
    registry, slash, path = name.partition("/")
    return bool(slash and path) and ("." in registry or ":" in registry or registry == "localhost")


def named(part: Any) -> Iterator[str]:
    """The images that an object names, also in variables, in texts that are JSON, and in a CRD's descriptions."""
    if isinstance(part, list):
        for each in part:
            yield from named(each)
    elif isinstance(part, dict):
        if str(part.get("name", "")).startswith("RELATED_IMAGE_"):
            yield part["value"]
        for key, value in part.items():
            if isinstance(value, str) and key in FIELDS:
                yield value
            elif isinstance(value, str) and key == "alm-examples":
                yield from named(json.loads(value))
            elif key == "description" and isinstance(value, str):
                yield from re.findall(r"[^\s]*memcached:\d[\w.-]*\w", value)
            else:
                yield from named(value)


def of_files() -> Iterator[tuple[str, str]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.yaml")):
            for document in yaml.safe_load_all(path.read_text()):
                yield from ((str(path.relative_to(ROOT)), name) for name in named(document) if name not in PLACEHOLDERS)


def of_code() -> Iterator[tuple[str, str]]:
    values = yaml.safe_load((ROOT / "charts" / "memcached-operator" / "values.yaml").read_text())
    yield "the chart's image.repository", values["image"]["repository"]
    yield "the chart's memcachedImage", values["memcachedImage"]
    yield "the setting memcached_image", SCHEMA.load({}, {}).memcached_image


def test_no_manifest_and_no_default_names_an_image_by_half() -> None:
    found = [*of_files(), *of_code()]
    assert len(found) > 15, "they are looked for where they are no more"
    assert [(where, name) for where, name in found if not is_whole(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_shows_an_image_that_is_named_by_half(page: Path) -> None:
    shown = re.findall(r"(?<!\w)(?:image: |--image[= ])([\w./-]+(?::[\w.-]+)?)", page.read_text())
    assert [name for name in shown if not is_whole(name)] == []
