"""The image of the example, MyOwnShell: the operator's own with the example's folder added.

``python -m lab example-image`` is for people; tests ask for the archive, which `ctr images import` takes.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab import ROOT
from lab.cache import BuildError, digest_of, kept
from lab.image import builders, images
from lab.image.builders import ImageError

FOLDER = ROOT / "examples" / "my_own_shell"
# Each change of a line makes another image of 110 MB. Of those, so many stay.
_KEPT = 2
_PREFIX = "example-"


def name() -> str:
    """The image's name, as the example's manifests have it."""
    found = re.search(r"^ +image: (\S+)$", (FOLDER / "manifests" / "operator.yaml").read_text(), re.MULTILINE)
    if found is None:
        raise ImageError(f"{FOLDER}/manifests/operator.yaml names no image")
    return found[1]


def example_image() -> Path:
    """The image as a docker-archive.

    Raises:
        ImageError: there is no builder, or it failed.
        BuildError: as of `images.operator_image`.
    """
    base = images.operator_image()
    builder = builders.find(images.APART)
    parts = {path.name: path.read_bytes() for path in (*FOLDER.glob("*.py"), FOLDER / "Dockerfile")}
    target = images.images_dir() / f"{_PREFIX}{digest_of({**parts, '': f'{base.parent.name} {name()}'.encode()})}"

    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="memcached-operator-build-") as temporary:
            apart = builder.stored_in(Path(temporary))
            apart.load(base)
            apart.build(FOLDER, name(), arguments={"BASE_IMAGE": images.IMAGE}, secrets={}, cached=False)
            apart.save(name(), folder / "image.tar")

    archive = kept(target, f"the example's image as {name()}", fill) / "image.tar"
    os.utime(target)  # what is used is not old
    _forget_old()
    return archive


def _forget_old() -> None:
    folders = [path for path in images.images_dir().glob(f"{_PREFIX}*") if (path / "image.tar").is_file()]
    for folder in sorted(folders, key=lambda path: path.stat().st_mtime, reverse=True)[_KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)


def main(arguments: Sequence[str]) -> int:
    """`python -m lab example-image`; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m lab example-image", description="Build the example's image by docker, podman or buildah."
    )
    parser.add_argument("--archive", type=Path, metavar="FILE", help="write it as a docker-archive too")
    options = parser.parse_args(arguments)
    try:
        archive = example_image()
        builder = builders.find()
        builder.load(archive)
        if options.archive is not None:
            shutil.copyfile(archive, options.archive)
    except (ImageError, BuildError, OSError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    print(f"{name()} is in the store of {builder.name}")
    return 0
