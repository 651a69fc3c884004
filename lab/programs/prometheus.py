"""Prometheus, built from its Go module as the control plane is: Debian's is made without Kubernetes' discovery."""

from pathlib import Path

from lab.cache import cache_dir, digest_of, kept
from lab.programs.go import MODULES, compile_module, required_version

_MODULE = "github.com/prometheus/prometheus"
_FOLDER = MODULES / "prometheus"
_FILES = ("go.mod", "go.sum")
# Those of some thirty clouds would take most of the time.
_TAGS = ("remove_all_sd", "enable_kubernetes_sd")


def build() -> Path:
    """The program; built first where that was not done yet.

    Raises:
        BuildError: no Go toolchain could be had, or the compiler failed.
    """
    target = _folder()
    version = required_version((_FOLDER / "go.mod").read_text(), _MODULE)
    return kept(target, f"Prometheus {version}, about 3 minutes on 2 cores", _fill) / "prometheus"


def _folder() -> Path:
    files = {name: (_FOLDER / name).read_bytes() for name in _FILES}
    return cache_dir() / f"prometheus-{required_version(files['go.mod'].decode(), _MODULE)}-{digest_of(files)}"


def _fill(folder: Path) -> None:
    version = required_version((_FOLDER / "go.mod").read_text(), _MODULE)
    stamps = {"github.com/prometheus/common/version.Version": release(version)}
    compile_module(_FOLDER, folder / "prometheus", package=f"{_MODULE}/cmd/prometheus", stamps=stamps, tags=_TAGS)


def release(version: str) -> str:
    """The release that a version of the module is: 3.12.0 is v0.312.0 there, as Go wants another name for a v3."""
    number = version.removeprefix("v0.")
    return f"{number[0]}.{int(number[1:3])}{number[3:]}"
