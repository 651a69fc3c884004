"""CoreDNS, the cluster's DNS: its program from a Go module, its image, and its objects."""

import tempfile
from pathlib import Path

from lab.cache import cache_dir, digest_of, kept
from lab.image import archives, debian
from lab.node.network import Addresses
from lab.programs import go

_MODULE_DIR = go.MODULES / "coredns"
_MODULE_FILES = ("go.mod", "go.sum", "main.go")
_MODULE = "github.com/coredns/coredns"
_OBJECTS = Path(__file__).with_name("coredns.yaml")


def version() -> str:
    """Version of CoreDNS, such as ``v1.15.0``."""
    return go.required_version((_MODULE_DIR / "go.mod").read_text(), _MODULE)


def image_name() -> str:
    """Name of the image on a node."""
    return f"localhost/memcached-operator-lab/coredns:{version().removeprefix('v')}"


def image() -> Path:
    """The image as a docker-archive, built once and kept in the user's cache.

    Raises:
        BuildError: no Go toolchain could be had, or the compiler failed.
    """
    recipe = {name: (_MODULE_DIR / name).read_bytes() for name in _MODULE_FILES}
    folder = cache_dir() / f"coredns-{version()}-{digest_of(recipe)}"
    return kept(folder, f"CoreDNS {version()}, about 2 minutes on 2 cores", _fill) / "image.tar"


def objects(mine: Addresses) -> str:
    """Return what is applied to a cluster, as YAML."""
    text = _OBJECTS.read_text()
    return text.replace("DNS_ADDRESS", mine.dns).replace("IMAGE", image_name())


def _fill(folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="memcached-operator-coredns-") as temporary:
        root = Path(temporary)
        go.compile_module(_MODULE_DIR, root / "coredns", stamps={})
        config = archives.Config(architecture=debian.architecture(), entrypoint=("/coredns",))
        archives.write(root, folder / "image.tar", image_name(), config)
