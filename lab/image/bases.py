"""Stand-ins for images that a registry would give, made of Debian's packages where none can be reached.

``PYTHON`` has the files of the Dockerfile's BASE_IMAGE, as that too is made of Debian's packages unpacked;
``PYTHON_BUILD`` has pip and a shell besides, for its BUILD_IMAGE. ``MEMCACHED``, ``BUSYBOX`` and ``PAUSE`` are for
nodes, which take them for what their names say, and ``CLIENT`` for a user's program that is a client of memcached.
``MEMCACHED`` has the memcached of Debian's unstable, which is of the release that the operator's pods run or newer;
where that cannot be had, or does not run on the other packages, the one of their own release.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path

from lab.cache import BuildError, digest_of, kept
from lab.image import archives, debian, newest

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
# Where Debian's Python looks, whichever of 3 it is.
_LIBRARIES = "usr/lib/python3/dist-packages"
# The user `nonroot` of the base image, and the one of memcached's.
NONROOT, MEMCACHED_USER = 65532, 11211
MEMCACHED_PROGRAM = "usr/bin/memcached"

_SYSTEM = ("base-files", "libc6", "netbase", "tzdata", "media-types", "ca-certificates")
_TLS = ("libssl3t64", "libzstd1", "zlib1g")
_CXX = ("gcc-14-base", "libgcc-s1", "libgomp1", "libstdc++6")
_PYTHON = (
    *("libpython3.13-minimal", "libpython3.13-stdlib", "python3.13-minimal", "python3.13-venv"),
    *("libbz2-1.0", "libcom-err2", "libcrypt1", "libdb5.3t64", "libexpat1", "libffi8", "libgssapi-krb5-2"),
    *("libk5crypto3", "libkeyutils1", "libkrb5-3", "libkrb5support0", "liblzma5", "libncursesw6", "libnsl2"),
    *("libreadline8t64", "libsqlite3-0", "libtinfo6", "libtirpc3t64", "libuuid1"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """An image to be made: packages to unpack, what is done to their files then, and what a container of it does."""

    packages: tuple[str, ...]
    libraries: tuple[str, ...] = ()
    """Python's, by their names in its package index: as they are beside the Python that runs this, and not compiled."""
    newest: Mapping[str, str] = field(default_factory=dict)
    """Which of the packages are as new as there is, where that works, and by which program of theirs it is tried."""
    finish: Callable[[Path], None] = lambda _: None
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    user: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    is_tool: bool = False
    """Its programs run while an image is built, and nothing of them is in it. They are this machine's, whatever machine
    the image is for, as emulated ones take ten times as long; builders go by what it says it is for."""


def archive(stand_in: StandIn, name: str, cache: Path, machine: str = "") -> Path:
    """The image as an archive that `docker load`, `buildah pull docker-archive:` and `ctr images import` take.

    Args:
        name: its name with its tag.
        cache: a folder where it is kept and found again. Newer packages are not looked for.
        machine: the architecture that it is for, "" for that of this machine.

    Raises:
        BuildError: Debian's packages cannot be had.
    """
    short = name.rpartition("/")[2].replace(":", "-").replace("@", "-")
    machine = machine or debian.architecture()
    key = digest_of({"name": name.encode(), "recipe": recipe_of(stand_in, machine).encode()})
    target = cache / f"stand-in-{short}-{key}"
    kept(target, f"a stand-in for the image {name}", lambda folder: _make(stand_in, name, folder, cache, machine))
    return target / "image.tar"


def recipe_of(stand_in: StandIn, machine: str = "") -> str:
    """What tells it from one that is made otherwise, or for another machine, in twelve characters."""
    files = (__file__, archives.__file__, debian.__file__, newest.__file__)
    code = {path.name: path.read_bytes() for path in map(Path, files)}
    libraries = (f"{name}=={_library(name).version}" for name in stand_in.libraries)
    which = " ".join(
        (
            *stand_in.packages,
            *stand_in.newest,
            *libraries,
            *stand_in.entrypoint,
            *stand_in.command,
            machine or debian.architecture(),
        )
    )
    return digest_of(code | {"": which.encode()})


def unpacked(stand_in: StandIn, cache: Path) -> Path:
    """The image's files in a folder of the cache, for programs that this machine runs (:func:`newest.command`).

    Raises:
        BuildError: Debian's packages cannot be had.
    """
    target = cache / f"files-{recipe_of(stand_in)}"
    return kept(target, "a folder of a stand-in's files", lambda folder: _fill(stand_in, folder, cache))


