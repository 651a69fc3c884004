"""The pages for readers of the code name only what the code has."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PAGES = (
    *("README.md", "CONTRIBUTING.md"),
    *(f"docs/{page}.md" for page in ("architecture", "decisions", "from-the-guides", "reliability", "simulator")),
)
# Where the files lie that the pages name.
_TOPS = (
    "memcached_operator",
    "operator_runtime",
    "kube_simulator",
    "lab",
    "tests",
    "docs",
    "examples",
    "benchmarks",
    "kubectl_memcached",
)

_FIELDS = {"metadata", "spec", "status"}
_DOTTED = re.compile(r"`([A-Za-z_]\w*)\.([A-Za-z_]\w*)(?:\(\))?`")
_FILE = re.compile(r"(?<![\w/.-])((?:\w+/)*\w+\.py)(?:(?:::|<br/>)(?!\w+\.py)(\w+(?:(?:\.|::)\w+)*))?")


def members(node: ast.AST) -> set[str]:
    """What a module or a class defines, with what its methods set on `self`."""
    found: set[str] = set()
    for each in ast.walk(node):
        match each:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
            case _:
                pass
    return found


@cache
def defined() -> dict[str, set[str]]:
    """What the modules and classes of the three packages have, by the module's or the class's name."""
    found: dict[str, set[str]] = {}
    for package in _TOPS[:3]:
        for path in (PROJECT / package).rglob("*.py"):
            tree = ast.parse(path.read_text())
            found.setdefault(path.stem, set()).update(members(tree))
            for node in tree.body:
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, set()).update(members(node))
    return found


def has(owner: str, name: str) -> bool:
    """Whether a module or a class has that name; a class of a module that is no more has not."""
    if owner in defined():
        return name in (*defined()[owner], "py", "md", "json")
    return not name[0].isupper() or find_spec(owner) is not None


def is_there(name: str, known: set[str]) -> bool:
    """Whether a dotted name is of these, or of a module or a class elsewhere."""
    parts = re.split(r"\.|::", name)
    if parts[0] in known:
        return set(parts) <= known
    return all(part in defined().get(owner, ()) for owner, part in pairwise(parts)) and parts[0] in defined()


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_for_readers_of_the_code_name_only_what_is_there(page: str) -> None:
    text = re.sub(r'title="[^"]+"', "", (PROJECT / page).read_text())
    gone = [f"{owner}.{name}" for owner, name in _DOTTED.findall(text) if owner not in _FIELDS and not has(owner, name)]
    files = [path.relative_to(PROJECT).as_posix() for top in _TOPS for path in (PROJECT / top).rglob("*.py")]
    for file, name in _FILE.findall(text):
        places = [each for each in files if f"/{each}".endswith(f"/{file}")]
        known = {part for each in places for part in members(ast.parse((PROJECT / each).read_text()))}
        if not places or (name and not is_there(name, known)):
            gone.append(f"{file}::{name}" if name else file)
    assert gone == []


def test_each_promise_of_reliability_names_its_test() -> None:
    lines = (PROJECT / "docs" / "reliability.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| fault |")]
    assert len(rows) > 20
    assert [row for row in rows if "::test_" not in row] == []
