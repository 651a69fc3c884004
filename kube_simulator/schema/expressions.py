"""Expressions in CEL, the language of a CRD's rules: compiled once, evaluated often.

The language is the library's (`cel`); Kubernetes' functions for strings and lists are added here. Regular
expressions are RE2's (`patterns`): the library's own `matches` takes others, and cannot be replaced under its name.

Differs from Kubernetes: types are not checked before an expression runs, costs are neither estimated nor limited, and
the libraries for sets, URLs, addresses, versions and named formats are missing, as are `.?field`, `[?key]`, `optMap`,
`find`, `findAll` and two-variable comprehensions. What is missing is told when an expression is compiled. Quantities
are texts here: two spellings of one amount are the same for `compareTo`, and not for `==`.
"""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kube_simulator.errors import not_implemented
from kube_simulator.kinds.quantities import amount
from kube_simulator.schema import patterns

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
        """Evaluate the expression.

        Raises:
            EvaluationError: it comes to nothing.
            ApiError: 501 for a pattern that the simulator does not know.
        """
        import cel

        unknown: list[patterns.UnknownPattern] = []

        def matches(text: str, pattern: str) -> bool:
            try:
                return patterns.compiled(pattern).search(text) is not None
            except patterns.UnknownPattern as error:  # of which the library tells its own story
                unknown.append(error)
                raise

        try:
            return self.program.execute(cel.Context(dict(values), {**_FUNCTIONS, _MATCHES: matches}))
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            if unknown:
                raise not_implemented(str(unknown[0])) from error
            raise EvaluationError(str(error)) from error


@lru_cache(maxsize=4096)
def compiled(text: str, variables: frozenset[str]) -> Expression:
    """The expression of a text that may use these variables. Raises CompileError."""
    import cel

    # Blanks in the place of string literals, so that what is in them is not mistaken.
    plain, ours = _TEXT.sub(lambda match: " " * len(match[0]), text), text
    for call in _MATCHES_CALL.finditer(plain):
        ours = ours[: call.start()] + _MATCHES + ours[call.end() :]
    try:
        program = cel.compile(ours)
    except ValueError as error:
        raise CompileError(str(error).replace(_MATCHES, "matches")) from error
    bound = set(_BINDING.findall(plain))
    used = frozenset(program.variables()) - bound
    functions = frozenset(program.functions())
    for name in sorted(used - variables - _TYPES):
        raise CompileError(f"undeclared reference to '{name}'")
    for name in sorted(functions - _KNOWN):
        raise CompileError(f"the simulator's CEL has no function '{name}'")
    return Expression(text, program, used)


def optional_value(value: object) -> object:
    """An optional value, such as `oldSelf` of a rule that is evaluated on creations too; None is none."""
    import cel

    return cel.OptionalValue.none() if value is None else cel.OptionalValue.of(value)


_TEXT: Final = re.compile(r"""(?:[rR]?(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))""")
_BINDING: Final = re.compile(r"\.(?:all|exists|exists_one|map|filter)\(\s*(\w+)\s*,")
_MATCHES_CALL: Final = re.compile(r"\bmatches(?=\s*\()")
_MATCHES: Final = "re2find"  # as long as the name that it stands for, so that marks in messages stay where they are
_TYPES: Final = frozenset(
    {"bool", "bytes", "double", "int", "list", "map", "null_type", "optional", "string", "type", "uint"}
)
_OPERATORS: Final = frozenset(
    {"!_", "-_", "@in", "@not_strictly_false", "_!=_", "_%_", "_&&_", "_*_", "_+_", "_-_", "_/_", "_<=_", "_<_"}
    | {"_==_", "_>=_", "_>_", "_?_:_", "_[_]", "_||_"}
)
_BUILT_IN: Final = frozenset(
    {"bytes", "contains", "double", "duration", "endsWith", "getDate", "getDayOfMonth", "getDayOfWeek"}
    | {"getDayOfYear", "getFullYear", "getHours", "getMilliseconds", "getMinutes", "getMonth", "getSeconds"}
    | {"hasValue", "int", "none", "of", "orValue", "size", "startsWith", "string", "timestamp", "type"}
    | {"uint", "value"}
)


def _index_of(value: Any, part: Any, start: int = 0) -> int:
    if isinstance(value, str):
        return value.find(part, start)
    return value.index(part) if part in value else -1


def _last_index_of(value: Any, part: Any) -> int:
    if isinstance(value, str):
        return value.rfind(part)
    return max((index for index, each in enumerate(value) if each == part), default=-1)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator == "":
        return list(text) if limit < 0 else [*text[: limit - 1], text[limit - 1 :]]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _amount(quantity: str) -> Decimal:
    if (found := amount(quantity)) is None:
        raise ValueError("quantities must match the regular expression of resource.Quantity")
    return found


def _quantity(text: str) -> str:
    _amount(text)
    return text


def _compared(quantity: str, other: str) -> int:
    return (_amount(quantity) > _amount(other)) - (_amount(quantity) < _amount(other))


_LOWER: Final = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_UPPER: Final = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "add": lambda quantity, other: f"{_amount(quantity) + _amount(other):f}",
    "charAt": lambda text, index: "" if index == len(text) else text[index],
    "compareTo": _compared,
    "dyn": lambda value: value,
    "indexOf": _index_of,
    "isQuantity": lambda text: amount(text) is not None,
    "isSorted": lambda values: all(one <= other for one, other in itertools.pairwise(values)),
    "join": lambda texts, separator="": separator.join(texts),
    "lastIndexOf": _last_index_of,
    "lowerAscii": lambda text: text.translate(_LOWER),
    "max": max,
    "min": min,
    "quantity": _quantity,
    "replace": lambda text, old, new, limit=-1: text.replace(old, new, limit),
    "split": _split,
    "substring": lambda text, start, end=None: text[start:end],
    "sum": lambda values: sum(values[1:], start=values[0]) if values else 0,
    "trim": lambda text: text.strip(),
    "upperAscii": lambda text: text.translate(_UPPER),
}
_KNOWN: Final = _OPERATORS | _BUILT_IN | _FUNCTIONS.keys() | {_MATCHES}
