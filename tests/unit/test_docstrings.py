"""A docstring of the packages begins with a noun or a verb: what a thing is, or what it does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PACKAGES = ("kubectl_memcached", "memcached_operator", "operator_runtime", "kube_simulator", "examples")
FILES = sorted(path for package in PACKAGES for path in (PROJECT / package).rglob("*.py"))

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
# Before the first word, where a module keeps no state and does no I/O.
_PURE = "Pure: "
_QUESTIONS = {"how", "that", "those", "what", "when", "where", "whether", "which", "who", "whom", "whose", "why"}
_PREPOSITIONS = {
    *("after", "as", "at", "between", "by", "for", "from", "in", "like", "of", "on", "since", "to", "under", "until"),
    *("with", "within"),
}
_AMOUNTS = {"all", "another", "each", "every", "no", "nobody", "none", "nothing", "once", "so", "something", "too"}
_OTHERS = {"has", "it", "its", "not", "there", "these", "this", "without"}
NEITHER = _QUESTIONS | _PREPOSITIONS | _AMOUNTS | _OTHERS


def breaks(source: str) -> Iterator[str]:
    """List the docstrings of a file that begin with another word, as `line: text`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node)):
            first, *_ = text.removeprefix(_PURE).split()
            if first.rstrip(",.:;").lower() in NEITHER:
                yield f"{node.body[0].lineno}: {text.splitlines()[0]}"


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    found = [f"{path.relative_to(PROJECT)}:{each}" for path in FILES for each in breaks(path.read_text())]
    assert not found, "\n".join(found)
