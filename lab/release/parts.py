"""The files of a release: each is made of the checkout, and names the image by its digest."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from lab import ROOT
from lab.packaging import catalog, plugin
from lab.packaging.bundle import bundle, read_sources, write as write_bundle
from lab.packaging.chart import CHART
from lab.packaging.manifests import FILES, INSTALL, PROJECT, with_image
from lab.programs.go_tools import run
from lab.programs.helm import helm
from memcached_operator import __version__

LOCKS: Final = ("requirements-image.lock", "requirements.lock", "Dockerfile")
"""Files that decide what is in the image, beside the code."""
SUMS: Final = "SHA256SUMS"
_IMAGE_IN_VALUES: Final = re.compile(r"(?<=\nimage:\n)  repository: \S+\n")


class NotReleasable(Exception):
    """There is nothing to make a release of; the message says why."""


def commit() -> tuple[str, int]:
    """The commit of the checkout, and its time in seconds since 1970.

    Raises:
        NotReleasable: the checkout has changes, or is none.
    """
    if changed := _git("status", "--porcelain"):
        raise NotReleasable(f"the checkout has changes, commit them first:\n{changed}")
    found, time_s = _git("log", "-1", "--format=%H %ct").split()
    return found, int(time_s)


def install_files(image: str, folder: Path) -> list[Path]:
    """Write what users apply."""
    written = []
    for name in FILES:
        text = (INSTALL / f"{name}.yaml").read_text()
        target = folder / f"{name}.yaml"
        target.write_text(text if name == "crds" else with_image(text, image))
        written.append(target)
    return written


def packed_chart(image: str, folder: Path) -> Path:
    """Pack the chart, with the image in its values. Raises ToolError, BuildError: Helm could not pack it."""
    repository, digest = image.split("@")
    with tempfile.TemporaryDirectory(prefix="chart-") as temporary:
        chart = Path(temporary) / CHART.name
        shutil.copytree(CHART, chart)
        values = chart / "values.yaml"
        text, count = _IMAGE_IN_VALUES.subn(f"  repository: {repository}\n", values.read_text())
        if count != 1 or text.count('  digest: ""\n') != 1:
            raise NotReleasable("the chart's values.yaml has no image with a repository and a digest")
        values.write_text(text.replace('  digest: ""\n', f"  digest: {digest}\n"))
        helm("package", str(chart), "--destination", str(folder))
    return folder / f"{CHART.name}-{__version__}.tgz"


def packages(epoch_s: int, folder: Path) -> list[Path]:
    """Build wheel and sdist; the same commit makes the same bytes."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    variables = os.environ | {"SOURCE_DATE_EPOCH": str(epoch_s)}
    subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, check=True)
    return [*folder.glob("*.whl"), *folder.glob("*.tar.gz")]


def plugin_files(folder: Path) -> list[Path]:
    """Write the plugin of kubectl as one file, with the archive and the manifest that krew takes.

    They are for the machine that makes them.
    """
    with tempfile.TemporaryDirectory(prefix="plugin-") as made:
        plugin.write(Path(made), plugin.HOMEPAGE, plugin.PYTHONS)
        return [Path(shutil.copy(each, folder)) for each in sorted(Path(made).iterdir())]


def bundle_folder(image: str, root: Path) -> None:
    """Write the OLM bundle and its Dockerfile below a folder."""
    write_bundle(bundle(read_sources(), image=image), root)


def catalog_file(bundle_root: Path, bundle_image: str, folder: Path) -> Path:
    """Write the file-based catalog that has this release.

    Raises:
        ToolError, BuildError: opm does not accept it, or is not there.
    """
    with tempfile.TemporaryDirectory(prefix="catalog-") as temporary:
        catalog.write([catalog.Release(bundle_root / "bundle", bundle_image)], Path(temporary))
        [made] = Path(temporary).rglob("catalog.json")
        return Path(shutil.copy(made, folder / "catalog.json"))


def contents(image: str, machine: str, folder: Path, *, plain_http: bool) -> Path:
    """Write the list of what an image has, Debian's packages and Python's, as CycloneDX.

    Raises:
        ToolError, BuildError: syft could not read it.
    """
    target = folder / f"sbom-{machine}.cdx.json"
    variables = os.environ | {"SYFT_CHECK_FOR_APP_UPDATE": "false"}  # with the caller's login
    variables |= {"SYFT_REGISTRY_INSECURE_USE_HTTP": "true"} if plain_http else {}
    arguments = ("scan", f"registry:{image}", f"--platform=linux/{machine}", "--output=cyclonedx-json")
    target.write_text(run("syft", *arguments, variables=variables, timeout_s=300))
    return target


def provenance(revision: str, builder: str, folder: Path) -> Path:
    """Write how the image was made, as SLSA's predicate (https://slsa.dev/spec/v1.1/provenance)."""
    files = [{"uri": name, "digest": {"sha256": sha256(ROOT / name)}} for name in LOCKS]
    predicate = {
        "buildDefinition": {
            "buildType": f"{PROJECT['urls']['Documentation']}/releasing.html",
            "externalParameters": {"version": __version__, "commit": revision},
            "internalParameters": {},
            "resolvedDependencies": [{"uri": "git", "digest": {"gitCommit": revision}}, *files],
        },
        "runDetails": {"builder": {"id": builder}, "metadata": {}},
    }
    target = folder / "provenance.json"
    target.write_text(json.dumps(predicate, indent=2) + "\n")
    return target


def notes(changelog: str, version: str) -> str:
    """The part of the changelog about a version; what is unreleased where that has no part yet.

    Raises:
        NotReleasable: it has neither.
    """
    for title in (rf"{re.escape(version)}\b", "Unreleased"):
        if found := re.search(rf"^## \[?{title}[^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL):
            return f"# memcached-operator {version}\n\n{found[1].strip()}\n"
    raise NotReleasable(f"CHANGELOG.md has no part about {version}")


def sums(files: Iterable[Path], folder: Path) -> Path:
    """Write the digests of files, as `sha256sum --check` reads them."""
    target = folder / SUMS
    target.write_text("".join(f"{sha256(file)}  {file.name}\n" for file in sorted(files)))
    return target


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def values_of(chart: Path) -> Mapping[str, Any]:
    """The values of a packed chart."""
    loaded: Mapping[str, Any] = yaml.safe_load(helm("show", "values", str(chart)).stdout)
    return loaded


def _git(*arguments: str) -> str:
    finished = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise NotReleasable(f"{ROOT} is no checkout: {finished.stderr.strip()}")
    return finished.stdout.strip()
