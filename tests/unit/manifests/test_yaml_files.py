"""Each YAML file that users and their programs read: its documents, as such programs tell them apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

PROJECT = Path(__file__).parents[3]
FOLDERS = ("manifests", "bundle", "charts/memcached-operator/crds", "examples")
FILES = sorted(path for folder in FOLDERS for path in (PROJECT / folder).rglob("*.y*ml"))


def documents(text: str) -> list[str]:
    """The documents as Kubernetes' reader has them (apimachinery, pkg/util/yaml): a comment alone is one as well."""
    return re.split(r"^---(?:\s.*)?$", text, flags=re.MULTILINE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_a_file_begins_with_an_object_and_has_no_empty_document(path: Path) -> None:
    # OLM reads the first document of a file alone, and took a comment before `---` for it.
    for document in documents(path.read_text()):
        assert isinstance(yaml.safe_load(document), dict), f"a document of nothing: {document[:80]!r}"


@pytest.mark.parametrize("path", sorted((PROJECT / "bundle").rglob("*.yaml")), ids=lambda path: path.name)
def test_a_file_of_the_bundle_is_one_document(path: Path) -> None:
    assert len(documents(path.read_text())) == 1
