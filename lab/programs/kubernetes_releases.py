"""Other releases of Kubernetes than the lab's own: kube-apiserver and kube-controller-manager, each from its module.

What a release of Kubernetes does is for that release's servers to say. etcd and kubectl are those of the lab's own.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from lab.cache import cache_dir, digest_of, kept
from lab.programs import kubernetes
from lab.programs.go import MODULES, compile_module

_FOLDER = MODULES / "kubernetes_releases"
_FILES = ("go.mod", "go.sum")
_PROGRAMS = ("kube-apiserver", "kube-controller-manager")

RELEASES = tuple(sorted(folder.name for folder in _FOLDER.iterdir()))
"""Those that there is a module of, such as ``1.30``: the oldest that the operator works with, and the newest."""

VARIABLE = "MEMCACHED_OPERATOR_LAB_KUBERNETES"
"""Names the release of each control plane that is started; the lab's own where it is not set."""


def build(release: str) -> Path:
    """Build a release's servers if they are not built, and return the folder with them and etcd.

    Raises:
        BuildError: no Go toolchain could be had, or the compiler failed.
    """
    module = _FOLDER / release
    files = {name: (module / name).read_bytes() for name in _FILES}
    version = kubernetes.kubernetes_version(files["go.mod"].decode())
    lab_own = kubernetes.build()

    def fill(folder: Path) -> None:
        for name in _PROGRAMS:
            package = f"k8s.io/kubernetes/cmd/{name}"
            compile_module(module, folder / name, package=package, stamps=kubernetes.stamps(version))
        (folder / "etcd").symlink_to(lab_own / "kubernetes")

    target = cache_dir() / f"kubernetes-{version}-{digest_of(files | {'etcd': str(lab_own).encode()})}"
    return kept(target, f"Kubernetes {version}, about 6 minutes on 2 cores", fill)


def chosen(environment: Mapping[str, str] = os.environ) -> Path:
    """Build the release that `VARIABLE` names, or the lab's own, and return the folder.

    Raises:
        BuildError: as `build` does.
        ValueError: the variable names a release that there is no module of.
    """
    release = environment.get(VARIABLE)
    if not release:
        return kubernetes.build()
    if release not in RELEASES:
        raise ValueError(f"{VARIABLE}={release!r} is none of {', '.join(RELEASES)}")
    return build(release)
