"""The page docs/runtime-reference.md, from the sources of what `operator_runtime` exports.

Read and not imported: an annotation then stands on the page as its author wrote it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import operator_runtime

HEAD = """\
# Runtime: the reference

<!-- Made by `./dev runtime-docs` from the sources of operator_runtime/; do not edit. -->

What `operator_runtime` exports, and with it everything that an operator needs. Names that are not here may
change at any time. [Write your own operator](write-your-own.md) is the way in, [Runtime, by example](runtime.md) shows
each thing at work.
"""
CHAPTERS = {
    "The program": ("run", "serve", "Program", "RuntimeSettings", "Setting", "Switch"),
    "The operator and its controllers": (
        "Operator",
        "ControllerBuilder",
        "Result",
        "TerminalError",
        "Channel",
        "Service",
    ),
    "Predicates": (
        *("Predicate", "always", "generation_changed", "labels_changed", "annotations_changed"),
        *("any_of", "all_of", "none_of"),
    ),
    "Kinds and objects": (
        *("typed", "plain", "Kind", "Object", "PlainObject", "ApiObject", "Metadata", "OwnerReference", "ObjectKey"),
        *("owner_reference", "reference", "resource_of", "UnreadableObject"),
    ),
    "Reading and writing": ("Client", "Store"),
    "What objects own": (
        *("Keeper", "Kept", "NotOwned", "Unwatched", "Reverted", "Refused", "Rules", "Patch", "Change"),
        *("Repairs", "Memory", "Slot"),
        *("Difference", "Fields", "differences", "field_name", "field_names"),
    ),
    "Errors": (
        "KubeError",
        "NotFound",
        "Conflict",
        "Forbidden",
        "Invalid",
        "ServerError",
        "StaleCache",
        "TooManyRequests",
    ),
    "Decoders of your own": ("UNDECODABLE", "decode_nested", "shallow", "shared", "Packing"),
    "Finalizers": ("Finalizer", "Stage", "Waiting", "Finalized"),
    "Conditions and events": (
        *("Condition", "Conditions", "condition_of", "set_conditions", "rfc3339", "EventRecorder"),
    ),
    "Metrics and checks": ("Metrics", "Source", "Checks"),
    "The CRD of a kind": (
        *("CustomResource", "PrinterColumn", "Scale", "custom_resource_definition", "to_yaml", "crd_reference"),
    ),
}
# Whose instances an author is given: how they are made is the runtime's matter.
GIVEN = frozenset(
    {
        *("Checks", "Client", "ControllerBuilder", "EventRecorder", "Metrics", "Operator", "Store"),
        *("Keeper", "Memory", "Repairs", "Slot"),
    }
)
# What the runtime calls.
INNER = frozenset(
    {
        *("ControllerBuilder.initial_keys", "ControllerBuilder.finish", "EventRecorder.run", "EventRecorder.stop"),
        *("Operator.expects_writes", "Operator.finish"),
        *("Channel.listen", "Metrics.collect", "Metrics.register", "Metrics.unregister"),
        *("Store.put", "Store.remove", "Store.replace", "Memory.forget"),
        *("Repairs.guarded", "Repairs.delayed", "Client.outdated", "Client.writers"),
    }
)
_LONGEST_LINE = 100
_SECTION = re.compile(r"^(Args|Attributes|Raises|Returns):\n((?:(?: {4}.*)?(?:\n|$))+)", re.MULTILINE)
# For the class's maintainers, and not for its users.
_PRIVATE = re.compile(r"^Invariants?:.*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r"^ {4}([\w*, .]+): (.+(?:\n {8}.+)*)", re.MULTILINE)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def page() -> str:
    """The whole page.

    Raises:
        ValueError: a name that is exported has no place in `CHAPTERS`, or one there is not exported.
    """
    listed = [name for names in CHAPTERS.values() for name in names]
    if wrong := sorted(set(listed) ^ set(operator_runtime.__all__)):
        raise ValueError(f"CHAPTERS and what operator_runtime exports differ in {', '.join(wrong)}")
    parts = [HEAD]
    for title, names in CHAPTERS.items():
        parts.append(f"## {title}\n")
        parts += ["\n".join(_entry(name)) for name in names]
    return "\n".join(parts)


def _entry(name: str) -> Iterator[str]:
    place = operator_runtime._MODULES[name]
    tree, node, told = _definition(f"{operator_runtime.__name__}.{place}", name)
    yield f"### {name}\n"
    match node:
        case ast.ClassDef():
            yield from _class(tree, node)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from _block(_signature(node))
            yield _words(ast.get_docstring(node))
        case _:
            # As strings are written here; Python's own way is single quotes.
            yield from _block(ast.unparse(node).replace("'", '"'))
            yield _words(told)


def _definition(module: str, name: str) -> tuple[ast.Module, ast.stmt, str]:
    """Where a name is defined, that statement, and the string that follows it."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text())
    found: ast.stmt | None = None
    for node, following in zip(tree.body, [*tree.body[1:], ast.Pass()], strict=True):
        match node:
            case ast.ImportFrom(module=str(other)) if any(alias.name == name for alias in node.names):
                return _definition(other, name)
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef() if node.name == name:
                found = node  # the last one: overloads come before
            case ast.Assign(targets=[ast.Name(id=target)]) if target == name:
                said = following.value if isinstance(following, ast.Expr) else None
                return tree, node, str(said.value) if isinstance(said, ast.Constant) else ""
            case _:
                pass
    assert found is not None, f"{module} has no {name}"
    return tree, found, ""


