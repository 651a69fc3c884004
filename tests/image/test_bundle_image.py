"""The bundle's image: what OLM unpacks."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from lab.image import builders
from lab.image.builders import ImageError
from lab.packaging.bundle import BUNDLE_IMAGE, build
from tests.image.conftest import Unpack
from tests.operator_process import PROJECT

pytestmark = pytest.mark.timeout(300)


def test_it_holds_the_bundle_where_its_labels_say(unpacked: Unpack, tmp_path: Path) -> None:
    archive = tmp_path / "bundle.tar"

    def make() -> Path:
        builder = builders.find(("buildah", "podman", "docker")).stored_in(tmp_path / "builder")
        build(builder, BUNDLE_IMAGE)
        builder.save(BUNDLE_IMAGE, archive)
        return archive

    image = unpacked(make)
    annotations = yaml.safe_load((PROJECT / "bundle" / "metadata" / "annotations.yaml").read_text())["annotations"]
    assert {name: image.config["Labels"].get(name) for name in annotations} == annotations
    committed = {
        str(path.relative_to(PROJECT / "bundle")): path.read_bytes()
        for path in (PROJECT / "bundle").rglob("*")
        if path.is_file()
    }
    inside = {str(path.relative_to(image.root)): path.read_bytes() for path in image.root.rglob("*") if path.is_file()}
    assert inside == committed
    for name in ("manifests", "metadata"):
        folder = image.config["Labels"][f"operators.operatorframework.io.bundle.{name}.v1"]
        assert (image.root / folder).is_dir()


def test_what_is_missing_is_named_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"\./dev bundle makes them"):
        build(builders.Builder("none"), BUNDLE_IMAGE, root=tmp_path)
