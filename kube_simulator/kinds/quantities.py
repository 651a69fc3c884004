"""`resource.Quantity`: amounts such as `500m` or `1Gi`, and the one form in which Kubernetes writes each.

Differs from Kubernetes: needless signs, zeros and points are dropped, which there may stay (`+1`, `007`, `1.`), and an
exponent is written with a small e.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal

_BINARY = {suffix: Decimal(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL = {suffix: Decimal(10) ** power for suffix, power in _POWERS.items()}
_EXPONENT = {f"e{power}" if power else "": Decimal(10) ** power for power in _POWERS.values()}
_SHAPE = re.compile(r"([+-]?(?=\.?[0-9])[0-9]*\.?[0-9]*)(?:([KMGTPE]i|[numkMGTPE]|)|[eE]([+-]?[0-9]+))")
# Quantities are kept to the billionth, rounded up, and what containers ask for to the thousandth.
_SMALLEST = Decimal("1e-9")
_THOUSANDTH = Decimal("1e-3")
# Of those in powers of two; decimal ones may be larger.
_LARGEST = Decimal(2**63 - 1)


def amount(text: object) -> Decimal | None:
    """The number that a quantity stands for; None if it is no quantity."""
    return None if (found := _read(text)) is None else found[0]


def canonical(text: object) -> object:
    """What a container asks for as Kubernetes writes it: `0.5` is `500m`, `1024Mi` is `1Gi`; other texts stay."""
    if (found := _read(text)) is None:
        return text
    value, units = found
    if value % 1:
        value = value.quantize(_THOUSANDTH, ROUND_CEILING)
    if value == 0:
        return "0"
    # Fractions of a byte cannot be said in powers of two, and nor can what is below 1024 of anything.
    units = {"": Decimal(1), **units} if units is not _BINARY or value % 1 == 0 else _DECIMAL
    whole = [suffix for suffix, unit in units.items() if value % unit == 0]
    if not whole:
        return format(value.normalize(), "f")
    suffix = max(whole, key=lambda each: units[each])
    return f"{int(value / units[suffix])}{suffix}"


def _read(text: object) -> tuple[Decimal, dict[str, Decimal]] | None:
    """The number, and the units in which it is written."""
    number = not isinstance(text, bool) and isinstance(text, str | int | float)
    match = _SHAPE.fullmatch(str(text)) if number else None
    if match is None:
        return None
    value, suffix, exponent = Decimal(match[1]), match[2], match[3]
    if suffix in _BINARY:
        value, units = min(value * _BINARY[suffix], _LARGEST), _BINARY
    elif exponent is None:
        value, units = value * _DECIMAL[suffix], _DECIMAL
    else:
        value, units = value.scaleb(int(exponent)), _EXPONENT
    return value if value == value.to_integral_value() else value.quantize(_SMALLEST, ROUND_CEILING), units
