"""Addresses as people write them: checked where they are read, so that no request ends in what a URL's parser raises.

No message of this module quotes an address: it may hold a password.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

# RFC 1123, and the underscore that some name servers have. What is not ASCII is checked in its encoded form.
_HOST_NAME = re.compile(r"[A-Za-z0-9._-]+")

# With one slash after the scheme, or an unescaped one in the password, they are taken for the path, and shown.
_PASSWORD_BEHIND_HOST = re.compile(r":[^@]*@")


def is_host(name: str) -> bool:
    """Report whether a host can have this name or address: asyncio and aiohttp raise an error other than the network's
    for a label that is empty or longer than 63 bytes, and for a NUL.
    """
    try:
        ipaddress.ip_address(name)
    except ValueError:
        pass
    else:
        return True
    try:
        return _HOST_NAME.fullmatch(name.encode("idna").decode("ascii")) is not None
    except UnicodeError:
        return False


def split_address(url: str) -> SplitResult:
    """The parts of a URL; its port is a number, and its host one that there can be.

    Raises:
        ValueError: it has no such parts; the message has what is wrong.
    """
    if not url.isprintable() or " " in url:
        raise ValueError("it holds white space or control characters")
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises for a port that is no number
    except ValueError:
        raise ValueError("its port is no number up to 65535, or what is in its brackets no IPv6 address") from None
    if not parts.hostname:
        raise ValueError("it names no host")
    if _PASSWORD_BEHIND_HOST.search(url.partition("://")[2].removeprefix(parts.netloc.rpartition("@")[0])):
        raise ValueError(
            "what stands before its last @ looks like a user name and a password: write two slashes after the scheme,"
            " /, ? and # within a password as %2F, %3F and %23, and an @ of a path as %40"
        )
    if not is_host(parts.hostname):
        raise ValueError("there can be no host of such a name: up to 63 letters, digits and '-' stand between two dots")
    return parts


def server_url(url: str) -> str:
    """An API server's URL, its scheme in lower case and without a slash at its end.

    Raises:
        ValueError: it is no http or https URL, or holds more than the place of a server; the message has what is wrong.
    """
    parts = split_address(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError("its scheme is neither http nor https")
    if "@" in parts.netloc:
        raise ValueError(
            "it holds a user name or a password, which logs and metrics would show;"
            " take them out, and give them as username and password of the user"
        )
    if "?" in url or "#" in url:
        raise ValueError("it holds a query or a fragment, which requests do not carry; take it out")
    return parts.geturl().rstrip("/")
