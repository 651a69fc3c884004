"""The plugin of kubectl as one file, and what krew installs: `python -m lab.packaging.plugin FOLDER --url URL`.

The file is a zip that Python runs, with the plugin, the parts of the project that it uses, and what these need of
requirements-image.lock. Some of that is machine code, which nobody can load from a zip: the first start unpacks it
into the user's cache. So the file is for one platform, and for the releases of Python that it was made for.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from lab.image import wheels
from lab.packaging import manifests
from memcached_operator import __version__

PROJECT: Final = Path(__file__).parents[2]
HOMEPAGE: Final = manifests.PROJECT["urls"]["Documentation"]
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
PROGRAM: Final = "kubectl-memcached"
_LOCK: Final = PROJECT / "requirements-image.lock"
_PACKAGES: Final = ("kubectl_memcached", "memcached_operator", "operator_runtime")
# Parts of them that the plugin never loads.
_LEFT_OUT: Final = ("memcached_operator/demo", "memcached_operator/features", "operator_runtime/testing")
REQUIRED: Final = (
    *("aiohappyeyeballs", "aiohttp", "aiosignal", "attrs", "frozenlist", "idna", "msgspec", "multidict", "orjson"),
    *("propcache", "pyyaml", "typing-extensions", "yarl"),
)
"""Packages that the plugin loads, and what these require."""
# Debian 10's and RHEL 8's.
_GLIBC_MINOR: Final = 28
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_START: Final = '''\
"""Unpacks what cannot be loaded from a zip, once, and runs the plugin."""

import os
import pathlib
import sys
import sysconfig
import tempfile
import zipfile

PLATFORM, DIGEST = "{platform}", "{digest}"
PYTHONS = {pythons!r}


def unpacked(archive, python):
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = pathlib.Path(cache, "kubectl-memcached", f"{{DIGEST}}-{{python}}")
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(archive) as content, tempfile.TemporaryDirectory(dir=folder.parent) as new:
            names = [each for each in content.namelist() if each.startswith(("shared/", f"{{python}}/"))]
            content.extractall(new, names)
            try:
                os.rename(new, folder)
                os.mkdir(new)  # which is removed at the end
            except OSError:
                if not folder.is_dir():  # else another start was first
                    raise
    return [str(folder / each) for each in ("shared", python)]


def main():
    python = ".".join(map(str, sys.version_info[:2]))
    if python not in PYTHONS or sysconfig.get_platform() != PLATFORM:
        sys.exit(
            f"kubectl memcached: this file is for Python {{', '.join(PYTHONS)}} on {{PLATFORM}}, and this is Python"
            f" {{python}} on {{sysconfig.get_platform()}}; pip install memcached-operator brings the plugin as well"
        )
    try:
        sys.path[:0] = unpacked(sys.argv[0], python)
    except OSError as error:
        sys.exit(f"kubectl memcached: it cannot be unpacked ({{error}}); set XDG_CACHE_HOME to a folder of yours")
    from kubectl_memcached.cli import main as run

    sys.exit(run())


main()
'''


def required_of(lock: str) -> str:
    """The entries of `REQUIRED` of a lock file."""
    entries = re.split(r"^(?=\S)", lock, flags=re.MULTILINE)
    return "".join(each for each in entries if each.partition("==")[0] in REQUIRED)


def krew_manifest(url: str, sha256: str) -> Mapping[str, Any]:
    """What krew's index has of the plugin (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/)."""
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "memcached"},
        "spec": {
            "version": f"v{__version__}",
            "homepage": HOMEPAGE,
            "shortDescription": "Look into the servers of a Memcached",
            "description": "Shows hot keys, large items and size classes of the Memcacheds that memcached-operator\n"
            "runs, finds the server of a key, and flushes one server after the other.\n",
            "caveats": f"It takes Python {', '.join(PYTHONS[:-1])} or {PYTHONS[-1]} as python3.\n",
            "platforms": [
                {
                    "selector": {"matchLabels": {"os": "linux", "arch": _architecture()}},
                    "uri": url,
                    "sha256": sha256,
                    "bin": PROGRAM,
                }
            ],
        },
    }


def write(folder: Path, url: str, pythons: Sequence[str]) -> Path:
    """Write the file, the archive that krew takes, and its manifest; the file."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / PROGRAM
    with tempfile.TemporaryDirectory() as gathered:
        _gather(Path(gathered), pythons)
        program.write_bytes(b"#!/usr/bin/env python3\n" + _zipped(Path(gathered), pythons))
    program.chmod(0o755)
    archive = folder / f"{PROGRAM}-linux-{_architecture()}.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(program, PROGRAM)
        tar.add(PROJECT / "LICENSE", "LICENSE")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    manifest = krew_manifest(f"{url.rstrip('/')}/{archive.name}", digest)
    (folder / "memcached.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False))
    return program


def _gather(folder: Path, pythons: Sequence[str]) -> None:
    for package in _PACKAGES:
        shutil.copytree(
            PROJECT / package,
            folder / "shared" / package,
            ignore=shutil.ignore_patterns("__pycache__", "*.lua", "*.sh"),
        )
    for part in _LEFT_OUT:
        shutil.rmtree(folder / "shared" / part)
    requirements = folder / "requirements.txt"
    requirements.write_text(required_of(_LOCK.read_text()))
    for python in pythons:
        command = wheels.pip_command(_architecture(), str(requirements), str(folder / python), python, _GLIBC_MINOR)
        subprocess.run(command, check=True)
    requirements.unlink()


def _zipped(folder: Path, pythons: Sequence[str]) -> bytes:
    files = {each.relative_to(folder).as_posix(): each.read_bytes() for each in _files(folder)}
    digest = hashlib.sha256(
        repr(sorted((name, hashlib.sha256(each).digest()) for name, each in files.items())).encode()
    )
    machine = f"linux-{platform.machine()}"
    start = _START.format(platform=machine, digest=digest.hexdigest()[:16], pythons=tuple(pythons))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in sorted({"__main__.py": start.encode(), **files}.items()):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return target.getvalue()


def _files(folder: Path) -> Iterator[Path]:
    return (each for each in folder.rglob("*") if each.is_file() and "bin" not in each.relative_to(folder).parts[1:2])


def _architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev plugin", description="Make the plugin of kubectl as one file.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--url", default=HOMEPAGE, help="where the archive will be")
    parser.add_argument("--python", action="append", help=f"a release that it is for (default: {', '.join(PYTHONS)})")
    flags = parser.parse_args()
    program = write(flags.folder, flags.url, flags.python or PYTHONS)
    print(f"{program}: {program.stat().st_size / (1 << 20):.1f} MiB")


if __name__ == "__main__":
    main()
