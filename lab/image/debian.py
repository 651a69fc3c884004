"""Packages of one Debian release, fetched by apt and unpacked without being installed.

The release need not be the machine's. Where packages come from, and by which proxy, is what the machine's apt is set up
for: its Debian sources, with the name of the release exchanged.
"""

import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.cache import BuildError, digest_of, kept

# Has Python 3.13, as the bases that the Dockerfile names.
RELEASE = "trixie"
# Has what was packaged last, of one version at a time.
UNSTABLE = "sid"

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_REMEDY = "packages for stand-ins come from Debian's archive by apt; without it, build where a registry can be reached"


@dataclass(frozen=True, slots=True)
class Source:
    """A place that a machine's apt takes packages from."""

    address: str
    suite: str
    """A release, or a part of one: ``bookworm``, ``bookworm-security``."""


def architecture() -> str:
    """The machine's, as Debian calls it. Raises BuildError: there is no dpkg."""
    return _run("dpkg", "--print-architecture").strip()


def fetched(names: Iterable[str], cache: Path, release: str = RELEASE, machine: str = "") -> Path:
    """A folder of the cache with the packages of these names, as ``.deb`` files. apt verifies them as Debian's own.

    They are fetched once and not renewed: whoever wants newer ones removes the folder.

    Args:
        machine: the architecture for which they are, "" for that of this machine.

    Raises:
        BuildError: apt is not there, knows no Debian, or does not get them.
    """
    packages, machine = sorted(set(names)), machine or architecture()
    key = digest_of({"names": " ".join(packages).encode(), "of": f"{release} {machine}".encode()})
    what = f"a folder of {len(packages)} packages of Debian {release} for {machine}"
    return kept(cache / f"packages-{release}-{key}", what, lambda folder: _fetch(packages, folder, release, machine))


def unpack(folder: Path, names: Iterable[str], root: Path) -> None:
    """Put the files of some of the folder's packages under ``root``. No script of theirs is run.

    What each is stands in ``var/lib/dpkg/status.d``, where distroless images have it and scanners look.

    Raises:
        BuildError: one of them is not there, or cannot be read.
    """
    for name in names:
        files = list(folder.glob(f"{name}_*.deb"))
        if len(files) != 1:
            raise BuildError(f"{folder} has {len(files)} packages named {name}, one is needed: remove it")
        _run("dpkg-deb", "--extract", str(files[0]), str(root))
        status = root / "var/lib/dpkg/status.d" / name
        status.parent.mkdir(parents=True, exist_ok=True)
        status.write_text(_run("dpkg-deb", "--field", str(files[0])))


def sources_of(targets: str, release: str) -> list[Source]:
    """Debian's own sources among the lines of `apt-get indextargets`, for another release.

    Args:
        targets: lines of address, suite and origin, as ``_FORMAT`` has them.
    """
    parts = ("",) if release == UNSTABLE else ("", "updates", "security")
    found: dict[Source, None] = {}
    for line in targets.splitlines():
        address, suite, origin = line.split(maxsplit=2)
        if origin == "Debian":
            _, dash, part = suite.partition("-")
            if part in parts:
                found[Source(address, f"{release}{dash}{part}")] = None
    return list(found)


_FORMAT = ("--format", "$(REPO_URI) $(CODENAME) $(ORIGIN)", "Created-By: Packages", "Component: main")


def _fetch(names: Sequence[str], folder: Path, release: str, machine: str) -> None:
    with tempfile.TemporaryDirectory(prefix="memcached-operator-apt-") as name:
        state = Path(name)
        state.chmod(0o755)  # apt reads it as a user of its own
        targets = _run("apt-get", "indextargets", *_FORMAT)
        if not targets.strip():  # nobody has said `apt-get update` here yet
            machines = _options(state / "machine")
            _run("apt-get", *machines, "update")
            targets = _run("apt-get", *machines, "indextargets", *_FORMAT)
        sources = sources_of(targets, release)
        if not sources:
            raise BuildError(f"apt has no sources of Debian on this machine: {_REMEDY}")
        listing = state / "sources.list"
        signed = f" [signed-by={_KEYRING}]" if _KEYRING.is_file() else ""
        listing.write_text("".join(f"deb{signed} {source.address} {source.suite} main\n" for source in sources))
        options = _options(state / "release")
        options += [f"-oDir::Etc::sourcelist={listing}", "-oDir::Etc::sourceparts=-"]
        options += [f"-oAPT::Architecture={machine}", f"-oAPT::Architectures={machine}"]
        _run("apt-get", *options, "update")
        _run("apt-get", *options, "download", *names, cwd=folder)


def _options(state: Path) -> list[str]:
    """apt with state of its own, in which nothing is installed."""
    (state / "lists" / "partial").mkdir(parents=True)
    (state / "cache" / "archives" / "partial").mkdir(parents=True)
    (state / "status").touch()
    return [
        "-qq",
        "-oAcquire::Retries=5",
        "-oAcquire::Languages=none",
        "-oAPT::Sandbox::User=root",  # `download` writes into a folder of ours
        f"-oDir::State::lists={state / 'lists'}",
        f"-oDir::State::status={state / 'status'}",
        f"-oDir::Cache={state / 'cache'}",
    ]


def _run(*command: str, cwd: Path | None = None) -> str:
    try:
        finished = subprocess.run(
            command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise BuildError(f"there is no {command[0]} on this machine: {_REMEDY}") from None
    if finished.returncode != 0:
        raise BuildError(f"{' '.join(command)}: exit code {finished.returncode}: {finished.stderr.strip()}; {_REMEDY}")
    return finished.stdout
