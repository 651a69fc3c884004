"""Kubernetes: etcd, its servers and kubectl, built as one binary."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from lab.cache import cache_dir, digest_of, kept
from lab.programs.go import MODULES, compile_module, required_version

MODULE_DIR = MODULES / "kubernetes"
MODULE_FILES = ("go.mod", "go.sum", "main.go")
# The names that main.go answers to.
PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
)


def kubernetes_version(go_mod: str) -> str:
    """The version of Kubernetes that a go.mod requires."""
    return required_version(go_mod, "k8s.io/kubernetes")


def cache_key(files: Mapping[str, bytes]) -> str:
    """The name of the cache's folder for a Go module with these files."""
    return f"kubernetes-{kubernetes_version(files['go.mod'].decode())}-{digest_of(files)}"


def bin_dir() -> Path:
    """Where the programs are once :func:`build` has run."""
    return cache_dir() / cache_key({name: (MODULE_DIR / name).read_bytes() for name in MODULE_FILES})


def is_built() -> bool:
    """Whether the programs of this module are in the cache."""
    return bin_dir().is_dir()


def build() -> Path:
    """Build what is not built yet and return the folder of the programs.

    Two builders at once do not collide: the second waits and finds the work done.

    Raises:
        BuildError: no Go toolchain could be had, or the compiler failed.
    """
    target = bin_dir()
    version = target.name.split("-")[1]
    return kept(target, f"Kubernetes {version}, about 5 minutes on 2 cores", lambda folder: _fill(folder, version))


def kubectl_path() -> str:
    """The kubectl of this module where it is built, else the machine's own, else this module's, built now.

    Raises:
        BuildError: there is none, and it cannot be built.
    """
    if not is_built() and (found := shutil.which("kubectl")):
        return found
    return str(build() / "kubectl")


def _fill(folder: Path, version: str) -> None:
    major, minor, _ = version.removeprefix("v").split(".", 2)
    stamps = {
        "k8s.io/component-base/version.gitVersion": version,
        "k8s.io/component-base/version.gitMajor": major,
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/client-go/pkg/version.gitVersion": version,  # what the programs call themselves in a User-Agent
    }
    compile_module(MODULE_DIR, folder / "kubernetes", stamps=stamps)
    for name in PROGRAMS:
        (folder / name).symlink_to("kubernetes")
