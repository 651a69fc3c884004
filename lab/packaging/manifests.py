"""Files that a user applies, made by kustomize from the folders of manifests/.

``python -m lab.packaging.manifests write`` makes manifests/install/ anew, and the links of alerts. ``print cluster
--image IMG`` prints one of the files with another image in it, to be piped into kubectl.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import ROOT
from lab.cache import BuildError
from lab.programs import kubernetes
from memcached_operator import __version__
from memcached_operator.api import names
from memcached_operator.cli import group_error

MANIFESTS = ROOT / "manifests"
INSTALL = MANIFESTS / "install"
RULES = MANIFESTS / "components" / "prometheus" / "prometheusrule.yaml"
PROJECT: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
"""What pyproject.toml says of the project."""
IMAGE = f"localhost/memcached-operator:{__version__}"
"""The operator's image as the install files name it, and as `./dev image` tags it."""

NAMESPACE = "memcached-operator-system"
"""Where the install for the cluster puts the operator."""

_MADE = "# Made by `./dev manifests` from manifests/{folder}; do not edit."
FILES: Mapping[str, tuple[str, ...]] = {
    "namespaced": (
        "# For one namespace: kubectl apply --server-side -n NAMESPACE -f manifests/install/namespaced.yaml",
        "# It needs what is in crds.yaml, which an administrator of the cluster applies.",
    ),
    "crds": (
        "# What is cluster-wide where operators are installed for single namespaces: the kind Memcached, and the",
        "# permissions on it for users with the built-in ClusterRoles admin, edit and view. cluster.yaml has both.",
    ),
    "cluster": (
        "# The operator for all namespaces: kubectl apply --server-side -f manifests/install/cluster.yaml",
        f"# It lives in the namespace {NAMESPACE}, which is made.",
    ),
}
"""The install files by their folder of manifests/, and what their heads say."""


class ManifestError(Exception):
    """kustomize did not do its part; the message carries its words."""


def kustomize(folder: Path) -> str:
    """Run `kubectl kustomize` on a folder.

    Raises:
        ManifestError: it failed.
        BuildError: there is no kubectl, and none can be built.
    """
    command = [kubernetes.kubectl_path(), "kustomize", str(folder)]
    finished = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise ManifestError(f"kubectl kustomize {folder}: {finished.stderr.strip()}")
    return finished.stdout


def install_file(name: str) -> str:
    """The text of an install file, made now."""
    head = "\n".join([*FILES[name], _MADE.format(folder=name)])
    return of_group(f"{head}\n{kustomize(MANIFESTS / name)}")


def of_group(text: str) -> str:
    """A text of manifests/ for the group that `./dev` was given (GROUP=cache.acme.io)."""
    return text.replace(names.DEFAULT_GROUP, names.GROUP)


def with_runbooks(rules: str) -> str:
    """The alerts with links to where the project's documentation is."""
    return re.sub(r"(?<=runbook_url: )\S+(?=/runbooks\.html#)", PROJECT["urls"]["Documentation"], rules)


def with_image(text: str, image: str) -> str:
    """An install file with another image of the operator.

    Raises:
        ManifestError: it is not one with the operator's Deployment, or the image is no single word.
    """
    line = f"image: {IMAGE}\n"
    if text.count(line) != 1:
        raise ManifestError(f"{line.strip()!r} stands {text.count(line)} times in it and not once")
    if image.split() != [image]:
        raise ManifestError(f"IMG={image!r}: give one image, such as registry.example.com/{IMAGE}")
    return text.replace(line, f"image: {image}\n")


def main(arguments: Sequence[str]) -> int:
    """Run one command and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lab.packaging.manifests", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write", help="make manifests/install/ anew")
    shown = commands.add_parser("print", help="print an install file")
    shown.add_argument("name", choices=FILES)
    shown.add_argument("--image", help=f"the operator's image (default, also where it is empty: {IMAGE})")
    options = parser.parse_args(arguments)
    if wrong := group_error():
        parser.error(wrong)
    try:
        if options.command == "print":
            text = (INSTALL / f"{options.name}.yaml").read_text()
            print(with_image(text, options.image) if options.image else text, end="")
            return 0
        made = {name: install_file(name) for name in FILES}
    except (ManifestError, BuildError) as error:
        print(f"manifests: {error}", file=sys.stderr)
        return 1
    RULES.write_text(with_runbooks(RULES.read_text()))
    INSTALL.mkdir(exist_ok=True)
    for name, text in made.items():
        (INSTALL / f"{name}.yaml").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
