"""The bundle and the catalog of it, as OLM's own programs read them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from lab.packaging.bundle import CHANNEL, PACKAGE, bundle, read_sources, write as write_bundle, write_for_operatorhub
from lab.packaging.catalog import Release, write
from lab.programs import olm
from lab.programs.go_tools import call
from memcached_operator import __version__
from tests.cluster import REQUIRED_VARIABLE

PROJECT = Path(__file__).parents[4]
BUNDLE = PROJECT / "bundle"
IMAGE = "registry.example.com/memcached-operator-bundle@sha256:" + "0" * 64

pytestmark = pytest.mark.skipif(
    not olm.has_validators() and not os.environ.get(REQUIRED_VARIABLE),
    reason="opm and verify_bundle were never built; ./dev test --all builds them",
)


def complaints(folder: Path) -> list[str]:
    """What is wrong with a bundle by OLM's and OperatorHub's rules."""
    verified = call(olm.validators() / "verify_bundle", str(folder), check=False)
    lines = (verified.stdout + verified.stderr).splitlines()
    assert verified.returncode == bool(lines)
    return lines


def test_nothing_is_wrong_with_the_committed_bundle() -> None:
    assert complaints(BUNDLE) == []


def test_nothing_is_wrong_with_what_operatorhub_gets(tmp_path: Path) -> None:
    write_for_operatorhub(bundle(read_sources()), tmp_path)
    assert complaints(tmp_path / "operators" / PACKAGE / __version__) == []


def test_a_catalog_of_the_committed_bundle_is_one_that_opm_accepts(tmp_path: Path) -> None:
    write([Release(BUNDLE, IMAGE)], tmp_path)
    [package, channel, release] = documents(tmp_path)
    assert package["defaultChannel"] == channel["name"] == CHANNEL
    assert channel["entries"] == [
        {"name": f"memcached-operator.v{__version__}", "skipRange": f">=0.0.0 <{__version__}"}
    ]
    assert release["image"] == IMAGE
    named = {related["image"] for related in release["relatedImages"]}
    assert {"docker.io/library/memcached:1.6.45-alpine"} <= named


def test_a_later_release_replaces_the_one_before_it_and_skips_those_before_that(tmp_path: Path) -> None:
    releases = []
    for version in ("0.9.0", "0.10.0"):
        folder = tmp_path / version
        write_bundle(bundle(read_sources(), version=version), folder)
        releases.append(Release(folder / "bundle", f"registry.example.com/bundle:{version}"))
    write(releases, tmp_path / "catalog")
    [_, channel, *_] = documents(tmp_path / "catalog")
    assert channel["entries"] == [
        {"name": "memcached-operator.v0.9.0", "skipRange": ">=0.0.0 <0.9.0"},
        {"name": "memcached-operator.v0.10.0", "skipRange": ">=0.0.0 <0.10.0", "replaces": "memcached-operator.v0.9.0"},
    ]


def documents(folder: Path) -> list[dict[str, Any]]:
    """The objects of a catalog's one file."""
    [file] = folder.rglob("catalog.json")
    decoder, text, found = json.JSONDecoder(), file.read_text().strip(), []
    while text:
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:].strip()
    return found
