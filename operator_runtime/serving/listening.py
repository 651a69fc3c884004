"""Sockets that listen on an address."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from operator_runtime.settings.listen_address import ListenAddress

# What the kernel keeps of an answer for a peer that does not take it (Linux doubles it); by itself it goes up to 4 MiB.
SEND_BUFFER_BYTES = 131_072


class ServingError(Exception):
    """Failure to serve by the settings; the message names the flag and the remedy."""


def url_of(address: ListenAddress, listening: Sequence[socket.socket], *, secure: bool) -> str:
    """Return the URL at which these sockets are reached."""
    host = address.host
    shown = f"[{host}]" if host and ":" in host else host or "localhost"
    return f"{'https' if secure else 'http'}://{shown}:{listening[0].getsockname()[1]}"


async def sockets(address: ListenAddress) -> list[socket.socket]:
    """Sockets that listen there: one for all addresses of the machine, else one for each that the host's name has.

    Raises OSError where it is no address, taken, not this machine's, or not this process's to bind.
    """
    host, port = address
    both = host is None and socket.has_dualstack_ipv6()
    places: list[tuple[int, tuple[object, ...]]]
    if host is None:
        places = [(socket.AF_INET6 if both else socket.AF_INET, ("", port))]
    else:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        places = list(dict.fromkeys((family, where) for family, _, _, _, where in found))
    listening: list[socket.socket] = []
    try:
        for family, where in places:
            each = socket.create_server(where, family=family, dualstack_ipv6=both)
            listening.append(each)
            each.setblocking(False)
            # Connections inherit it.
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    except OSError:
        for each in listening:
            each.close()
        raise
    return listening
