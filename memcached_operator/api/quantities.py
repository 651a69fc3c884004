"""Pure: Kubernetes' quantities, read and written as the API server does it; what is none is a ValueError.

Source of the rules: k8s.io/apimachinery/pkg/api/resource, and what a real API server writes back.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal
from functools import lru_cache
from typing import Final

_SYNTAX: Final = re.compile(r"([0-9]*\.?[0-9]*)([numkMGTPE]|[KMGTPE]i|[eE]([+-]?[0-9]{1,2}))?")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_EXACT: Final = Context(prec=160)
LENGTH_MAX: Final = 64
"""Of a quantity: of very many digits a number takes seconds to make, and Kubernetes keeps 18 or so."""


@lru_cache(maxsize=256, typed=True)  # most Memcacheds have the same few
def value(quantity: str | int) -> Decimal:
    """The number that a quantity stands for."""
    digits, suffix, exponent = _parts(quantity)
    if suffix in _BINARY[1:]:
        return _EXACT.multiply(digits, Decimal(1024 ** _BINARY.index(suffix)))
    return _EXACT.scaleb(digits, int(exponent) if exponent else _DECIMAL[suffix])


@lru_cache(maxsize=256, typed=True)
def canonical(quantity: str | int) -> str:
    """A quantity that the specification takes, as the API server writes it back.

    That is with the largest suffix that needs no fraction, of the kind that was used.
    """
    _, suffix, exponent = _parts(quantity)
    number = value(quantity)
    if suffix in _BINARY[1:] and number >= 1024 and number == number.to_integral_value():
        count, power = int(number), 0
        while count % 1024 == 0 and power < len(_BINARY) - 1:
            count, power = count // 1024, power + 1
        return f"{count}{_BINARY[power]}"
    count, power = int(number.scaleb(9, _EXACT)), -9
    while count and count % 1000 == 0 and power < 18:
        count, power = count // 1000, power + 3
    if not count:
        return "0"
    if exponent:
        return f"{count}e{power}" if power else str(count)
    return f"{count}{_SUFFIXES[power]}"


def mebibytes(quantity: str | int) -> int:
    """Whole MiB of a quantity of bytes, rounded down."""
    return int(value(quantity)) // 2**20


def of_mebibytes(mib: int) -> str:
    """A number of MiB as a quantity, as the API server writes it back."""
    return canonical(f"{mib}Mi")


def whole_mebibytes(quantity: str | int) -> str:
    """A quantity of bytes rounded down to whole Mi."""
    return of_mebibytes(mebibytes(quantity))


def kibibytes(quantity: str | int) -> int:
    """Whole KiB of a quantity of bytes, rounded down."""
    return int(value(quantity)) // 2**10


def whole_bytes(quantity: str | int) -> str:
    """A quantity of bytes rounded down to whole ones, as their number."""
    return str(int(value(quantity)))


def _parts(quantity: str | int) -> tuple[Decimal, str, str | None]:
    """Digits, suffix and the exponent of one such as e3."""
    text = "" if isinstance(quantity, int) and quantity.bit_length() > LENGTH_MAX else str(quantity)
    match = _SYNTAX.fullmatch(text) if len(text) <= LENGTH_MAX else None
    if match is None or match[1] in ("", "."):
        raise ValueError(f"not a quantity of 0 or more: {text[:LENGTH_MAX]!r}")
    return Decimal(match[1]), "" if match[3] else match[2] or "", match[3]
