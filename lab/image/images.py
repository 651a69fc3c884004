"""The images that a node runs: the operator's, built from the Dockerfile, and stand-ins for what comes from registries.

``python -m lab image`` and ``push`` are for people, and work on the builder's own store. What tests ask for are
archives in the user's cache, which `ctr images import` takes.
"""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from lab import ROOT
from lab.cache import BuildError, cache_dir, digest_of, kept, report
from lab.image import bases, builders, pip_settings
from lab.image.builders import Builder, ImageError
from memcached_operator import __version__

IMAGE = f"localhost/memcached-operator:{__version__}"

# Which bases to build on: what a registry has, stand-ins, or stand-ins only if the registry cannot be reached.
BASES_VARIABLE = "IMAGE_BASES"
REGISTRY, STAND_IN, AUTO = "registry", "stand-in", "auto"

# Bases of the Dockerfile, by their ARGs, and what stands in for them.
_STAND_INS = {"BUILD_IMAGE": bases.PYTHON_BUILD, "BASE_IMAGE": bases.PYTHON}
_PACKAGE = "memcached_operator"
# Builders in the order in which archives are made by them: docker has no store that is gone afterwards.
APART = ("buildah", "podman", "docker")
# Each change of a line makes another image of 110 MB. Of those, so many stay.
_OPERATOR = "operator-"
_KEPT_OPERATORS = 4


def images_dir() -> Path:
    """Return the folder for archives that are kept between runs and checkouts."""
    return cache_dir().parent / "images"


def operator_image(tag: str = IMAGE, *, source: Path = ROOT) -> Path:
    """The operator's image as a docker-archive, built by the Dockerfile.

    Args:
        tag: the whole name under which it is found when it has been loaded. Stores of podman and buildah know no short
            ones, and would save it under two.
        source: the checkout to build, which may be one of an earlier commit.

    Raises:
        ImageError: there is no builder, or it failed.
        BuildError: a stand-in is needed, and Debian's packages cannot be had.
    """
    builder = builders.find(APART)
    key = digest_of({**_context(source), "": f"{tag} {builder.name} {_requested_bases()}".encode()})
    target = images_dir() / f"{_OPERATOR}{key}"

    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="memcached-operator-build-") as temporary:
            apart = builder.stored_in(Path(temporary))
            _build(apart, tag, source=source, cached=False)
            apart.save(tag, folder / "image.tar")

    archive = kept(target, f"the operator's image as {tag}", fill) / "image.tar"
    os.utime(target)  # what is used is not old
    _forget_old_operators()
    return archive


def build_for(builder: Builder, tag: str, machine: str, *, source: Path = ROOT, epoch_s: int) -> None:
    """Build the operator's image for a machine into a builder's store, the same bytes each time.

    Args:
        builder: buildah with a store of its own, which has no image of another machine.
        machine: amd64 or arm64.
        epoch_s: the time that everything in it gets, in seconds since 1970: its commit's.

    Raises:
        ImageError: the builder failed: where this machine does not run the other's programs, install QEMU's user mode.
        BuildError: a stand-in is needed, and Debian's packages cannot be had.
    """
    more = ("--platform", f"linux/{machine}", "--timestamp", str(epoch_s))
    _build(builder, tag, source=source, cached=False, labels=_labels(source), more=more, machine=machine)


def memcached_image(tag: str) -> Path:
    """A stand-in for memcached's image, as a docker-archive of that name: Debian's memcached, as user 11211.

    Raises:
        BuildError: Debian's packages cannot be had.
    """
    return bases.archive(bases.MEMCACHED, tag, images_dir())


def older_memcached_image(tag: str) -> Path:
    """As :func:`memcached_image`, of Debian's stable."""
    return bases.archive(bases.OLDER_MEMCACHED, tag, images_dir())


def busybox_image(tag: str) -> Path:
    """A stand-in for busybox's image; raises as :func:`memcached_image` does."""
    return bases.archive(bases.BUSYBOX, tag, images_dir())


def client_image(tag: str) -> Path:
    """Python with pymemcache, for programs that tests bring along; raises as :func:`memcached_image` does."""
    return bases.archive(bases.CLIENT, tag, images_dir())


def pause_image(tag: str) -> Path:
    """An image that only sleeps, for the sandboxes of a container runtime; raises as :func:`memcached_image` does."""
    return bases.archive(bases.PAUSE, tag, images_dir())


def base_images(dockerfile: str) -> dict[str, str]:
    """The bases that a Dockerfile names unless it is told others, by their ARGs."""
    found = dict(re.findall(r"^ARG (\w+_IMAGE)=(\S+)$", dockerfile, re.MULTILINE))
    if set(found) != set(_STAND_INS):
        raise ImageError(f"the Dockerfile has values for the ARGs {sorted(found)}; needed: {sorted(_STAND_INS)}")
    return found


def public_address(remote: str) -> str:
    """The address of a git remote as a label may show it: on the web and without credentials, else empty."""
    parts = urlsplit(remote.strip())
    if parts.scheme not in ("http", "https") or parts.hostname is None:
        return ""
    port = f":{parts.port}" if parts.port else ""
    return f"https://{parts.hostname}{port}{parts.path.removesuffix('.git')}"


