"""Addresses to listen on, as flags have them."""

from __future__ import annotations

from typing import NamedTuple


class ListenAddress(NamedTuple):
    """Address to listen on; `host` None means all addresses of the machine, port 0 one that is free."""

    host: str | None
    port: int


def parse_address(text: str) -> ListenAddress | None:
    """`HOST:PORT`, `:PORT` or `[IPv6]:PORT`; None for "0", which turns a server off; ValueError for anything else."""
    if text == "0":
        return None
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65_535 or (":" in host and not bracketed):
        raise ValueError("it must be HOST:PORT or :PORT with a port of at most 65535, or 0 for off")
    return ListenAddress((host[1:-1] if bracketed else host) or None, int(port))
