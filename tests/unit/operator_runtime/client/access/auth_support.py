"""What the tests of authentication share: certificates made on the spot."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from operator_runtime.client.access.tls import ClientCertificate


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_pem(key: ec.EllipticCurvePrivateKey, encryption: KeySerializationEncryption) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


@dataclass(frozen=True)
class Authority:
    """A certificate authority without key identifiers, as many clusters have."""

    name: str
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def issue(self, common_name: str, passphrase: bytes | None = None) -> ClientCertificate:
        """A leaf for the loopback, good for both sides of a connection."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName(common_name)]
        chain = (
            _builder(common_name, self.name, key)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self.key, hashes.SHA256())
            .public_bytes(Encoding.PEM)
        )
        encryption = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
        return ClientCertificate(common_name, chain, _key_pem(key, encryption))


def make_authority(name: str = "test authority") -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(name, key, certificate)


def _builder(subject: str, issuer: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
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
