"""CEL in admission: expressions over a request, compiled once, with Kubernetes' words for what goes wrong.

Differs from Kubernetes: types are looked at when an expression is evaluated and not before; a function that the library
lacks, such as `quantity` or `authorizer`, is answered with 501 when the expression is written; nothing limits the cost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import cel
from cel import stdlib

from memcached_operator.simulator.errors import Cause, Json, not_implemented
from memcached_operator.simulator.store.go_text import quoted

VARIABLES = frozenset({"object", "oldObject", "request", "namespaceObject", "variables"})
"""What an expression may name; `params` and `authorizer` are not here."""

_FUNCTIONS = frozenset(
    {
        *("size", "startsWith", "endsWith", "contains", "matches", "dyn", "type"),
        *("string", "int", "uint", "double", "bytes", "bool", "duration", "timestamp"),
        *("charAt", "indexOf", "lastIndexOf", "lowerAscii", "upperAscii", "replace", "split", "substring", "trim"),
        *("join", "min", "max", "sum"),
    }
)
_TYPES = frozenset({"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"})
_BOUND_BY_MACRO = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter)\(\s*([A-Za-z_]\w*)\s*,")
_BARE_NAME = re.compile(r"[A-Za-z]\w*")
# There are as many expressions as people write policies.
_PROGRAMS = 1024


class EvaluationError(Exception):
    """An expression came to nothing; the message is Kubernetes'."""


def problems(expression: str, field: str, names: Iterable[str] = VARIABLES) -> list[Cause]:
    """What is wrong with an expression before it is evaluated.

    Raises:
        ApiError: 501, for what the library cannot do.
    """
    try:
        program = _program(expression)
    except ValueError as error:
        return [_failed(expression, field, _syntax_error(expression, str(error)))]
    references = program.references()
    bound = set(_BOUND_BY_MACRO.findall(expression))
    for name in references["variables"]:
        if name in ("authorizer", "sets", "math", "optional"):
            raise not_implemented(f"{name} in a CEL expression")
        if name not in bound and name not in _TYPES and name not in names:
            found = re.search(rf"\b{name}\b", expression)
            line, column = _position(expression, found.start() if found else 0)
            where = f"ERROR: <input>:{line}:{column + 1}: undeclared reference to '{name}' (in container '')"
            text = expression.splitlines()[line - 1]
            return [_failed(expression, field, f"{where}\n | {text}\n | {'.' * column}^")]
    for name in references["functions"]:
        # Operators have names such as `_&&_`.
        if _BARE_NAME.fullmatch(name) and name not in _FUNCTIONS:
            raise not_implemented(f"the CEL function {name}")
    return []


def evaluate(expression: str, variables: Mapping[str, Any]) -> Any:
    """The value of an expression. Raises EvaluationError."""
    context = cel.Context(variables=dict(variables))
    stdlib.add_stdlib_to_context(context)
    try:
        return _program(expression).execute(context)
    except KeyError as error:
        said = f"no such key: {error.args[0]}"
    except ZeroDivisionError:
        said = "division by zero"
    except TypeError:
        said = "no such overload"
    except (ValueError, IndexError, ArithmeticError, RuntimeError) as error:
        said = str(error)
    raise EvaluationError(said)


def evaluate_bool(expression: str, variables: Mapping[str, Any]) -> bool:
    """The value of an expression that says yes or no; the error says which expression it was.

    Raises:
        EvaluationError: the expression came to nothing, or to something else.
    """
    try:
        value = evaluate(expression, variables)
    except EvaluationError as error:
        raise EvaluationError(f"expression '{expression}' resulted in error: {error}") from None
    if not isinstance(value, bool):
        raise EvaluationError(f"expression '{expression}' resulted in error: must evaluate to bool")
    return value


def with_variables(definitions: Sequence[Json], known: Mapping[str, Any]) -> dict[str, Any]:
    """What is known, with `variables`: named expressions, each of which may use those before it.

    One that fails is left out; who uses it finds that it is not there.
    """
    values: dict[str, Any] = {}
    for definition in definitions:
        try:
            values[definition["name"]] = evaluate(definition["expression"], {**known, "variables": values})
        except EvaluationError:
            continue
    return {**known, "variables": values}


def conditions_hold(conditions: Sequence[Json], variables: Mapping[str, Any]) -> bool:
    """Whether all `matchConditions` are true; one that is false counts more than any that fail.

    Raises:
        EvaluationError: none is false, and one failed.
    """
    failed: EvaluationError | None = None
    for condition in conditions:
        try:
            if not evaluate_bool(condition["expression"], variables):
                return False
        except EvaluationError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return True


@lru_cache(_PROGRAMS)
def _program(expression: str) -> cel.Program:
    return cel.compile(expression)


def _failed(expression: str, field: str, why: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {quoted(expression)}: compilation failed: {why}", field)


def _syntax_error(expression: str, said: str) -> str:
    if "unsupported syntax" in said:
        raise not_implemented(f"the syntax of the CEL expression {expression}")
    return said[said.find("ERROR:") :].replace("\n|", "\n |") if "ERROR:" in said else said


def _position(text: str, offset: int) -> tuple[int, int]:
    """The line, from 1, and the column, from 0."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1)
