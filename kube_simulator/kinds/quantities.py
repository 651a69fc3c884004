"""`resource.Quantity`: amounts such as `500m` or `1Gi`, and the one form in which Kubernetes writes each.

Differs from Kubernetes: needless signs, zeros and points are dropped, which there may stay (`+1`, `007`, `1.`), and an
exponent is written with a small e.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SHAPE = re.compile(r"([+-]?[0-9]*\.?[0-9]*)(?:([KMGTPE]i|[numkMGTPE]|)|[eE]([+-]?[0-9]+))")
# Quantities are kept to the billionth, rounded up.
_SMALLEST = Decimal("1e-9")
_THOUSANDTH = Decimal("1e-3")
# Of those in powers of two; decimal ones may be larger.
_LARGEST = Decimal(2**63 - 1)


def amount(text: object) -> Decimal | None:
    """The number that a quantity stands for; None if it is no quantity."""
    parts = _parts(text)
    return None if parts is None else parts[0]


def canonical(text: object) -> object:
    """The quantity as Kubernetes writes it: `0.5` is `500m`, `1024Mi` is `1Gi`; what is no quantity stays."""
    parts = _parts(text)
    if parts is None:
        return text
    value, form = parts
    if value == 0:
        return "0"
    # Fractions of a byte cannot be said in powers of two, and nor can what is below 1024 of anything.
    if form == "binary" and value == value.to_integral_value():
        return _largest(value, {suffix: Decimal(1024) ** power for suffix, power in _BINARY.items()})
    if form == "exponent":
        return _largest(value, {f"e{power}" if power else "": Decimal(10) ** power for power in _DECIMAL.values()})
    return _largest(value, {suffix: Decimal(10) ** power for suffix, power in _DECIMAL.items()})


def _parts(text: object) -> tuple[Decimal, str] | None:
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        return None
    match = _SHAPE.fullmatch(str(text))
    if match is None or not any(character.isdigit() for character in match[1]):
        return None
    number, suffix, exponent = match.groups()
    value = Decimal(number)
    if exponent is not None:
        return _rounded(value.scaleb(int(exponent))), "exponent"
    if suffix in _BINARY:
        return min(_rounded(value * Decimal(1024) ** _BINARY[suffix]), _LARGEST), "binary"
    return _rounded(value.scaleb(_DECIMAL[suffix])), "decimal"


def in_thousandths(text: object) -> object:
    """The quantity rounded up to the thousandth, as it is kept of what containers ask for."""
    value = amount(text)
    if value is None or value == (rounded := value.quantize(_THOUSANDTH, ROUND_CEILING)):
        return text
    return canonical(f"{rounded:f}")


def _rounded(value: Decimal) -> Decimal:
    if value == value.to_integral_value():
        return value
    return value.quantize(_SMALLEST, ROUND_CEILING)


def _largest(value: Decimal, units: dict[str, Decimal]) -> str:
    """Format in the largest unit of which it is a whole number."""
    exact = Fraction(value)
    whole = {suffix: exact / Fraction(unit) for suffix, unit in units.items() if exact % Fraction(unit) == 0}
    if not whole:
        return format(value.normalize(), "f")
    suffix = max(whole, key=lambda each: units[each])
    return f"{int(whole[suffix])}{suffix}"
