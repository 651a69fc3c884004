"""Helm, built from its Go module as the control plane is, and calls of it as a user makes them."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from lab.cache import BuildError, cache_dir, digest_of, kept
from lab.programs import go_tools
from lab.programs.go import MODULES, compile_module, required_version

MAJORS = (3, 4)
"""Releases of Helm that the chart is for; the first is the one that `./dev helm` is."""
_FILES = ("go.mod", "go.sum")


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
    variables: Mapping[str, str] = {},
    check: bool = True,
    major: int = MAJORS[0],
) -> subprocess.CompletedProcess[str]:
    """Run it with nothing of the caller's environment.

    Args:
        kubeconfig: the cluster for ``install`` and the like; others need none.
        variables: its environment; without a HOME its caches are in a folder that is gone afterwards.

    Raises:
        BuildError: it is not there and cannot be built.
        ToolError: it failed, and ``check`` is true.
    """
    with tempfile.TemporaryDirectory(prefix="helm-") as home:
        own = {"HOME": home} | ({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})
        return go_tools.call(build(major), *arguments, variables={**own, **variables}, check=check)


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
