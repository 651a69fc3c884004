"""A cluster's certificates: one authority, the API server's certificate, client certificates, a key for tokens.

The lab's control plane takes its certificates from here too.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# The clock of a client may be a little behind.
_BACKDATED = datetime.timedelta(minutes=5)
# A cluster of this kind lives for hours; certificates that outlive it by far would only be found lying about.
_VALID = datetime.timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority whose files lie in one folder."""

    # Elliptic curves: an RSA key takes longer to make than the API server takes to start.

    def __init__(self, directory: Path, common_name: str = "memcached-operator") -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        name = _name(common_name, ())
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        self._certificate = (
            _builder(name, name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        directory.mkdir(parents=True, exist_ok=True)
        self.certificate = directory / "ca.crt"
        self.certificate.write_bytes(_pem(self._certificate))

    def server(self, name: str, hosts: Sequence[str]) -> Pair:
        """A certificate for a server that is reached by these DNS names and IP addresses."""
        alternatives = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        return self._issue(name, _name(name, ()), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def client(self, file_name: str, user: str, groups: Sequence[str]) -> Pair:
        """A certificate by which the API server takes its bearer for this user, a member of these groups."""
        return self._issue(file_name, _name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _issue(
        self,
        file_name: str,
        subject: x509.Name,
        purpose: x509.ObjectIdentifier,
        alternatives: x509.SubjectAlternativeName | None,
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, self._certificate.subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            # Python >= 3.13 verifies strictly and wants both identifiers.
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        pair = Pair(self._directory / f"{file_name}.crt", self._directory / f"{file_name}.key")
        pair.certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        pair.key.write_bytes(_private_pem(key))
        return pair


def token_key(directory: Path) -> Path:
    """Make the key that signs and verifies service account tokens; the API server takes both from one file."""
    path = directory / "service-accounts.key"
    path.write_bytes(_private_pem(ec.generate_private_key(ec.SECP256R1())))
    return path


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _VALID)
    )


def _name(user: str, groups: Sequence[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # Not PKCS #8: the API server reads the public half of a token key out of SEC 1 alone.
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
