"""A file-based catalog: what OLM finds the operator's releases by.

``python -m lab.packaging.catalog --image IMAGE --folder FOLDER`` makes one of bundle/. opm renders the bundle and
validates the result; what stands around it here is the package and its channel
(https://olm.operatorframework.io/docs/reference/file-based-catalogs/).
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from lab.cache import BuildError
from lab.packaging.bundle import BUNDLE_IMAGE, CHANNEL, PACKAGE, icon
from lab.packaging.manifests import MANIFESTS
from lab.programs import olm
from lab.programs.go_tools import ToolError, call


@dataclass(frozen=True, slots=True)
class Release:
    """One bundle of a catalog.

    Attributes:
        folder: the bundle's files.
        image: the bundle's image as a cluster pulls it, best by its digest.
    """

    folder: Path
    image: str


def write(releases: Sequence[Release], folder: Path) -> None:
    """Write the catalog of some releases, oldest first, into a folder of its own, and validate it.

    Each release replaces the one before it, and any older one that its `olm.skipRange` names.

    Raises:
        ToolError: opm does not accept a bundle, or the catalog.
        BuildError: opm is not built, and cannot be.
    """
    package = folder / PACKAGE
    package.mkdir(parents=True, exist_ok=True)
    bundles = [_render(release) for release in releases]
    documents = [_package(), _channel(bundles), *bundles]
    (package / "catalog.json").write_text("\n".join(json.dumps(document, indent=2) for document in documents) + "\n")
    _opm("validate", str(folder))


def _render(release: Release) -> dict[str, Any]:
    rendered: dict[str, Any] = json.loads(_opm("render", str(release.folder), "--output", "json"))
    return {**rendered, "image": release.image}


def _package() -> dict[str, Any]:
    return {
        "schema": "olm.package",
        "name": PACKAGE,
        "defaultChannel": CHANNEL,
        "icon": icon((MANIFESTS / "olm" / "icon.svg").read_bytes()),
    }


def _channel(bundles: Sequence[dict[str, Any]]) -> dict[str, Any]:
    replaced = dict(pairwise(reversed([bundle["name"] for bundle in bundles])))
    entries = [
        {"name": name, "skipRange": _skip_range(bundle)} | ({"replaces": replaced[name]} if name in replaced else {})
        for bundle in bundles
        for name in [bundle["name"]]
    ]
    return {"schema": "olm.channel", "package": PACKAGE, "name": CHANNEL, "entries": entries}


def _skip_range(bundle: dict[str, Any]) -> str:
    [csv] = [thing for thing in _objects(bundle) if thing["kind"] == "ClusterServiceVersion"]
    return str(csv["metadata"]["annotations"]["olm.skipRange"])


def _objects(bundle: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for property_ in bundle["properties"]:
        if property_["type"] == "olm.bundle.object":
            yield json.loads(base64.b64decode(property_["value"]["data"]))


def _opm(*arguments: str) -> str:
    return call(olm.validators() / "opm", *arguments).stdout


def main(arguments: Sequence[str]) -> int:
    """Write the catalog of the committed bundle and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lab.packaging.catalog", description=__doc__)
    parser.add_argument("--image", help=f"the bundle's image, best by its digest (default: {BUNDLE_IMAGE})")
    parser.add_argument("--folder", type=Path, required=True, help="where the catalog is written")
    options = parser.parse_args(arguments)
    try:
        write([Release(MANIFESTS.parent / "bundle", options.image or BUNDLE_IMAGE)], options.folder)
    except (BuildError, ToolError) as error:
        print(f"catalog: {error}", file=sys.stderr)
        return 1
    print(f"{options.folder} is a catalog that opm accepts: `opm serve {options.folder}`, or `opm generate dockerfile`")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
