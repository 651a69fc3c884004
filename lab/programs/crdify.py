"""crdify, built from its Go module as the control plane is: what of a CustomResourceDefinition another one breaks."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lab.cache import cache_dir, digest_of, kept
from lab.programs.go import MODULES, compile_module, required_version

_MODULE = "sigs.k8s.io/crdify"
_FOLDER = MODULES / "crdify"
_FILES = ("go.mod", "go.sum")
# Words may change. The default of an object repeats those of its fields, and changes with each new one. What no check
# of crdify's is about is a warning: rules in CEL, which a new field may bring, and patterns.
_CONFIG = {
    "validations": [{"name": name, "enforcement": "None"} for name in ("description", "default")],
    "unhandledEnforcement": "Warn",
}


def build() -> Path:
    """The program; built first where that was not done yet.

    Raises:
        BuildError: no Go toolchain could be had, or the compiler failed.
    """
    return kept(_folder(), "crdify, about a minute on 2 cores", _fill) / "crdify"


def is_built() -> bool:
    """Report whether :func:`build` would build nothing."""
    return _folder().is_dir()


def breaking_changes(old: Path, new: Path) -> list[str]:
    """List what a definition breaks of an older one, with the path of the field: its type, bounds, values, versions.

    Raises:
        BuildError: as `build` does.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump(_CONFIG, config)
        config.flush()
        command: list[str | Path] = [
            build(),
            f"file://{old}",
            f"file://{new}",
            "--config",
            config.name,
            "--output",
            "json",
        ]
        finished = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if not finished.stdout.startswith("{"):
        raise RuntimeError(f"crdify: exit code {finished.returncode}: {finished.stderr.strip()}")
    return sorted(_errors(json.loads(finished.stdout)))


def _errors(found: object, path: str = "") -> Iterator[str]:
    """What is wrong in the answer, which has lists of checks below versions and fields."""
    match found:
        case {"name": str(), "errors": [*errors]}:
            yield from (f"{path}: {error}".replace(" ^", "").replace(".^", "") for error in errors)
        case dict():
            for name, each in found.items():
                yield from _errors(each, f"{path} {name}".strip())
        case [*items]:
            for each in items:
                yield from _errors(each, path)


def _folder() -> Path:
    files = {name: (_FOLDER / name).read_bytes() for name in _FILES}
    return cache_dir() / f"crdify-{required_version(files['go.mod'].decode(), _MODULE)}-{digest_of(files)}"


def _fill(folder: Path) -> None:
    compile_module(_FOLDER, folder / "crdify", package=_MODULE, stamps={})
