"""crdify: what of a CustomResourceDefinition another one breaks."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lab.programs import go_tools

# Words may change. The default of an object repeats those of its fields, and changes with each new one. What no check
# of crdify's is about is a warning: rules in CEL, which a new field may bring, and patterns.
_CONFIG = {
    "validations": [{"name": name, "enforcement": "None"} for name in ("description", "default")],
    "unhandledEnforcement": "Warn",
}


def breaking_changes(old: Path, new: Path) -> list[str]:
    """List what a definition breaks of an older one, with the path of the field: its type, bounds, values, versions.

    Raises:
        BuildError: crdify is not built, and cannot be.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump(_CONFIG, config)
        config.flush()
        command: list[str | Path] = [
            go_tools.build("crdify"),
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
