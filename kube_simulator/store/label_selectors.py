"""Label selectors: their grammar, what they match, and what is said of one that cannot be read.

The words are those of Kubernetes' API server, which names a token that it did not expect and what it expected instead.

Differs from Kubernetes: nothing known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kube_simulator.errors import ApiError, bad_request
from kube_simulator.store.go_text import int64_or_none, quoted
from kube_simulator.values import Json

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]

_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"
SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_VALUE}')"
)
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"
)
_NAME_SYNTAX, _VALUE_SYNTAX, _SUBDOMAIN_SYNTAX = re.compile(_NAME), re.compile(_VALUE), re.compile(SUBDOMAIN)
# Of label names and values, and of the DNS subdomain before the slash.
_NAME_BYTES = 63
_PREFIX_BYTES = 253

# The longest operators come first; a word is whatever is neither an operator nor a space.
_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+|$)")
_SYMBOLS = frozenset({"=", "==", "!=", "!", "(", ")", ",", "<", ">"})
_OPERATORS: Mapping[str, Operator] = {
    "in": "In",
    "=": "In",
    "==": "In",
    "notin": "NotIn",
    "!=": "NotIn",
    ">": "Gt",
    "<": "Lt",
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on the value of one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Report whether labels fulfil it; an absent label is not in any set of values."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        if value is None or (number := int64_or_none(value)) is None:
            return False
        bound = int(next(iter(self.values)))
        return number > bound if self.operator == "Gt" else number < bound


@dataclass(frozen=True, slots=True)
class Labels:
    """A label selector: all its requirements together. One without any matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Report whether an object with these labels is selected."""
        return all(requirement.matches(labels) for requirement in self.requirements)


def parse_labels(text: str) -> Labels:
    """Read `a=b,c in (d,e),!f`. Raises ApiError 400."""
    return Labels(tuple(_Parser(text).requirements()))


def from_label_selector(selector: Json) -> Labels:
    """Read a `metav1.LabelSelector`: matchLabels and matchExpressions. Raises ApiError 400."""
    equal = [_requirement(key, "In", [value]) for key, value in (selector.get("matchLabels") or {}).items()]
    return Labels((*equal, *map(_of_expression, selector.get("matchExpressions") or ())))


def _of_expression(expression: Json) -> Requirement:
    operator = expression["operator"]
    if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        raise bad_request(f"{quoted(operator)} is not a valid label selector operator")
    return _requirement(expression["key"], operator, expression.get("values") or [])


class _Parser:
    """Reads tokens from left to right; `in` and `notin` are operators only where one is expected."""

    def __init__(self, text: str) -> None:
        self._tokens = [match[1] for match in _TOKEN.finditer(text)]
        self._at = 0

    def requirements(self) -> list[Requirement]:
        """Read all requirements. The end of the text is an empty token."""
        found: list[Requirement] = []
        while token := self._next:
            if token != "!" and not _is_word(token):
                raise self._unexpected("!, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except ApiError as refusal:
                raise bad_request(f"unable to parse requirement: {refusal}") from None
            if not self._next:
                break
            if self._next != ",":
                raise self._unexpected("',' or 'end of string'")
            self._at += 1
            if self._next != "!" and not _is_word(self._next):
                raise self._unexpected("identifier after ','")
        return found

    @property
    def _next(self) -> str:
        return self._tokens[self._at]

    def _take(self) -> str:
        token = self._tokens[self._at]
        # The last one, the end, is never passed.
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _unexpected(self, expected: str, *, colon: str = ", expected: ") -> ApiError:
        return bad_request(f"found '{self._next}'{colon}{expected}")

    def _requirement(self) -> Requirement:
        absent = self._next == "!"
        if absent:
            self._at += 1
        if not _is_word(self._next):
            raise self._unexpected("identifier")
        key = self._take()
        _check_key(key)
        if absent or self._next in ("", ","):
            return Requirement(key, "DoesNotExist" if absent else "Exists")
        if self._next not in _OPERATORS:
            raise self._unexpected("in, notin, =, ==, !=, gt, lt")
        sign = self._take()
        values = self._values() if sign in ("in", "notin") else {self._value()}
        return _requirement(key, _OPERATORS[sign], sorted(values))

    def _value(self) -> str:
        if self._next in ("", ","):
            return ""
        if not _is_word(self._next):
            raise self._unexpected("identifier")
        return self._take()

    def _values(self) -> set[str]:
        if self._next != "(":
            raise self._unexpected("'('", colon=" expected: ")
        self._at += 1
        if self._next not in (",", ")") and not _is_word(self._next):
            raise self._unexpected("',', ')' or identifier")
        # Nothing before or after a comma, or in the brackets, is the empty value.
        values = {self._value_in_brackets()}
        while self._next == ",":
            self._at += 1
            if self._next not in (",", ")") and not _is_word(self._next):
                raise self._unexpected("',', or identifier")
            values.add(self._value_in_brackets())
        if self._next != ")":
            raise self._unexpected("',' or ')'")
        self._at += 1
        return values

    def _value_in_brackets(self) -> str:
        return self._take() if _is_word(self._next) else ""


def _is_word(token: str) -> bool:
    return bool(token) and token not in _SYMBOLS


def _requirement(key: str, operator: Operator, values: list[str]) -> Requirement:
    """Checked; the order of the values is that of the message."""
    _check_key(key)
    problems = []
    if operator in ("Gt", "Lt") and int64_or_none(values[0]) is None:
        problems.append(
            f"values[0]: Invalid value: {quoted(values[0])}: for 'Gt', 'Lt' operators, the value must be an integer"
        )
    for index, value in enumerate(values):
        wrong = label_value_problems(value)
        if wrong:
            problems.append(f"values[{index}][{key}]: Invalid value: {quoted(value)}: {'; '.join(wrong)}")
    if problems:
        raise bad_request(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return Requirement(key, operator, frozenset(values))


def _check_key(key: str) -> None:
    wrong = label_key_problems(key)
    if wrong:
        raise bad_request(f"<nil>: Invalid value: {quoted(key)}: {'; '.join(wrong)}")


def label_key_problems(key: str) -> list[str]:
    """List what keeps a text from being the name of a label or an annotation, such as `example.com/color`."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [
            f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        if len(prefix.encode()) > _PREFIX_BYTES:
            problems.append(f"prefix part must be no more than {_PREFIX_BYTES} bytes")
        if not _SUBDOMAIN_SYNTAX.fullmatch(prefix):
            problems.append(f"prefix part {SUBDOMAIN_RULE}")
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > _NAME_BYTES:
        problems.append(f"name part must be no more than {_NAME_BYTES} bytes")
    if not _NAME_SYNTAX.fullmatch(name):
        problems.append(f"name part {_NAME_RULE}")
    return problems


def label_value_problems(value: str) -> list[str]:
    """List what keeps a text from being the value of a label."""
    problems = []
    if len(value.encode()) > _NAME_BYTES:
        problems.append(f"must be no more than {_NAME_BYTES} bytes")
    if not _VALUE_SYNTAX.fullmatch(value):
        problems.append(_VALUE_RULE)
    return problems
