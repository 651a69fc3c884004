"""Helm, built from its Go module as the control plane is, and calls of it as a user makes them."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from lab.cache import BuildError, cache_dir, digest_of, kept
from lab.programs.go import MODULES, compile_module, required_version

MAJORS = (3, 4)
"""Releases of Helm that the chart is for; the first is the one that `./dev helm` is."""
_FILES = ("go.mod", "go.sum")
_TIMEOUT_S = 120.0


class HelmError(Exception):
    """Helm did not do what was asked; the message carries its words."""


def build(major: int = MAJORS[0]) -> Path:
    """Build it if it is not built yet, and return its path.

    Whatever ``helm`` the machine has is left alone: what it prints depends on its version.

    Raises:
        BuildError: no Go toolchain could be had, or the compiler failed.
    """
    target = _folder(major)
    version = target.name.split("-")[1]
    return kept(target, f"Helm {version}, about 2 minutes on 2 cores", partial(_fill, major)) / "helm"


def helm(
    *arguments: str,
    kubeconfig: Path | None = None,
    home: Path | None = None,
    check: bool = True,
    major: int = MAJORS[0],
) -> subprocess.CompletedProcess[str]:
    """Run it with nothing of the caller's environment.

    Args:
        kubeconfig: the cluster for ``install`` and the like; others need none.
        home: where it keeps its caches; a folder that is gone afterwards where none is given.

    Raises:
        BuildError: it is not there and cannot be built.
        HelmError: it failed, and ``check`` is true.
    """
    with tempfile.TemporaryDirectory(prefix="helm-") as own:
        variables = {"HOME": str(home or own)} | ({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})
        finished = subprocess.run(
            [build(major), *arguments],
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    if check and finished.returncode != 0:
        words = finished.stderr.strip() or finished.stdout.strip()
        raise HelmError(f"helm {' '.join(arguments)}: exit code {finished.returncode}: {words}")
    return finished


def _module(major: int) -> str:
    return f"helm.sh/helm/v{major}"


def _folder(major: int) -> Path:
    files = {name: (MODULES / f"helm{major}" / name).read_bytes() for name in _FILES}
    return cache_dir() / f"helm-{required_version(files['go.mod'].decode(), _module(major))}-{digest_of(files)}"


def _fill(major: int, folder: Path) -> None:
    module, go_mod = _module(major), (MODULES / f"helm{major}" / "go.mod").read_text()
    # The Kubernetes that `helm template` and `helm lint` take for granted is that of the client, as in Helm's releases.
    _, minor, _ = required_version(go_mod, "k8s.io/client-go").split(".", 2)
    constants = ("pkg/chartutil", "pkg/lint/rules") if major == 3 else ("pkg/chart/common",)
    stamps = {f"{module}/internal/version.version": required_version(go_mod, module)} | {
        f"{module}/{package}.k8sVersion{part}": value
        for package in constants
        for part, value in (("Major", "1"), ("Minor", minor))
    }
    compile_module(MODULES / f"helm{major}", folder / "helm", package=f"{module}/cmd/helm", stamps=stamps)


def main(arguments: Sequence[str]) -> int:
    """Become Helm; returns only where it cannot be had."""
    try:
        program = build()
    except BuildError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    os.execv(program, ["helm", *arguments])
    raise AssertionError("execv does not return")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
