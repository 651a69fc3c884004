"""Expressions in CEL, the language of a CRD's rules: compiled once, evaluated often.

The language is the library's (`cel`); Kubernetes' functions for quantities are added here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kube_simulator.kinds.quantities import amount

# With the library comes its command line (prompt_toolkit, typer, rich), which costs as much as all else that the
# simulator imports: it is imported when there is an expression.
if TYPE_CHECKING:
    import cel


class CompileError(ValueError):
    """The expression is none, in CEL's words, or uses what the simulator does not have; the message says which."""


class EvaluationError(Exception):
    """The expression could not be evaluated with these values."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression."""

    text: str
    program: cel.Program
    variables: frozenset[str]
    """The names that it uses, besides those that its own macros bind."""

    def evaluate(self, values: Mapping[str, object]) -> Any:
        """Evaluate the expression. Raises EvaluationError: it comes to nothing."""
        import cel

        try:
            return self.program.execute(cel.Context(dict(values), dict(_FUNCTIONS)))
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise EvaluationError(str(error)) from error


@lru_cache(maxsize=4096)
def compiled(text: str, variables: frozenset[str]) -> Expression:
    """The expression of a text that may use these variables. Raises CompileError."""
    import cel

    try:
        program = cel.compile(text)
    except ValueError as error:
        raise CompileError(str(error)) from error
    # Blanks in the place of string literals, so that what is in them is not mistaken.
    plain = _TEXT.sub(lambda match: " " * len(match[0]), text)
    bound = set(_BINDING.findall(plain))
    used = frozenset(program.variables()) - bound
    functions = frozenset(filter(str.isidentifier, program.functions()))  # others are operators
    for name in sorted(used - variables - _TYPES):
        raise CompileError(f"undeclared reference to '{name}'")
    for name in sorted(functions - _KNOWN):
        raise CompileError(f"the simulator's CEL has no function '{name}'")
    return Expression(text, program, used)


_TEXT: Final = re.compile(r"""(?:[rR]?(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))""")
_BINDING: Final = re.compile(r"\.(?:all|exists|exists_one|map|filter)\(\s*(\w+)\s*,")
_TYPES: Final = frozenset({"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"})
_BUILT_IN: Final = frozenset(
    {"bytes", "contains", "double", "duration", "endsWith", "getDate", "getDayOfMonth", "getDayOfWeek"}
    | {"getDayOfYear", "getFullYear", "getHours", "getMilliseconds", "getMinutes", "getMonth", "getSeconds"}
    | {"int", "matches", "size", "startsWith", "string", "timestamp", "type", "uint"}
)


def _amount(quantity: str) -> Decimal:
    if (found := amount(quantity)) is None:
        raise ValueError("quantities must match the regular expression of resource.Quantity")
    return found


def _quantity(text: str) -> str:
    _amount(text)
    return text


def _compared(quantity: str, other: str) -> int:
    return (_amount(quantity) > _amount(other)) - (_amount(quantity) < _amount(other))


_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "add": lambda quantity, other: f"{_amount(quantity) + _amount(other):f}",
    "compareTo": _compared,
    "dyn": lambda value: value,
    "isQuantity": lambda text: amount(text) is not None,
    "quantity": _quantity,
}
_KNOWN: Final = _BUILT_IN | _FUNCTIONS.keys()
