"""What the tests of authentication share: certificates made on the spot."""

from __future__ import annotations

import ssl

from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from operator_runtime.client.access.tls import ClientCertificate
from tests import certificates


class Authority:
    """A certificate authority without key identifiers, as many clusters have."""

    def __init__(self, name: str = "test authority") -> None:
        self._signing = certificates.Authority(name)
        self.pem = self._signing.pem

    def issue(self, common_name: str, passphrase: bytes | None = None) -> ClientCertificate:
        """A leaf for the loopback, good for both sides of a connection."""
        pair = self._signing.issue(common_name, "127.0.0.1")
        encryption = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
        return ClientCertificate(
            common_name, pair.pem, pair.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        )


def server_context(authority: Authority, identity: ClientCertificate, directory: str) -> ssl.SSLContext:
    """A server that shows `identity` and asks for a client certificate of `authority`."""
    path = f"{directory}/server.pem"
    with open(path, "wb") as file:
        file.write(identity.chain + identity.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    context.load_verify_locations(cadata=authority.pem.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, server_name: str = "127.0.0.1") -> str | None:
    """Do a TLS handshake in memory; the common name of the client's certificate, None when it showed none."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=server_name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(10):
        for end in tuple(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    peer = ends[1].getpeercert()
    if not peer:
        return None
    return str(dict(pair for part in peer["subject"] for pair in part)["commonName"])  # type: ignore[misc]
