"""Transport to a server: what it requires of connections, and on which port it takes all commands; pure."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:  # who only parses an annotation loads no pydantic
    from memcached_operator.api.v1alpha1 import Auth, Tls


class Transport(msgspec.Struct, frozen=True):
    """Transport to a server.

    Attributes:
        client_certificate: it refuses connections without one.
        passwords: it requires a password.
        peers_port: it takes all commands on the port of its peers alone, as memcached's proxy knows those of clients.
        tell_port: its pod waits until its items have moved before it ends, and the server is told its peers meanwhile.
    """

    tls: bool = False
    client_certificate: bool = False
    passwords: bool = False
    peers_port: bool = False
    tell_port: bool = False

    def __str__(self) -> str:
        """Format as the pods' annotation has it, "" for plain text without a password, on the port of clients."""
        return ",".join(field for field in self.__struct_fields__ if getattr(self, field))


PLAIN: Final = Transport()

NO_CREDENTIALS: Final = "--server-credentials is off"
"""Reason that the operator lacks what such a server requires, where it is not to have that."""


def transport(tls: Tls | None, auth: Auth | None, *, peers_port: bool = False, tell_port: bool = False) -> Transport:
    required = tls is not None and tls.clientAuth == "Require"
    return Transport(tls is not None, required, auth is not None, peers_port, tell_port)


@lru_cache(maxsize=8)
def transport_of(annotation: str) -> Transport:
    """Parse the annotation of a pod into the transport to its server."""
    words = annotation.split(",")
    return Transport(**{field: field in words for field in Transport.__struct_fields__})
