"""What no test may do, as it depends on how busy the machine is or on what Kubernetes does by itself: by the syntax.

Each rule takes the syntax of a file and gives the lines that break it. A rule knows a thing by its name, or by what its
name was assigned from in the same function; what hides better is for the reviewer.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import PurePosixPath

Function = ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Rule:
    """What is not done, what is done in its place, and the lines of a file that break it."""

    name: str
    remedy: str
    lines: Callable[[ast.Module, PurePosixPath], Iterable[int]]


def breaks(source: str, path: PurePosixPath) -> list[str]:
    """What a file breaks, as `file:line: rule: remedy`.

    Args:
        source: its text.
        path: from the project's root.
    """
    tree = ast.parse(source)
    found = [(line, rule) for rule in RULES for line in set(rule.lines(tree, path))]
    return [f"{path}:{line}: {rule.name}: {rule.remedy}" for line, rule in sorted(found, key=lambda each: each[0])]


# Bounds on time and on what a process takes.

# The soak looks for leaks, which only bounds can tell.
_MAY_MEASURE = PurePosixPath("tests/faults/test_soak.py")
_CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "thread_time", "time_ns"}
_CLOCKS_BY_OWNER = {("time", "time"), ("loop", "time"), ("datetime", "now")}
_MEASURES = {"elapsed", "took", "latency", "rss", "cpu", "cpus", "fds", "descriptors", "threads", "resident"}
_METRICS = ("process_cpu_seconds", "process_resident_memory", "process_open_fds", "process_threads")
# The kernel keeps it never to be below what it is the peak of.
_PEAK = "peak"


def _bounds(tree: ast.Module, path: PurePosixPath) -> Iterator[int]:
    if path == _MAY_MEASURE:
        return
    for scope in _scopes(tree):
        readings = _named_by(scope, lambda node, _: _is_clock(node))
        is_measured = partial(_is_measured, readings=readings)
        measured = _named_by(scope, is_measured)
        inside = list(_inside(scope))
        waits = {each for node in inside if isinstance(node, ast.While) for each in ast.walk(node.test)}
        claims = {each for node in inside if isinstance(node, ast.Assert) for each in ast.walk(node.test)}
        picks = {test for node in inside if isinstance(node, ast.comprehension) for test in node.ifs}
        # How long a loop looks again is no claim, nor is what a comprehension picks.
        for node in set(inside) - waits - (picks - claims):
            if isinstance(node, ast.Compare):
                # An assertion about what was picked says that there is none of it: the opposite holds.
                bounded = _bounded(node, turned=node in picks)
                yield from (node.lineno for each in bounded if is_measured(each, measured))


def _bounded(node: ast.Compare, *, turned: bool) -> Iterator[ast.expr]:
    """What a comparison says is no more than something else; `turned`: what it says is more."""
    for (left, right), sign in zip(pairwise([node.left, *node.comparators]), node.ops, strict=True):
        match sign:
            case ast.Lt() | ast.LtE():
                least, most = left, right
            case ast.Gt() | ast.GtE():
                least, most = right, left
            case _:
                continue
        if turned:
            least, most = most, least
        # What is left until a deadline is compared with 0.
        if _PEAK not in ast.unparse(most) and ast.unparse(most) != "0":
            yield least


def _is_clock(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)):
            return name in _CLOCKS or (owner, name) in _CLOCKS_BY_OWNER
        case ast.Call(func=ast.Name(id=name)):
            return name in _CLOCKS
    return False


def _is_measured(node: ast.AST, measured: set[str], *, readings: set[str]) -> bool:
    """Whether it has a difference from a clock's reading in it, or what a process takes."""
    for each in ast.walk(node):
        match each:
            # A reading without a number is another moment, and no length.
            case ast.BinOp(op=ast.Sub(), right=right) if not isinstance(right, ast.Constant):
                if any(_is_reading(part, readings) for part in ast.walk(each)):
                    return True
            case ast.Name(id=name) if name in measured or _MEASURES & set(name.split("_")):
                return True
            case ast.Attribute(attr=name) if _MEASURES & set(name.split("_")):
                return True
            case ast.Constant(value=str(text)) if text.startswith(_METRICS):
                return True
    return False


