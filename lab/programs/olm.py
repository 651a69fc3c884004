"""The Operator Lifecycle Manager's programs, built from their Go modules as the control plane is.

The modules are those of one release: what a CSV may say is judged by the same code in all of them.
"""

import shutil
from pathlib import Path

from lab.cache import cache_dir, digest_of, kept
from lab.programs.go import MODULES, compile_module, required_version, source_of

_FOLDER = MODULES / "olm"
_VERIFY = "verify_bundle"
_FILES = ("go.mod", "go.sum", f"{_VERIFY}/main.go")
_API = "github.com/operator-framework/api"
_OLM = "github.com/operator-framework/operator-lifecycle-manager"
_REGISTRY = "github.com/operator-framework/operator-registry"
# Without SQLite's, GnuPG's and btrfs' C libraries, as OLM's own builds have them; opm reads images by these packages.
_TAGS = ("json1", "containers_image_openpgp", "exclude_graphdriver_btrfs")


def validators() -> Path:
    """Build what reads a bundle without a cluster, if it is not built, and return the folder.

    `verify_bundle` says what is wrong with a bundle by OLM's and OperatorHub's rules, `opm` makes catalogs of bundles
    and serves them.

    Raises:
        BuildError: no Go toolchain could be had, or the compiler failed.
    """
    return kept(_folder("bundles", _REGISTRY), f"opm and {_VERIFY}, about 3 minutes on 2 cores", _fill_validators)


def has_validators() -> bool:
    """Report whether :func:`validators` would build nothing."""
    return _folder("bundles", _REGISTRY).is_dir()


def controllers() -> Path:
    """Build OLM if it is not built, and return the folder.

    `olm` and `catalog` are its controllers. `cpb` and `copy-content` are what its images have to unpack bundles. `crds`
    has the definitions of its kinds: those of the API's module, of which the releases' manifests have an older state.

    Raises:
        BuildError: no Go toolchain could be had, or the compiler failed.
    """
    return kept(_folder("olm", _OLM), "OLM, about 4 minutes on 2 cores", _fill_controllers)


def _folder(name: str, module: str) -> Path:
    files = {file: (_FOLDER / file).read_bytes() for file in _FILES}
    return cache_dir() / f"{name}-{required_version(files['go.mod'].decode(), module)}-{digest_of(files)}"


def _fill_validators(folder: Path) -> None:
    _compile(f"./{_VERIFY}", folder)
    _compile(f"{_REGISTRY}/cmd/opm", folder)


def _fill_controllers(folder: Path) -> None:
    for package in ("cmd/olm", "cmd/catalog", "cmd/copy-content", "util/cpb"):
        _compile(f"{_OLM}/{package}", folder)
    shutil.copytree(source_of(_FOLDER, _API) / "crds", folder / "crds", ignore=shutil.ignore_patterns("*.go"))


def _compile(package: str, folder: Path) -> None:
    compile_module(_FOLDER, folder / package.rpartition("/")[2], package=package, stamps={}, tags=_TAGS)
