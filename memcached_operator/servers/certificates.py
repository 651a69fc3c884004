"""Reading of a server's certificate, and pure judgements of those that the servers of a Memcached show."""

from __future__ import annotations

import binascii
import logging
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Final, NamedTuple

import msgspec

logger = logging.getLogger(__name__)

STALE_S: Final = 600.0
"""How long a server may go on with an older certificate than another: the kubelet brings a renewed Secret to all nodes
within two minutes by its defaults."""
# A server may show a new one at each handshake; each takes some 500 bytes.
_REMEMBERED: Final = 1_024
_NAMES_MAX: Final = 1_000
# As OpenSSL reads it (crypto/pem/pem_lib.c): blanks at the ends of lines, and any line ends; base64 ignores the others.
_PEM: Final = re.compile(
    rb"^-----BEGIN (?:X509 )?CERTIFICATE-----[ \t\r]*\n(.*?)^-----END (?:X509 )?CERTIFICATE-----",
    re.MULTILINE | re.DOTALL,
)
# The year 9999 ends.
_LAST_S: Final = 253_402_300_799.0


class Certificate(msgspec.Struct, frozen=True, gc=False):
    """A server's certificate. All servers that show the same one share it.

    Attributes:
        fingerprint: SHA-256 of it, in hexadecimal.
        not_before, not_after: when it begins and ends to be valid, in seconds since 1970.
        names: the DNS names that it is for, in lower case, `*.` in front where it is for all of one level.
    """

    fingerprint: str
    not_before: float
    not_after: float
    names: tuple[str, ...] = ()


class Shown(NamedTuple):
    """The certificate of a server.

    Attributes:
        since_s: when it was first seen to show this one, in seconds since 1970.
    """

    certificate: Certificate
    since_s: float


@lru_cache(_REMEMBERED)
def read_certificate(der: bytes) -> Certificate | None:
    """A certificate as a server shows it; None where nothing can be made of it."""
    # Some MiB, which an operator without TLS servers does without.
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives.hashes import SHA256
    except ImportError:
        _warn_unchecked()
        return None
    try:
        found = x509.load_der_x509_certificate(der)
        try:
            extension = found.extensions.get_extension_for_class(x509.SubjectAlternativeName)
            names = extension.value.get_values_for_type(x509.DNSName)
        except x509.ExtensionNotFound:
            names = []
        return Certificate(
            found.fingerprint(SHA256()).hex(),
            found.not_valid_before_utc.timestamp(),
            found.not_valid_after_utc.timestamp(),
            tuple(name.lower() for name in names[:_NAMES_MAX]),
        )
    except Exception as error:
        logger.debug("a server's certificate cannot be read: %s", error)
        return None


def first_of_chain(chain: bytes) -> Certificate | None:
    """The certificate that a server shows of such a file, PEM with any comments; None where none can be read."""
    found = _PEM.search(chain)
    try:
        return read_certificate(binascii.a2b_base64(found[1])) if found is not None else None
    except binascii.Error:
        return None


@cache
def _warn_unchecked() -> None:
    logger.warning(
        "servers' certificates are not checked, as the Python package cryptography is missing: install "
        "memcached-operator[secure]"
    )


def missing_names(certificate: Certificate, desired: Iterable[str]) -> list[str]:
    """List the desired DNS names that it is not for, in their order."""
    names = frozenset(certificate.names)
    return [name for name in desired if name not in names and f"*.{name.partition('.')[2]}" not in names]


def stale_from_s(one: Shown, shown: Iterable[Shown]) -> float | None:
    """Return when a certificate is stale, in seconds since 1970; None where no other server shows a newer one."""
    newer = [each.since_s for each in shown if each.certificate.not_before > one.certificate.not_before]
    return min(newer) + STALE_S if newer else None


def next_change_s(shown: Sequence[Shown], now_s: float) -> float | None:
    """Return in how many seconds one of these expires or is late, None for never."""
    moments = {each.certificate.not_after for each in shown}
    if len({each.certificate.fingerprint for each in shown}) > 1:
        moments |= {when for each in shown if (when := stale_from_s(each, shown)) is not None}
    return min((when - now_s for when in moments if when > now_s), default=None)


def day_of(seconds: float) -> str:
    """A time for people, as RFC 3339 has it."""
    return f"{datetime.fromtimestamp(min(max(seconds, 0.0), _LAST_S), UTC):%Y-%m-%dT%H:%M:%SZ}"
