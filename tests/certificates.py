"""Certificates as cert-manager makes them, for servers and clients of tests: made on the spot, and put in files."""

from __future__ import annotations

import base64
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    """A certificate and its key.

    Attributes:
        authority: of whoever signed it, PEM.
    """

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    authority: bytes

    @property
    def pem(self) -> bytes:
        """The certificate."""
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def der(self) -> bytes:
        """The certificate, as a handshake shows it."""
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def key_pem(self) -> bytes:
        """The key."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    @property
    def files(self) -> dict[str, bytes]:
        """What a Secret of it has."""
        return {"tls.crt": self.pem, "tls.key": self.key_pem, "ca.crt": self.authority}


class Authority:
    """Signs certificates."""

    def __init__(self, name: str = "authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = name
        basic = x509.BasicConstraints(ca=True, path_length=None)
        builder = _builder(name, name, self._key, -DAY, 365 * DAY).add_extension(basic, critical=True)
        self.pem = builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)

    def issue(self, *names: str, begins: timedelta = -DAY, ends: timedelta = 90 * DAY) -> Pair:
        """A certificate for these DNS names and IP addresses.

        Args:
            begins, ends: when it is valid, from now.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(names[0] if names else "nobody", self._name, key, begins, ends)
        if names:
            alternative = x509.SubjectAlternativeName([*map(_general_name, names)])
            builder = builder.add_extension(alternative, critical=False)
        return Pair(builder.sign(self._key, hashes.SHA256()), key, self.pem)


def _general_name(name: str) -> x509.GeneralName:
    with suppress(ValueError):
        return x509.IPAddress(ip_address(name))
    return x509.DNSName(name)


def _builder(
    subject: str, issuer: str, key: ec.EllipticCurvePrivateKey, begins: timedelta, ends: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begins)
        .not_valid_after(now + ends)
    )


@contextmanager
def mounted(files: dict[str, bytes]) -> Iterator[Path]:
    """A folder with these files that any user can read, as a pod's volume: pytest's own are for one user."""
    folder = Path(tempfile.mkdtemp(prefix="memcached-operator-test-"))
    try:
        folder.chmod(0o755)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        yield folder
    finally:
        shutil.rmtree(folder)


def tls_arguments(folder: Path, *, verify: int = 0) -> tuple[str, ...]:
    """memcached's, for TLS with the files there; `verify` is its ssl_verify_mode."""
    options = [f"ssl_chain_cert={folder}/tls.crt", f"ssl_key={folder}/tls.key", "ssl_min_version=2"]
    if verify:
        options += [f"ssl_ca_cert={folder}/ca.crt", f"ssl_verify_mode={verify}"]
    return "-Z", "-o", ",".join(options)


def secret(name: str, files: dict[str, bytes]) -> dict[str, object]:
    """A Secret with these files."""
    data = {key: base64.b64encode(content).decode() for key, content in files.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
