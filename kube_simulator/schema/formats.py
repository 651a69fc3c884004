"""The formats of schemas: which strings fit them, as the API server decides it.

The formats are those of Kubernetes' OpenAPI library, oddities and all: `date-time` takes any sign before the fraction,
`duration` finds its parts anywhere in the text.

Differs from Kubernetes: `hostname`, `email`, `mac` and others that CRDs hardly use are not checked here, and a CRD that
has them is refused (see `definition_validation`).
"""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Final

UNCHECKED: Final = frozenset(
    {
        "bsonobjectid",
        "creditcard",
        "email",
        "hexcolor",
        "hostname",
        "isbn",
        "isbn10",
        "isbn13",
        "mac",
        "rgbcolor",
        "ssn",
    }
    | {"uuid3", "uuid4", "uuid5"}
)
"""Formats that Kubernetes checks and the simulator does not know."""

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_BASE64 = "[A-Za-z0-9+/]"
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_GO_DURATION = re.compile(r"[-+]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_LOOSE_DURATION = re.compile(r"\d+\s*([A-Za-zµ]+)")
# Each unit is known by its short forms alone, and by the last form whatever follows it ("minutes").
_UNITS: Final = (
    *(("ns", "nano"), ("us", "µs", "micro"), ("ms", "milli"), ("s", "sec"), ("m", "min")),
    *(("h", "hr", "hour"), ("d", "day"), ("w", "wk", "week")),
)


def fits(format: str, value: str) -> bool:
    """Report whether a string has a format; one that Kubernetes does not know fits everything."""
    check = _CHECKS.get(_normal(format))
    return check is None or check(value)


def is_known(format: str) -> bool:
    """Report whether Kubernetes checks this format of strings."""
    return _normal(format) in _CHECKS or _normal(format) in UNCHECKED


def _normal(format: str) -> str:
    return format.replace("-", "")


def _matches(expression: str) -> Callable[[str], bool]:
    compiled = re.compile(expression)
    return lambda value: compiled.fullmatch(value) is not None


def _is_date(value: str) -> bool:
    try:
        datetime.date.fromisoformat(value)
    except ValueError:
        return False
    return len(value) == 10 and value[4] == "-"


def _is_date_time(value: str) -> bool:
    date, *rest = value.lower().split("t")
    if not rest or not _is_date(date):
        return False
    match = _TIME.fullmatch(rest[0])
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_duration(value: str) -> bool:
    if _GO_DURATION.fullmatch(value):
        return True
    units = (match[1].lower() for match in _LOOSE_DURATION.finditer(value))
    return any(unit in forms or unit.startswith(forms[-1]) for unit in units for forms in _UNITS)


def _is_ipv4(value: str) -> bool:
    parts = value.split(".")
    return len(parts) == 4 and all(re.fullmatch("[0-9]{1,16}", part) and int(part) <= 255 for part in parts)


def _is_ipv6(value: str) -> bool:
    try:
        ipaddress.IPv6Address(value)
    except ValueError:
        return False
    return "%" not in value


def _is_cidr(value: str) -> bool:
    address, slash, length = value.partition("/")
    bits = 32 if _is_ipv4(address) else 128 if _is_ipv6(address) else -1
    return slash == "/" and re.fullmatch("[0-9]{1,3}", length) is not None and int(length) <= bits


def _is_uri(value: str) -> bool:
    """Report whether it is as a request line has it: an absolute path, or a scheme and what follows."""
    if not value or any(ord(character) < 0x20 or character == "\x7f" for character in value):
        return False
    if re.search("%(?![0-9a-fA-F]{2})", value):
        return False
    if value == "*" or value.startswith("/"):
        return True
    scheme, colon, rest = value.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        return False
    host = re.split("[/?#]", rest[2:])[0].rpartition("@")[2] if rest.startswith("//") else ""
    return re.fullmatch(r'(\[[^\]]*\]|[^\s"<>\[\]\\^`{|}:]*)(:[0-9]*)?', host) is not None


def _name(expression: str, limit: int) -> Callable[[str], bool]:
    matches = _matches(expression)
    return lambda value: len(value) <= limit and matches(value)


_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "byte": _matches(f"({_BASE64}{{4}})*({_BASE64}{{2}}==|{_BASE64}{{3}}=|{_BASE64}{{4}})"),
    "cidr": _is_cidr,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "k8sshortname": _name(_LABEL, 63),
    "k8slongname": _name(rf"{_LABEL}(\.{_LABEL})*", 253),
    "password": lambda _: True,
    "uri": _is_uri,
    "uuid": _matches("(?i:[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12})"),
}
