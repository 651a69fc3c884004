"""Which words are numbers in YAML as kubectl reads it, by sigs.k8s.io/yaml and its YAML 1.1.

PyYAML has other rules: `1e1` is a text to it, `08` too, and `1:30` is ninety.
"""

from __future__ import annotations

import math
import re
from typing import Final

# Go's strconv.ParseInt with base 0: a leading 0 is octal, as in C.
_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hexadecimal>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)|0[oO]?(?P<octal>[0-7]+)"
    r"|(?P<decimal>0|[1-9][0-9]*))"
)
_BASES: Final = {"hexadecimal": 16, "binary": 2, "octal": 8, "decimal": 10}
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_FIRST: Final = frozenset("0123456789+-.")
_INT64_MIN: Final = -(2**63)
_UINT64_MAX: Final = 2**64 - 1


def number_of(word: str) -> int | float | None:
    """The number that a word without quotes is; None if it is none."""
    if word[:1] not in _FIRST:
        return None
    digits = word.replace("_", "")
    found = _INTEGER.fullmatch(digits)
    if found is not None:
        base = str(found.lastgroup)
        value = int(found["sign"] + found[base], _BASES[base])
        if _INT64_MIN <= value <= _UINT64_MAX:
            return value
    if _FLOAT.fullmatch(digits) is None:
        return None
    inexact = float(digits)
    return None if math.isinf(inexact) else inexact
