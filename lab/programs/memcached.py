"""A memcached that this machine runs whatever its own packages are: Debian's newest, with its proxy.

The stand-in for memcached's image has the same one; here it is without an image, so that a few packages are enough.
"""

from __future__ import annotations

from pathlib import Path

from lab.cache import BuildError, cache_dir, digest_of, kept
from lab.image import debian, newest
from lab.image.bases import MEMCACHED, MEMCACHED_PROGRAM

_PACKAGES = tuple(package for package in MEMCACHED.packages if package.startswith(("lib", "zlib", "memcached")))


def build() -> tuple[str, ...]:
    """Fetch memcached if it is not there, and return how it is started: the first words of a command.

    Raises:
        BuildError: Debian's packages cannot be had.
    """
    root = kept(_folder(), "memcached with its proxy, of Debian's packages", _fill)
    return newest.command(root, root / MEMCACHED_PROGRAM)


def found() -> tuple[str, ...] | None:
    """Return what :func:`build` returns, if that would fetch nothing."""
    return build() if _folder().is_dir() else None


def _folder() -> Path:
    try:
        architecture = debian.architecture()
    except BuildError:
        architecture = "unknown"
    key = digest_of({"": " ".join((*_PACKAGES, architecture)).encode()})
    return cache_dir() / f"memcached-{key}"


def _fill(folder: Path) -> None:
    packages = debian.fetched(_PACKAGES, cache_dir().parent / "images")
    debian.unpack(packages, _PACKAGES, folder)
    newest.put("memcached", MEMCACHED_PROGRAM, folder, cache_dir().parent / "images")
