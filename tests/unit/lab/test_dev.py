"""What `./dev` alone says: every recipe, in the groups of the justfile."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.operator_process import PROJECT


def _printed() -> str:
    return subprocess.run([PROJECT / "dev"], capture_output=True, text=True, check=True).stdout


def _recipes() -> dict[str, set[str]]:
    """Names by group, as just has them."""
    dump = subprocess.run(
        [Path(sys.executable).with_name("just"), "--justfile", PROJECT / "justfile", "--dump", "--dump-format=json"],
        capture_output=True,
        check=True,
    ).stdout
    groups: dict[str, set[str]] = {}
    for name, recipe in json.loads(dump)["recipes"].items():
        (group,) = (each["group"] for each in recipe["attributes"] if isinstance(each, dict) and "group" in each)
        groups.setdefault(group, set()).add(name)
    return groups


def test_alone_it_names_each_recipe_once_in_its_group() -> None:
    _, *parts = re.split(r"^(\w+)\n", _printed(), flags=re.MULTILINE)
    named = {}
    for group, text in zip(parts[::2], parts[1::2], strict=True):
        leading = re.findall(r"^    ([a-z-]+)  ", text, flags=re.MULTILINE)
        others = re.findall(r"(?:^    (?:also|from sources):|^    (?=[a-z-]+ [a-z-]+$))(.*)", text, flags=re.MULTILINE)
        names = [*leading, *" ".join(others).split()]
        assert len(names) == len(set(names))
        named[group.lower()] = set(names)
    assert named == _recipes()