def _build(
    builder: Builder,
    image: str,
    *,
    source: Path,
    cached: bool,
    labels: Mapping[str, str] = {},
    more: Sequence[str] = (),
    machine: str = "",
) -> None:
    with tempfile.TemporaryDirectory(prefix="memcached-operator-build-") as secret:
        chosen = _choose_bases(builder, base_images((source / "Dockerfile").read_text()), machine)
        builder.build(
            source,
            image,
            arguments={"VERSION": _version(source), **labels, **chosen},
            secrets=pip_settings.secrets(Path(secret)),
            cached=cached,
            more=more,
        )


def _choose_bases(builder: Builder, named: Mapping[str, str], machine: str) -> dict[str, str]:
    """The ARGs with other bases than the Dockerfile names; empty where it is to have its own."""
    requested = _requested_bases()
    if requested != STAND_IN:
        wrong = next((wrong for name in named.values() if (wrong := _obtain(builder, name, machine)) is not None), None)
        if wrong is None:
            return {}
        if requested == REGISTRY:
            raise ImageError(f"{wrong}; {BASES_VARIABLE}={AUTO} builds on stand-ins instead")
        report(f"no base images from a registry ({wrong.splitlines()[-1]}): building on stand-ins of Debian's packages")
    chosen = {}
    for argument, stand_in in _STAND_INS.items():
        short = argument.removesuffix("_IMAGE").lower()
        # The tag tells one from an older one in the builder's store.
        name = f"localhost/memcached-operator-{short}:{bases.recipe_of(stand_in, machine)}"
        if not builder.has(name):
            builder.load(bases.archive(stand_in, name, images_dir(), machine))
        chosen[argument] = name
    return chosen


def _obtain(builder: Builder, image: str, machine: str) -> str | None:
    return None if builder.has(image) else builder.pull(image, machine)


def _requested_bases() -> str:
    requested = os.environ.get(BASES_VARIABLE) or AUTO
    if requested not in (REGISTRY, STAND_IN, AUTO):
        raise ImageError(f"{BASES_VARIABLE}={requested!r} is none of {REGISTRY}, {STAND_IN}, {AUTO}")
    return requested


def _parts(source: Path) -> list[str]:
    """List the parts of a checkout's image: the recipe, and the files and folders that .dockerignore lets through.

    An earlier commit may have them elsewhere, so its own .dockerignore is read.
    """
    ignore = source / ".dockerignore"
    lines = ignore.read_text().splitlines() if ignore.is_file() else []
    return ["Dockerfile", ignore.name, *(line.removeprefix("!") for line in lines if line.startswith("!"))]


def _context(source: Path) -> dict[str, bytes]:
    parts = [source / part for part in _parts(source)]
    missing = [part.relative_to(source).as_posix() for part in parts if not part.exists()]
    if missing:
        raise ImageError(f"no image can be built of {source}: it has no {', '.join(missing)}")
    inside = (path for part in parts for path in (part.rglob("*") if part.is_dir() else (part,)))
    files = (path for path in inside if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(source).as_posix(): path.read_bytes() for path in files}


def _version(source: Path) -> str:
    found = re.search(r'^__version__ = "(.+)"$', (source / _PACKAGE / "__init__.py").read_text(), re.MULTILINE)
    if found is None:
        raise ImageError(f"{source / _PACKAGE / '__init__.py'} has no __version__")
    return found[1]


def _labels(source: Path) -> dict[str, str]:
    """Read the labels from git's data of a checkout; nothing where it is none."""

    def git(*arguments: str) -> str:
        with contextlib.suppress(OSError):
            command = ["git", "-C", str(source), *arguments]
            found = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            return found.stdout.strip() if found.returncode == 0 else ""
        return ""

    revision = git("rev-parse", "HEAD")
    changed = revision and git("status", "--porcelain", "--", *_parts(source))
    return {
        "REVISION": f"{revision}-dirty" if changed else revision,
        "SOURCE": public_address(git("remote", "get-url", "origin")),
    }


def _forget_old_operators() -> None:
    folders = [path for path in images_dir().glob(f"{_OPERATOR}*") if (path / "image.tar").is_file()]
    for folder in sorted(folders, key=lambda path: path.stat().st_mtime, reverse=True)[_KEPT_OPERATORS:]:
        shutil.rmtree(folder, ignore_errors=True)


def main(arguments: Sequence[str]) -> int:
    """`python -m lab image` and `python -m lab push`; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lab")
    commands = parser.add_subparsers(dest="command", required=True)
    parsers = {
        name: commands.add_parser(
            name, description=text, allow_abbrev=False, epilog="Further options go to the builder, each in one word."
        )
        for name, text in {
            "image": "Build the operator's image by docker, podman or buildah.",
            "push": "Send the operator's image to the registry that its name begins with.",
        }.items()
    }
    parsers["image"].add_argument("--archive", type=Path, metavar="FILE", help="write it as a docker-archive too")
    for command in parsers.values():
        command.add_argument("name", nargs="?", default=IMAGE, help="its name with its tag (default: %(default)s)")
    options, more = parser.parse_known_args(arguments)
    name = options.name or IMAGE  # the recipes hand over an empty IMG
    try:
        builder = builders.find()
        if options.command == "push":
            builder.push(name, more)
            return 0
        _build(builder, name, source=ROOT, cached=True, labels=_labels(ROOT), more=more)
        if options.archive is not None:
            options.archive.unlink(missing_ok=True)  # builders do not write over one
            builder.save(name, options.archive)
    except (ImageError, BuildError, OSError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    print(f"{name} is in the store of {builder.name}")
    return 0
