"""Programs that are one package of a Go module each, and called as they are: built once, kept in the cache."""

import re
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from lab.cache import cache_dir, digest_of, kept
from lab.programs.go import MODULES, compile_module, required_version

_FILES = ("go.mod", "go.sum")
TOOLS: Final[Mapping[str, str]] = {
    "cosign": "about 5 minutes",
    "crdify": "about a minute",
    "registry": "about a minute",
    "syft": "about 4 minutes",
}
"""How long it takes to build each, by the name of its folder in modules/. The go.mod there has the program's package as
its `tool`."""


class ToolError(Exception):
    """A tool did not do what was asked; the message carries its words."""


def build(name: str) -> Path:
    """Build a tool if it is not built yet, and return its path.

    Raises:
        BuildError: no Go toolchain could be had, or the compiler failed.
    """
    target = _folder(name)
    return kept(target, f"{name}, {TOOLS[name]} on 2 cores", partial(_fill, name)) / name


def is_built(name: str) -> bool:
    """Report whether :func:`build` would build nothing."""
    return _folder(name).is_dir()


def run(name: str, *arguments: str, variables: Mapping[str, str] = {}, timeout_s: float = 120.0) -> str:
    """Run a tool, and return its standard output; see :func:`call`.

    Raises:
        BuildError: it is not there and cannot be built.
        ToolError: it failed.
    """
    return call(build(name), *arguments, variables=variables, timeout_s=timeout_s).stdout


def call(
    program: Path, *arguments: str, variables: Mapping[str, str] = {}, timeout_s: float = 120.0, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a program without input.

    Args:
        variables: its environment, besides a PATH.

    Raises:
        ToolError: it failed, and ``check`` is true.
    """
    finished = subprocess.run(
        [program, *arguments],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if check and finished.returncode != 0:
        words = finished.stderr.strip() or finished.stdout.strip()
        raise ToolError(f"{program.name} {' '.join(arguments)}: exit code {finished.returncode}: {words}")
    return finished


def _package(name: str) -> str:
    [package] = re.findall(r"^tool (\S+)$", (MODULES / name / "go.mod").read_text(), re.MULTILINE)
    return str(package)


def _folder(name: str) -> Path:
    files = {file: (MODULES / name / file).read_bytes() for file in _FILES}
    module = re.sub(r"/cmd/.*", "", _package(name))
    return cache_dir() / f"{name}-{required_version(files['go.mod'].decode(), module)}-{digest_of(files)}"


def _fill(name: str, folder: Path) -> None:
    compile_module(MODULES / name, folder / name, package=_package(name), stamps={})
