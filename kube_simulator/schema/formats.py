"""The formats of schemas: which strings fit them.

Differs from Kubernetes: the formats below are checked, and by stricter rules than there; all others fit everything.
"""

from __future__ import annotations

import base64
import ipaddress
import re
import uuid
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Final

_DURATION: Final = re.compile(r"[-+]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d([.]\d+)?([Zz]|[+-]\d\d:\d\d)")


def fits(format: str, value: str) -> bool:
    """Report whether a string has a format; one that is not known fits everything."""
    check = _CHECKS.get(format.replace("-", ""))
    if check is None:
        return True
    try:
        return check(value) is not False
    except ValueError:
        return False


def _time(value: str) -> bool:
    return _TIME.fullmatch(value) is not None and bool(datetime.fromisoformat(value.upper()))


_CHECKS: Final[Mapping[str, Callable[[str], object]]] = {
    "byte": lambda value: base64.b64decode(value, validate=True),
    "cidr": lambda value: "/" in value and ipaddress.ip_interface(value),
    "date": date.fromisoformat,
    "datetime": _time,
    "duration": lambda value: _DURATION.fullmatch(value) is not None,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "uri": lambda value: re.fullmatch(r"/.*|[A-Za-z][A-Za-z0-9+.-]*:\S+", value) is not None,
    "uuid": uuid.UUID,
}