def _class(tree: ast.Module, node: ast.ClassDef) -> Iterator[str]:
    members = [*_inherited(tree, node), *node.body]
    functions = {each.name: each for each in members if isinstance(each, Function)}
    fields = [each for each in members if isinstance(each, ast.AnnAssign)]
    begin = None if node.name in GIVEN else functions.get("__init__")
    if begin is not None:
        yield from _block(_signature(begin, called=node.name))
    elif fields:
        yield from _block(_folded(node.name, [_field(each) for each in fields], ""))
    yield _words(ast.get_docstring(node))
    if begin is not None:
        yield _words(ast.get_docstring(begin))
    for name, function in functions.items():
        if name.startswith("_") or f"{node.name}.{name}" in INNER:
            continue
        if any(ast.unparse(each) in ("property", "cached_property") for each in function.decorator_list):
            yield f"**`{node.name}.{name}`**: `{ast.unparse(function.returns) if function.returns else ''}`\n"
        else:
            yield from _block(_signature(function, called=f"{node.name}.{name}"))
        yield _words(ast.get_docstring(function))


def _inherited(tree: ast.Module, node: ast.ClassDef) -> list[ast.stmt]:
    """What a class has from a base that is nobody's to use; its methods are told with the first class that has it."""
    classes = [each for each in tree.body if isinstance(each, ast.ClassDef)]
    found: list[ast.stmt] = []
    for base in [each for each in classes if each.name.startswith("_") and each.name in _bases(node)]:
        first = next(each for each in classes if base.name in _bases(each))
        found += [each for each in base.body if first is node or isinstance(each, ast.AnnAssign)]
    return found


def _bases(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(base) for base in node.bases]


def _field(node: ast.AnnAssign) -> str:
    """A field as an argument, without what its type is annotated with."""
    type_, default = node.annotation, "" if node.value is None else f" = {ast.unparse(node.value)}"
    match type_:
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[bare, *_])):
            type_ = bare
        case _:
            pass
    return f"{ast.unparse(node.target)}: {ast.unparse(type_)}{default}"


def _signature(node: Function, *, called: str | None = None) -> str:
    arguments = ast.parse(ast.unparse(node)).body[0]
    assert isinstance(arguments, Function)
    given, method = arguments.args, called is not None
    if method and not any(ast.unparse(each) == "staticmethod" for each in node.decorator_list):
        given.args = given.args[1:]
    returns = "" if node.returns is None or node.name == "__init__" else f" -> {ast.unparse(node.returns)}"
    word = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return word + _folded(called or node.name, _each(given), returns)


def _each(given: ast.arguments) -> Sequence[str]:
    """The arguments one by one, as they stand in a signature."""
    text, parts, depth = ast.unparse(given), [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    # Of `name: type=default`, which is how an annotated argument comes.
    return [re.sub(r"^(\w+: .*)=", r"\1 = ", part.strip()) for part in parts if part.strip()]


def _folded(name: str, parts: Sequence[str], returns: str) -> str:
    line = f"{name}({', '.join(parts)}){returns}"
    if len(line) <= _LONGEST_LINE:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){returns}"])


def _block(code: str) -> Iterator[str]:
    yield f"```python\n{code}\n```\n"


def _words(docstring: str | None) -> str:
    """A docstring as Markdown: its sections as lists, whatever is indented else as code."""
    text = _PRIVATE.sub("", docstring or "")
    text = _SECTION.sub(lambda found: f"{found[1]}:\n\n{_list(found[1], found[2])}\n", text)
    text = re.sub(r"\n{3,}", "\n\n", text)
    return f"{text.strip()}\n" if text.strip() else ""


def _list(section: str, items: str) -> str:
    if section == "Returns":
        return f"- {' '.join(items.split())}\n"
    return "".join(f"- `{found[1]}`: {' '.join(found[2].split())}\n" for found in _ITEM.finditer(items))


if __name__ == "__main__":
    sys.stdout.write(page())
