"""Kubernetes: etcd and its servers, built as one binary, and kubectl, which is there long before them."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.cache import cache_dir, digest_of, kept
from lab.programs.go import MODULES, compile_module, required_version

MODULE_DIR = MODULES / "kubernetes"
_MODULE_FILES = ("go.mod", "go.sum", "main.go")
_KUBECTL_FILES = ("go.mod", "go.sum", "kubectl/main.go")
# The names that main.go answers to.
PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubelet",
)


def kubernetes_version(go_mod: str) -> str:
    """The version of Kubernetes that a go.mod requires."""
    return required_version(go_mod, "k8s.io/kubernetes")


def cache_key(name: str, files: Mapping[str, bytes]) -> str:
    """The name of the cache's folder for a program of a Go module with these files."""
    return f"{name}-{kubernetes_version(files['go.mod'].decode())}-{digest_of(files)}"


def bin_dir() -> Path:
    """Return the folder of the servers once :func:`build` has run."""
    return _folder("kubernetes", _MODULE_FILES)


def is_built() -> bool:
    """Report whether the servers are in the cache."""
    return bin_dir().is_dir()


def build() -> Path:
    """Build what is not built yet, kubectl first, and return the folder of the servers.

    Two builders at once do not collide: the second waits and finds the work done.

    Raises:
        BuildError: no Go toolchain could be had, or the compiler failed.
    """
    kubectl()
    target = bin_dir()
    version = _version(target)

    def fill(folder: Path) -> None:
        compile_module(MODULE_DIR, folder / "kubernetes", stamps=stamps(version))
        for name in PROGRAMS:
            (folder / name).symlink_to("kubernetes")

    return kept(target, f"Kubernetes {version}, about 5 minutes on 2 cores", fill)


def kubectl() -> Path:
    """The kubectl of this module, built first where that was not done yet. Raises BuildError: see :func:`build`."""
    target = _folder("kubectl", _KUBECTL_FILES)
    version = _version(target)

    def fill(folder: Path) -> None:
        compile_module(MODULE_DIR, folder / "kubectl", package="./kubectl", stamps=stamps(version))

    return kept(target, f"kubectl {version}, about a minute on 2 cores", fill) / "kubectl"


def kubectl_path() -> str:
    """The kubectl of this module where it is built, else the machine's own, else this module's, built now.

    Raises:
        BuildError: there is none, and it cannot be built.
    """
    if not _has_own_kubectl() and (found := shutil.which("kubectl")):
        return found
    return str(kubectl())


def has_kubectl() -> bool:
    """Report whether :func:`kubectl_path` builds nothing."""
    return _has_own_kubectl() or shutil.which("kubectl") is not None


def _has_own_kubectl() -> bool:
    return _folder("kubectl", _KUBECTL_FILES).is_dir()


def _folder(name: str, files: Sequence[str]) -> Path:
    return cache_dir() / cache_key(name, {file: (MODULE_DIR / file).read_bytes() for file in files})


def _version(folder: Path) -> str:
    return folder.name.split("-")[1]


def stamps(version: str) -> Mapping[str, str]:
    """Make the linker's values for the programs of a version of Kubernetes, so that they report which one they are."""
    major, minor, _ = version.removeprefix("v").split(".", 2)
    return {
        "k8s.io/component-base/version.gitVersion": version,
        "k8s.io/component-base/version.gitMajor": major,
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/client-go/pkg/version.gitVersion": version,  # what the programs call themselves in a User-Agent
    }
