"""TLS towards the API server: whom to trust, which certificate to show, and both again when their files change.

For servers too: a certificate that is in memory, such as a Secret's, into a TLS context, which takes files alone.
"""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from operator_runtime.client.errors import AuthenticationUnavailable

log = logging.getLogger(__name__)

# The same beat as the token's: the kubelet writes both into one volume.
PEM_FILE_PERIOD_S = 60.0


@dataclass(frozen=True, slots=True)
class Pem:
    """PEM text in the configuration itself (`data`) or in a file (`path`); `name` names it in messages."""

    name: str
    data: bytes | None = field(default=None, repr=False)
    path: Path | None = None

    def read(self) -> bytes:
        """The text as it is now; AuthenticationUnavailable where the file cannot be read."""
        if self.path is None:
            return self.data or b""
        return credential_file(self.path, f"{self.name}:", "restore the file or correct its path")


def credential_file(path: Path, what: str, remedy: str) -> bytes:
    """Read a file; AuthenticationUnavailable, which begins with `what` and ends with the remedy, where that fails."""
    try:
        return path.read_bytes()
    except OSError as error:
        why = f"{path} cannot be read ({error.strerror})"
    except ValueError as error:  # NUL in the path
        why = f"{str(path)!r} cannot be read ({error})"
    raise AuthenticationUnavailable(f"{what} {why}: {remedy}")


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate chain and its private key, PEM; `name` names its owner in messages."""

    name: str
    chain: bytes = field(repr=False)
    key: bytes = field(repr=False)


class ClientTls:
    """An SSL context that follows its files; a plugin's certificate goes before its own.

    Invariants: files are read at most once in PEM_FILE_PERIOD_S; the context is another one exactly when their content
    is; files that cannot be used (half of a rotation was written) leave the last good context in place. `authority`
    None means the system's authorities, `insecure` checks nothing about the server.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        authority: Pem | None = None,
        certificate: Pem | None = None,
        key: Pem | None = None,
        insecure: bool = False,
    ) -> None:
        self._clock = clock
        self._authority = authority
        self._certificate = certificate
        self._key = key
        self._insecure = insecure
        self._context: ssl.SSLContext | None = None
        self._plugin_certificate: ClientCertificate | None = None
        self._built_from: tuple[bytes | None, ClientCertificate | None] | None = None
        self._read_at = float("-inf")
        self.changed_at = float("-inf")

    def context(self) -> ssl.SSLContext:
        """The context for new connections; AuthenticationUnavailable where files are no use and there is no earlier."""
        if self._context is None:
            self.update(self._plugin_certificate)
        assert self._context is not None
        return self._context

    def update(self, plugin_certificate: ClientCertificate | None = None, *, older_than: float | None = None) -> None:
        """Read the files again if it is time, or if they were read at `older_than` or before; rebuild what changed."""
        now = self._clock()
        due = now - self._read_at >= PEM_FILE_PERIOD_S or (older_than is not None and self._read_at <= older_than)
        if not due and self._context is not None and plugin_certificate == self._plugin_certificate:
            return
        self._read_at = now
        self._plugin_certificate = plugin_certificate
        try:
            authority = self._authority.read() if self._authority is not None else None
            certificate = plugin_certificate or self._read_certificate()
            if self._context is not None and self._built_from == (authority, certificate):
                return
            context = self._build(authority, certificate)
        except AuthenticationUnavailable as error:
            if self._context is None:
                raise
            log.warning("Using the last valid TLS settings: %s", error)
            return
        if self._context is not None:
            log.info("The certificate authority or the client certificate changed; new connections use it")
        self._context = context
        self._built_from = (authority, certificate)
        self.changed_at = now

    def _read_certificate(self) -> ClientCertificate | None:
        if self._certificate is None or self._key is None:
            return None
        return ClientCertificate(self._certificate.name, self._certificate.read(), self._key.read())

    def _build(self, authority: bytes | None, certificate: ClientCertificate | None) -> ssl.SSLContext:
        context = (
            ssl.create_default_context() if self._authority is None else _trusting(self._authority.name, authority)
        )
        # From Python 3.13 on the default is stricter than Go: authorities without an Authority Key Identifier, which
        # many clusters have, would be refused. Go also takes any certificate in the bundle as an anchor.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.set_alpn_protocols(["http/1.1"])
        if self._insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate is not None:
            _show(context, certificate)
        return context


def _trusting(name: str, authority: bytes | None) -> ssl.SSLContext:
    # Comments around the certificates may be in any encoding. Without a certificate the default would be the system's.
    text = (authority or b"").decode("ascii", "ignore")
    try:
        if "-----BEGIN" not in text:
            raise ValueError
        return ssl.create_default_context(cadata=text)
    except (ssl.SSLError, ValueError):
        raise AuthenticationUnavailable(
            f"{name}: there is no PEM certificate in it; one begins with -----BEGIN CERTIFICATE-----"
        ) from None


def _show(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    name = certificate.name
    try:
        load_cert_chain(context, certificate.chain.rstrip() + b"\n" + certificate.key)
    except (ssl.SSLError, ValueError):
        raise AuthenticationUnavailable(
            f"{name}: certificate and key are not PEM, do not belong together, or the key is encrypted;"
            " take both from one place, and the key without a passphrase"
        ) from None
    except OSError as error:
        raise AuthenticationUnavailable(
            f"{name}: no temporary file for it in {tempfile.gettempdir()} ({error.strerror}); set TMPDIR"
        ) from None


def no_passphrase() -> bytes:
    """Passphrase of an encrypted key: it is refused instead of requested at a terminal."""
    return b""


def load_cert_chain(context: ssl.SSLContext, pem: bytes) -> None:
    """Have a client's or a server's `context` show a certificate that is held in memory.

    Args:
        pem: the certificate, the certificates between it and its authority, and its private key.

    Raises:
        ssl.SSLError: they are no PEM, do not belong together, or the key is encrypted.
        OSError: no file could be made for them.
    """
    with _as_file(pem) as path:
        context.load_cert_chain(path, password=no_passphrase)


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path under which `content` can be read meanwhile, in memory where the system has such files."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("certificate", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
