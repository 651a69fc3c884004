"""The formats of schemas: which strings fit them, as the API server decides it.

The formats are those of Kubernetes' OpenAPI library, oddities and all: `date-time` takes any sign before the fraction,
`email` takes a name before an address in angle brackets, `duration` finds its parts anywhere in the text.

Differs from Kubernetes: `isbn`, `isbn10`, `isbn13` and `creditcard` are not checked here, and a CRD that has them is
refused (see `custom`).
"""

from __future__ import annotations

import datetime
import ipaddress
import re
import string
import unicodedata
from collections.abc import Callable, Mapping
from email.errors import HeaderParseError
from email.headerregistry import Address
from typing import Final

UNCHECKED: Final = frozenset({"isbn", "isbn10", "isbn13", "creditcard"})
"""Formats that Kubernetes checks and the simulator does not know."""

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_HEX = "[0-9a-fA-F]"
_RGB_BYTE = r"(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"
_BASE64 = "[A-Za-z0-9+/]"
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_GO_DURATION = re.compile(r"[-+]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_LOOSE_DURATION = re.compile(r"\d+\s*([A-Za-zµ]+)")
# Each unit is known by its short forms alone, and by the last form whatever follows it ("minutes").
_UNITS: Final = (
    *(("ns", "nano"), ("us", "µs", "micro"), ("ms", "milli"), ("s", "sec"), ("m", "min")),
    *(("h", "hr", "hour"), ("d", "day"), ("w", "wk", "week")),
)
# Of a host's shape: "a" for a letter, "s" for a symbol, digits and hyphens as they are. A single label has no hyphen
# but after its first character, which is the library's own idea.
_HOST = re.compile(r"[as0-9](-?[as0-9]{0,62})?|([as0-9]([as0-9-]{0,61}[as0-9])?\.)+a{2,63}")


def fits(format: str, value: str) -> bool:
    """Whether a string has a format; one that Kubernetes does not know fits everything."""
    check = _CHECKS.get(_normal(format))
    return check is None or check(value)


def is_known(format: str) -> bool:
    """Whether Kubernetes checks this format of strings."""
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


def _is_hostname(value: str) -> bool:
    shape = "".join(map(_host_character, value))
    return (
        len(value.encode()) <= 255
        and _HOST.fullmatch(shape) is not None
        and all(len(label.encode()) <= 63 for label in value.split("."))
    )


def _host_character(character: str) -> str:
    if character in string.digits:
        return character
    return {"L": "a", "S": "s"}.get(unicodedata.category(character)[0], character if character in "-." else "_")


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


def _is_mac(value: str) -> bool:
    for length in (6, 8, 20):
        pairs, fours = length - 1, length // 2 - 1
        if re.fullmatch(
            rf"{_HEX}{{2}}(?::{_HEX}{{2}}){{{pairs}}}|{_HEX}{{2}}(?:-{_HEX}{{2}}){{{pairs}}}"
            rf"|{_HEX}{{4}}(?:\.{_HEX}{{4}}){{{fours}}}|{_HEX}{{{2 * length}}}",
            value,
        ):
            return True
    return False


def _is_uri(value: str) -> bool:
    """As a request line has it: an absolute path, or a scheme and what follows."""
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


def _is_email(value: str) -> bool:
    bracketed = re.fullmatch(r"(?:[^<>@,]*)<([^<>]+)>\s*", value)
    address = bracketed[1] if bracketed else value.strip()
    local, at, domain = address.rpartition("@")
    if not at or not domain or not local or re.search(r"\s", domain):
        return False
    try:
        return Address(addr_spec=address).domain == domain
    except (HeaderParseError, ValueError, IndexError):
        return False


def _name(expression: str, limit: int) -> Callable[[str], bool]:
    matches = _matches(expression)
    return lambda value: len(value) <= limit and matches(value)


_UUID = "(?i:[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{}[0-9a-f]{{3}}-?{}[0-9a-f]{{3}}-?[0-9a-f]{{12}})"
_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "bsonobjectid": _matches(f"{_HEX}{{24}}"),
    "byte": _matches(f"({_BASE64}{{4}})*({_BASE64}{{2}}==|{_BASE64}{{3}}=|{_BASE64}{{4}})"),
    "cidr": _is_cidr,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": _is_email,
    "hexcolor": _matches(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "k8sshortname": _name(_LABEL, 63),
    "k8slongname": _name(rf"{_LABEL}(\.{_LABEL})*", 253),
    "mac": _is_mac,
    "password": lambda _: True,
    "rgbcolor": _matches(rf"rgb\(\s*{_RGB_BYTE}\s*,\s*{_RGB_BYTE}\s*,\s*{_RGB_BYTE}\s*\)"),
    "ssn": _matches(r"\d{3}[- ]\d{2}[- ]\d{4}"),
    "uri": _is_uri,
    "uuid": _matches(_UUID.format("[0-9a-f]", "[0-9a-f]")),
    "uuid3": _matches(_UUID.format("3", "[0-9a-f]")),
    "uuid4": _matches(_UUID.format("4", "[89ab]")),
    "uuid5": _matches(_UUID.format("5", "[89ab]")),
}
