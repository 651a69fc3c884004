"""The user's cache: what takes minutes to build is built once, by whoever asks first, and kept for every checkout.

It lies outside the tree. A folder in it is named by a hash of what it is made of, so that a changed recipe is another
folder and nothing is ever stale.
"""

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# Set where a run must do with what is there, such as the quick one of the tests.
NO_BUILDS_VARIABLE = "MEMCACHED_OPERATOR_LAB_NO_BUILDS"


class BuildError(Exception):
    """Something for the cache could not be built; the message says why and what to do."""


class NotBuiltError(BuildError):
    """Error for what was never built, in a run that is to build nothing."""


def cache_dir() -> Path:
    """Return the folder for what is worth keeping between runs and checkouts."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "memcached-operator" / "lab"


def digest_of(files: Mapping[str, bytes]) -> str:
    """Make the digest that distinguishes these files from others, in twelve characters."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}:{len(content)}:".encode() + content)
    return digest.hexdigest()[:12]


def kept(target: Path, what: str, fill: Callable[[Path], None]) -> Path:
    """A folder of the cache, filled by the first process that asks for it; a second one waits for the first.

    Args:
        target: its final path; there it is complete or not at all.
        what: what is built, for the message that it begins.
        fill: puts everything into the folder that it is given.

    Raises:
        BuildError: as ``fill`` does.
        NotBuiltError: it is not there, and ``NO_BUILDS_VARIABLE`` is set.
    """
    if target.is_dir():
        return target
    refuse_builds(what)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.parent / f"{target.name}.lock"):
        if target.is_dir():
            return target
        report(f"building {what}, once; kept in {target}")
        staging = Path(tempfile.mkdtemp(prefix=f"{target.name}.new-", dir=target.parent))
        try:
            fill(staging)
            staging.chmod(0o755)
            staging.rename(target)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        report("built")
    return target


def refuse_builds(what: str) -> None:
    """Called before something is built. Raises NotBuiltError: ``NO_BUILDS_VARIABLE`` is set."""
    if os.environ.get(NO_BUILDS_VARIABLE):
        raise NotBuiltError(f"{what.partition(',')[0]} was never built, and {NO_BUILDS_VARIABLE} is set")


def report(message: str) -> None:
    """Report to a person what takes so long, on standard error."""
    print(f"lab: {message}", file=sys.stderr, flush=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
