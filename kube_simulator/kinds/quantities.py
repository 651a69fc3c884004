"""`resource.Quantity`: amounts such as `500m` or `1Gi`."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal

_BINARY = {suffix: Decimal(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SHAPE = re.compile(r"([+-]?(?=\.?[0-9])[0-9]*\.?[0-9]*)(?:([KMGTPE]i|[numkMGTPE]|)|[eE]([+-]?[0-9]+))")
# Quantities are kept to the billionth, rounded up.
_SMALLEST = Decimal("1e-9")
# Of those in powers of two; decimal ones may be larger.
_LARGEST = Decimal(2**63 - 1)


def amount(text: object) -> Decimal | None:
    """The number that a quantity stands for; None if it is no quantity."""
    number = not isinstance(text, bool) and isinstance(text, str | int | float)
    match = _SHAPE.fullmatch(str(text)) if number else None
    if match is None:
        return None
    value, suffix, exponent = Decimal(match[1]), match[2], match[3]
    if suffix in _BINARY:
        value = min(value * _BINARY[suffix], _LARGEST)
    else:
        value = value.scaleb(_POWERS[suffix] if exponent is None else int(exponent))
    return value if value == value.to_integral_value() else value.quantize(_SMALLEST, ROUND_CEILING)