def _make(stand_in: StandIn, name: str, folder: Path, cache: Path, machine: str) -> None:
    with tempfile.TemporaryDirectory(prefix="memcached-operator-image-") as temporary:
        root = Path(temporary) / "root"
        root.mkdir()
        _fill(stand_in, root, cache, "" if stand_in.is_tool else machine)
        config = archives.Config(
            architecture=machine,
            command=stand_in.command,
            entrypoint=stand_in.entrypoint,
            user=str(stand_in.user) if stand_in.user else "",
            environment={"PATH": _PATH, **stand_in.environment},
        )
        archives.write(root, folder / "image.tar", name, config)


def _fill(stand_in: StandIn, root: Path, cache: Path, machine: str = "") -> None:
    packages = debian.fetched({package for each in ALL for package in each.packages}, cache, machine=machine)
    debian.unpack(packages, stand_in.packages, root)
    for package, program in stand_in.newest.items():
        newest.put(package, program, root, cache)
    for library in stand_in.libraries:
        _copy_library(library, root / _LIBRARIES)
    stand_in.finish(root)


def _library(name: str) -> metadata.Distribution:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise BuildError(f"{name} is not installed beside this Python; requirements.lock has it") from None


def _copy_library(name: str, folder: Path) -> None:
    for file in _library(name).files or ():
        if file.suffix == ".py":
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), folder / file)


def _write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _users(root: Path) -> None:
    _write(root, "etc/group", f"root:x:0:\nnogroup:x:65534:\nmemcache:x:{MEMCACHED_USER}:\nnonroot:x:{NONROOT}:\n")
    lines = (
        "root:x:0:0:root:/root:/sbin/nologin",
        "nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin",
        f"memcache:x:{MEMCACHED_USER}:{MEMCACHED_USER}:memcache:/nonexistent:/sbin/nologin",
        f"nonroot:x:{NONROOT}:{NONROOT}:nonroot:/home/nonroot:/sbin/nologin",
    )
    _write(root, "etc/passwd", "\n".join(lines) + "\n")
    _write(root, "etc/nsswitch.conf", "hosts: files dns\n")


def _python(root: Path) -> None:
    _users(root)
    (root / "home" / "nonroot").mkdir()
    certificates = sorted((root / "usr/share/ca-certificates/mozilla").glob("*.crt"))
    _write(root, _CERTIFICATES, "".join(path.read_text() for path in certificates))
    for name in ("python", "python3"):
        (root / "usr/bin" / name).symlink_to("python3.13")


def _python_build(root: Path) -> None:
    _python(root)
    shell = root / "usr/bin/sh"
    if not shell.is_symlink():
        shell.symlink_to("dash")


def _applets(root: Path) -> None:
    """What `busybox --install` would do: a name for each thing that it can be called as."""
    folder = root / "usr/bin"
    busybox = folder / "busybox"
    try:
        listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"Debian's busybox does not run on this machine: {error}") from None
    for name in listed.stdout.split():
        if not os.path.lexists(folder / name):
            (folder / name).symlink_to("busybox")


def _small(root: Path) -> None:
    _users(root)
    _applets(root)


_BASE = {"SSL_CERT_FILE": f"/{_CERTIFICATES}", "LANG": "C.UTF-8"}

PYTHON = StandIn(
    packages=(*_SYSTEM, *_TLS, *_CXX, *_PYTHON),
    finish=_python,
    entrypoint=("/usr/bin/python3.13",),
    user=NONROOT,
    environment=_BASE,
)
PYTHON_BUILD = StandIn(
    packages=(*PYTHON.packages, "dash", "python3-pip", "python3-wheel"),
    finish=_python_build,
    environment=_BASE,
    is_tool=True,
)
CLIENT = StandIn(
    packages=PYTHON.packages,
    libraries=("pymemcache",),
    finish=_python,
    entrypoint=PYTHON.entrypoint,
    user=NONROOT,
    environment={**_BASE, "PYTHONDONTWRITEBYTECODE": "1"},
)
# With busybox, as the real one in its smaller variant has it: a shell to look around with.
MEMCACHED = StandIn(
    packages=(
        *("base-files", "libc6", *_TLS, "libevent-2.1-7t64", "liblua5.4-0", "libsasl2-2"),
        *("memcached", "busybox-static"),
    ),
    newest={"memcached": MEMCACHED_PROGRAM},
    finish=_small,
    command=("memcached",),
    user=MEMCACHED_USER,
)
# Of the release that the other packages are of: it has the proxy, and is older than 1.6.45.
OLDER_MEMCACHED = replace(MEMCACHED, newest={})
BUSYBOX = StandIn(packages=("base-files", "busybox-static"), finish=_small, command=("sh",))
# What a kubelet's container runtime holds a pod's namespaces open with.
PAUSE = StandIn(packages=("base-files", "busybox-static"), finish=_small, entrypoint=("sleep", "infinity"), user=65535)

ALL = (PYTHON, PYTHON_BUILD, CLIENT, MEMCACHED, BUSYBOX, PAUSE)
