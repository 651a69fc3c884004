"""Names of public classes: one in the product and the runtime, so that a search for it finds one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def test_each_public_class_has_a_name_of_its_own() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for package in ("memcached_operator", "operator_runtime"):
        for path in sorted((PROJECT / package).rglob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(path.relative_to(PROJECT).as_posix())
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
