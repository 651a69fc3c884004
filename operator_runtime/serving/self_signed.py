"""Prints a private key and a certificate that it signs itself, for the names in the arguments: a program of its own.

`serving_tls` runs it, so that the operator's process need not load `cryptography`. Such a certificate keeps
others from listening on the way, and cannot be checked; for more, give a certificate.
"""

from __future__ import annotations

import datetime
import ipaddress
import sys
from collections.abc import Sequence

# It changes with each start, so that its end would only be noticed as an alarm.
_VALID = datetime.timedelta(days=3650)
# A scraper's clock may be a little behind.
_BACKDATED = datetime.timedelta(minutes=5)
# X.509's bound on a common name, in characters.
_LONGEST_COMMON_NAME = 64


def self_signed(names: Sequence[str], now: datetime.datetime) -> bytes:
    """Key and certificate, PEM, in this order; ImportError where cryptography is not installed."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    def general_name(name: str) -> x509.GeneralName:
        try:
            return x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            return x509.DNSName(name)

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:_LONGEST_COMMON_NAME])])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName([general_name(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private + certificate.public_bytes(pem)


def main(names: Sequence[str]) -> int:
    try:
        pem = self_signed(names, datetime.datetime.now(datetime.UTC))
    except ImportError:
        print("that takes the extra `secure`: pip install 'memcached-operator[secure]'", file=sys.stderr)
        return 1
    sys.stdout.buffer.write(pem)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