def _is_reading(node: ast.AST, readings: set[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in readings
        case ast.Attribute(attr=name):
            return name.endswith("at_s")
        case ast.Call(func=ast.Name(id="received_at" | "logged_at")):
            return True
    return _is_clock(node)


# Sleep.


def _sleeps(tree: ast.Module, path: PurePosixPath) -> Iterator[int]:
    constants = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and _is_number(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def sleeps(node: ast.AST, polls: bool) -> Iterator[int]:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                polls = False
            case ast.While():
                polls = True  # it looks again, or it is a server that lets its answer drip
            case ast.Call(func=ast.Attribute(value=ast.Name(id="time" | "asyncio"), attr="sleep"), args=[length]):
                named = isinstance(length, ast.Name) and length.id in constants
                if not polls and (named or _is_number(length)):
                    yield node.lineno
        for child in ast.iter_child_nodes(node):
            yield from sleeps(child, polls)

    yield from sleeps(tree, False)


def _is_number(node: ast.expr) -> bool:
    """A number that is not 0: `sleep(0)` lets others have their turn, and takes no time."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value != 0


# What a running process logged, and what it requested of the API server.

_AUDITED = {"audit_events", "requests_of", "writes_of", "writes", "written", "deployment_writes", "without_conflicts"}
_LOGGED = {"complaints", "warnings_of"}
_LOGS = {"lines", "complaints"}
_CAPTURED = {"messages", "records"}
# A set is no matter of how often: it says what there is and what there is not.
_SAME = {"sorted", "list", "tuple", "Counter", "len"}


def _equalities(tree: ast.Module, path: PurePosixPath) -> Iterator[int]:
    # There the log is of the test's own process, and its clocks are fakes.
    if "unit" in path.parts:
        return
    for scope in _scopes(tree):
        names = _named_by(scope, _is_recorded)
        for node in _inside(scope):
            match node:
                case ast.Compare(ops=[*signs]) if any(isinstance(each, ast.Eq) for each in signs):
                    if any(_is_recorded(each, names) for each in (node.left, *node.comparators)):
                        yield node.lineno
                case ast.Assert(test=ast.UnaryOp(op=ast.Not(), operand=operand)) if _is_recorded(operand, names):
                    yield node.lineno


def _is_recorded(node: ast.AST, names: set[str]) -> bool:
    """Whether it is all that somebody logged or requested, whatever it is. What a text or a test names is not."""
    match node:
        case ast.Name(id=name):
            return name in names
        case ast.Attribute(value=ast.Name(id="caplog"), attr=name):
            return name in _CAPTURED
        case ast.Attribute(attr=name):
            return name in _LOGS
        case ast.Subscript(value=value, slice=ast.Slice(lower=lower)) if not isinstance(lower, ast.UnaryOp):
            return _is_recorded(value, names)  # all since then; the last ones (`[-2:]`) are not all
        case ast.Call(func=ast.Name(id=name), args=[*arguments]) if name in _SAME:
            return any(_is_recorded(each, names) for each in arguments)
        case ast.Call(func=ast.Attribute(attr="splitlines", value=value)):
            return isinstance(value, ast.Attribute) and value.attr == "log"
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _AUDITED or name in _LOGGED
        case ast.ListComp(generators=[*parts]) | ast.GeneratorExp(generators=[*parts]):
            named = any(_names_some(test) for each in parts for test in each.ifs)
            return any(_is_recorded(each.iter, names) for each in parts) and not named
    return False


def _names_some(test: ast.expr) -> bool:
    """Whether the test of a comprehension says which it is after, and not only which not."""
    match test:
        case ast.BoolOp(values=values):
            return any(_names_some(each) for each in values)
        case ast.Call(func=ast.Name(id="any" | "all"), args=[ast.GeneratorExp(elt=each)]):
            return _names_some(each)
        case ast.Compare(ops=[ast.In() | ast.Eq()]) | ast.Call(func=ast.Attribute(attr="startswith" | "endswith")):
            return True
    return False


# Namespaces.

_HELPER = PurePosixPath("tests/cluster.py")
_MAKES = "create namespace"


def _namespaces(tree: ast.Module, path: PurePosixPath) -> Iterator[int]:
    # The simulator's own unit tests ask it for what they please.
    if path == _HELPER or "unit" in path.parts:
        return
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="post"), args=[ast.Constant(value="/api/v1/namespaces"), *_]):
                yield node.lineno
            case ast.Call(args=[*words]) | ast.List(elts=[*words]) | ast.Tuple(elts=[*words]):
                texts = [str(each.value) if isinstance(each, ast.Constant) else "" for each in words]
                trial = any(each.startswith("--dry-run") for each in texts)
                if _MAKES in {" ".join(pair) for pair in pairwise(texts)} and not trial:
                    yield node.lineno


# What the rules share.


def _scopes(tree: ast.Module) -> Iterator[ast.Module | Function]:
    """The module without its functions, and each function with those inside it."""
    yield tree
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for body in (tree.body, *(each.body for each in classes)):
        yield from (node for node in body if isinstance(node, _FUNCTIONS))


def _inside(scope: ast.Module | Function) -> Iterator[ast.AST]:
    if not isinstance(scope, ast.Module):
        yield from ast.walk(scope)
        return
    waiting: list[ast.AST] = [scope]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(each for each in ast.iter_child_nodes(node) if not isinstance(each, _FUNCTIONS))


def _named_by(scope: ast.Module | Function, desired: Callable[[ast.AST, set[str]], bool]) -> set[str]:
    """The names that what is wanted is assigned or appended to; `desired` is told those that are known."""
    assigned = [pair for node in _inside(scope) for pair in _assigned(node)]
    found: set[str] = set()
    while True:
        before = len(found)
        for target, value in assigned:
            if desired(value, found):
                found.update(each.id for each in ast.walk(target) if isinstance(each, ast.Name))
        if len(found) == before:
            return found


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            yield from zip(targets, values, strict=True)
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
            yield target, value
        case ast.Call(func=ast.Attribute(value=ast.Name() as target, attr="append"), args=[value]):
            yield target, value


RULES = (
    Rule(
        "no bound on how long something takes or on what a process needs",
        "wait for the event with a generous deadline, show it in-process on a fake clock, or leave it to benchmarks/",
        _bounds,
    ),
    Rule(
        "no sleep for a fixed time",
        "wait for the event (operator_runtime.testing.waiting), or pass in a fake clock",
        _sleeps,
    ),
    Rule(
        "no equality with all that a running process said or asked for",
        "look for what must be there, and name what must not; "
        "nothing was written in vain where the resourceVersion is what it was; count on a fake clock",
        _equalities,
    ),
    Rule(
        "no namespace but by the helper in tests/cluster.py",
        "call it: it waits for what Kubernetes puts into each namespace",
        _namespaces,
    ),
)
