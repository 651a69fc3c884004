"""Packages that a stand-in has from Debian's unstable, on the libraries of a stable release."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from lab.cache import BuildError, report
from lab.image import debian


def put(package: str, program: str, root: Path, cache: Path) -> None:
    """Put unstable's package over the one that ``root`` has, unless it cannot be had or does not run there.

    Unstable has one version at a time, and may be built for newer libraries any day: what stands in for an image must
    not depend on it. The release's package then stays, and a line on standard error says so.

    Args:
        program: of the package, by its path under ``root``; it must tell its version.
        cache: where packages are kept.
    """
    try:
        packages = debian.fetched([package], cache, debian.UNSTABLE)
        with tempfile.TemporaryDirectory(prefix="memcached-operator-newest-") as trial:
            debian.unpack(packages, [package], Path(trial))
            _try(command(root, Path(trial) / program))
    except BuildError as error:
        report(f"{package} stays that of Debian {debian.RELEASE}; {debian.UNSTABLE}'s is not used: {error}")
        return
    debian.unpack(packages, [package], root)


def command(root: Path, program: Path) -> tuple[str, ...]:
    """How this machine starts a program with the libraries under ``root``, whatever its own are.

    Raises:
        BuildError: there is no libc of Debian's.
    """
    for loader in (root / "usr" / "lib").glob("*/ld-linux*.so.*"):
        return (str(loader), "--library-path", str(loader.parent), str(program))
    raise BuildError(f"{root} has no dynamic loader: remove it")


def _try(words: tuple[str, ...]) -> None:
    try:
        finished = subprocess.run(
            [*words, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise BuildError(f"it does not run: {error}") from None
    if finished.returncode != 0:
        raise BuildError(f"it does not run: {finished.stderr.strip()}")
