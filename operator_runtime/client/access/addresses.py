"""Addresses as people write them: checked where they are read, so that no request ends in what a URL's parser raises.

A proxy that leads to the API server is the kubeconfig's, or the environment's by the rules of Go programs. No message
quotes an address: it may hold a password.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit

from operator_runtime.client.access.credentials import NoClusterAccess

_DEFAULT_PORTS = {"http": 80, "https": 443}

# RFC 1123, and the underscore that some name servers have. What is not ASCII is checked in its encoded form.
_HOST_NAME = re.compile(r"[A-Za-z0-9._-]+")

# With one slash after the scheme, or an unescaped one in the password, they are taken for the path, and shown.
_PASSWORD_BEHIND_HOST = re.compile(r":[^@]*@")


def is_host(name: str) -> bool:
    """Report whether a host can have this name or address: asyncio and aiohttp raise an error other than the network's
    for a label that is empty or longer than 63 bytes, and for a NUL.
    """
    if _address(name) is not None:
        return True
    try:
        return _HOST_NAME.fullmatch(name.encode("idna").decode("ascii")) is not None
    except UnicodeError:
        return False


def split_address(url: str) -> SplitResult:
    """The parts of a URL; ValueError, with what is wrong, where there can be no such port or host."""
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

    Raises ValueError, with what is wrong, where it is no http or https URL, or holds more than the place of a server.
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


def check_proxy(url: str, origin: str) -> str:
    """The proxy's URL if it can be used; `origin` names in messages where it was written. The URL is never quoted.

    Raises NoClusterAccess where it is a SOCKS proxy, or no proxy URL at all.
    """
    try:
        parts = split_address(url)
        if parts.scheme.startswith("socks"):
            raise NoClusterAccess(
                f"{origin} is a SOCKS proxy ({parts.scheme}://), which this client does not speak: put an HTTP proxy"
                " there that forwards to it, or reach the API server through a tunnel and take the proxy out"
            )
        if parts.scheme not in _DEFAULT_PORTS:
            raise ValueError("its scheme is neither http nor https")
    except ValueError as error:
        raise NoClusterAccess(
            f"{origin} is not the URL of a proxy: write http://HOST:PORT or https://HOST:PORT: {error}"
        ) from None
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if ":" in user or any(ord(each) > 0xFF for each in user + password):
        raise NoClusterAccess(
            f"{origin} holds a user name with a colon, or characters beyond Latin-1, which cannot be sent to a proxy:"
            " use another name or password"
        )
    return url


def environment_proxy(server: str, environ: Mapping[str, str]) -> str | None:
    """The proxy that `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` (or their lower-case forms) give for a server.

    As in Go's net/http, which kubectl and other operators use, and unlike Python's urllib, NO_PROXY may hold networks
    ("10.0.0.0/8"), and the loopback is never proxied. Pods that get these variables injected depend on it. Raises as
    `check_proxy`.
    """
    target = urlsplit(server)
    name = "HTTPS_PROXY" if target.scheme == "https" else "HTTP_PROXY"
    variable = next((each for each in (name, name.lower()) if environ.get(each)), None)
    if variable is None or target.hostname is None:
        return None
    exceptions = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if _is_direct(target.hostname, target.port or _DEFAULT_PORTS.get(target.scheme, 0), exceptions):
        return None
    url = environ[variable]
    return check_proxy(url if "://" in url else f"http://{url}", f"the variable {variable}")


def _is_direct(host: str, port: int, exceptions: str) -> bool:
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    for entry in (each.strip().lower() for each in exceptions.split(",")):
        if entry == "*":
            return True
        if address is not None and "/" in entry:
            try:
                if address in ipaddress.ip_network(entry, strict=False):
                    return True
            except ValueError:
                pass
            continue
        name, only_port = _split_port(entry)
        if only_port is not None and only_port != port:
            continue
        if address is not None:
            if _address(name) == address:
                return True
        elif name and (host == name or host.endswith("." + name.removeprefix("*").removeprefix("."))):
            # A leading dot or star leaves out the domain itself, as in Go.
            return True
    return False


def _split_port(entry: str) -> tuple[str, int | None]:
    try:
        parts = urlsplit(f"//{entry}")
        return parts.hostname or "", parts.port
    except ValueError:  # an IPv6 address without brackets
        return entry, None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
