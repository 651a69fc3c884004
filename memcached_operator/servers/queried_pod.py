"""Pod of a server, as far as its queries depend on it, and how the server's endpoint is resolved from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

import msgspec

from memcached_operator.api.names import PEERS_PORT, PORT
from memcached_operator.servers.server_connection import Endpoint, ErrorKind, Failure, without_certificate
from memcached_operator.servers.transport import NO_CREDENTIALS, PLAIN, Transport
from operator_runtime import ObjectKey


class QueriedPod(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Pod of a server, as far as its queries depend on it.

    Attributes:
        memcached: name of the Memcached whose workload it belongs to, "" when it belongs to none.
        active: neither terminating nor finished.
        address: its IP address, "" before it has one.
    """

    namespace: str
    name: str
    uid: str
    memcached: str
    active: bool
    ready: bool
    address: str = ""
    restarts: int = 0
    transport: Transport = PLAIN

    @property
    def memcached_key(self) -> ObjectKey | None:
        return ObjectKey(self.namespace, self.memcached) if self.memcached else None


class Resolved(NamedTuple):
    """Endpoint of a server, as far as its credentials are known.

    Attributes:
        lacks: why a credential that it requires is not there, "" where none is lacking.
        due: fingerprint of the certificate that it is to show, and comes to by being replaced; "" where it comes to it
            by itself, or where that is not known.
    """

    endpoint: Endpoint
    lacks: str = ""
    due: str = ""

    def explained(self, failure: Failure) -> Failure:
        """A failure, with why the credentials are not there that the server requires."""
        if failure.kind is not ErrorKind.DENIED or not self.lacks:
            return failure
        return Failure(failure.kind, f"{failure.why}, and {self.lacks}")


Endpoints: TypeAlias = Callable[[QueriedPod], Awaitable[Resolved]]
"""Resolves the endpoint of a pod's server."""


async def without_credentials(pod: QueriedPod) -> Resolved:
    """Resolve the endpoint of a pod's server by what the pod says alone: the `Endpoints` of who may read no Secret."""
    transport = pod.transport
    port = PEERS_PORT if transport.peers_port else PORT
    endpoint = Endpoint(pod.address, without_certificate() if transport.tls else None, port=port)
    return Resolved(endpoint, NO_CREDENTIALS if transport.client_certificate or transport.passwords else "")
