"""No test depends on how busy the machine is, or on what Kubernetes does by itself: as far as the syntax shows it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]

_CLOCK = r"(?:monotonic|monotonic_ns|perf_counter|process_time|loop\.time|time\.time|datetime\.now)\([^()]*\)"
_MEASURED = r"\b\w*?(?:elapsed|took|latency|rss|cpu|descriptors|threads|resident)(?:_\w+)?"
_ALL_THAT_WAS_SAID = r"[\w.]*?\b(?:lines(?:\[\w+:\])?|complaints\(\)|audit_events\([^()]*\)|caplog\.messages)"
# Each with what is done in its place. The soak looks for leaks, which only bounds can tell; in unit tests the log is of
# the test's own process, and its clocks are fakes.
RULES = {
    "no bound on how long something takes: wait with a generous deadline, or show it on a fake clock": (
        re.compile(rf"^assert (?!.*(?:deadline|ends)).*(?:{_CLOCK} - [\w.]+|{_MEASURED}) <=? (?!0\b)"),
        ("faults/test_soak.py",),
    ),
    "no sleep for a fixed time: wait for the event (operator_runtime.testing.waiting), or pass in a fake clock": (
        re.compile(r"^(?:await )?(?:time|asyncio)\.sleep\((?:[1-9]|0\.\d|[A-Z]\w*\))"),
        (),
    ),
    "no equality with all that a running process said or requested: name what must be there, and what must not": (
        re.compile(rf"^assert (?:not {_ALL_THAT_WAS_SAID}$|{_ALL_THAT_WAS_SAID} == )"),
        ("unit/",),
    ),
    "no namespace but by the helper in tests/cluster.py: it waits for what Kubernetes puts into each": (
        re.compile(r"'create', 'namespace'(?!.*--dry-run)|\.post\('/api/v1/namespaces'"),
        ("unit/", "cluster.py"),
    ),
}


def statements(tree: ast.AST, polls: bool = False) -> Iterator[ast.stmt]:
    """The simple statements of a file, without the sleeps of a loop that looks again."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Assert() | ast.Expr() | ast.Assign() | ast.AnnAssign() | ast.Return():
                if not (polls and ".sleep(" in ast.unparse(node)):
                    yield node
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from statements(node)
            case _:
                yield from statements(node, polls or isinstance(node, ast.While))


def breaks(source: str, path: str) -> list[str]:
    """What a file, by its path below tests/, breaks: `path:line: rule`."""
    return [
        f"{path}:{statement.lineno}: {rule}"
        for statement in statements(ast.parse(source))
        for rule, (pattern, excepted) in RULES.items()
        if not path.startswith(excepted) and pattern.search(ast.unparse(statement))
    ]


def test_no_test_is_red_by_chance() -> None:
    found = [
        each
        for path in sorted(TESTS.rglob("*.py"))
        for each in breaks(path.read_text(), path.relative_to(TESTS).as_posix())
    ]
    assert not found, "\n".join(found)
