"""Names of public classes and functions: one in the product and the runtime, so that a search finds one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PROJECT = Path(__file__).parents[2]
# What modules of one kind are entered by: the commands, and what a feature adds to a pod.
ENTRIES = {"main", "run", "pod"}


def test_each_public_class_and_function_has_a_name_of_its_own() -> None:
    places: defaultdict[str, set[str]] = defaultdict(set)
    for package in ("kubectl_memcached", "memcached_operator", "operator_runtime"):
        for path in sorted((PROJECT / package).rglob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_":
                    places[node.name].add(path.relative_to(PROJECT).as_posix())
    for name in ENTRIES:
        del places[name]
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
