"""Certificate that metrics are served with: files, followed as they change, or one that is signed here."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import Metric

from operator_runtime.client.access.tls import load_cert_chain, no_passphrase
from operator_runtime.serving.listening import ServingError
from operator_runtime.telemetry.metrics import counter, gauge

logger = logging.getLogger(__name__)

# As in a Secret of type kubernetes.io/tls.
CERTIFICATE_FILE, KEY_FILE = "tls.crt", "tls.key"
# A fresh interpreter that loads cryptography takes a second; a loaded machine several.
_SIGNING_TIMEOUT_S = 60.0

_Stamp = tuple[tuple[int, int, int], ...]


class CertificateFiles:
    """A server's TLS context that follows tls.crt and tls.key in a folder; ServingError where they are no such files.

    Each handshake checks whether the files are other ones (two stats), so that a renewed certificate is served at once
    and no timer is needed. Files that do not fit together (half of a renewal was written) leave the last good ones in
    place. The server is opened with `context`, which hands each connection to the context of the newest good files.
    """

    def __init__(self, directory: Path, flag: str) -> None:
        self._certificate, self._key = directory / CERTIFICATE_FILE, directory / KEY_FILE
        self._reads = self._errors = 0
        self._usable = True
        self._tried = self._stamp()
        try:
            self.context = self._current = self._load()
        except (OSError, ssl.SSLError) as error:
            raise ServingError(
                f"{flag}={directory}: cannot serve with {CERTIFICATE_FILE} and {KEY_FILE} there: {_why(error)}. "
                "Put a certificate and its private key there, PEM, or name another folder."
            ) from error
        self.context.sni_callback = self._choose

    def families(self) -> Iterator[Metric]:
        """Yield how often the files were read, under controller-runtime's names, and whether they are served now."""
        total, errors = "Times that the files of the certificate were read.", "Times that they could not be used."
        yield counter("certwatcher_read_certificate_total", total, (), [((), self._reads)])
        yield counter("certwatcher_read_certificate_errors_total", errors, (), [((), self._errors)])
        # The counters alone do not show whether a renewal was half written once, or never came to its end.
        state = "Whether the files could be used when they were last read: 1 or 0."
        yield gauge("certwatcher_last_read_successful", state, (), [((), self._usable)])

    def _choose(self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        stamp = self._stamp()
        if stamp != self._tried:
            self._tried = stamp
            try:
                self._current = self._load()
                logger.info("serving metrics with a new certificate from %s", self._certificate)
            except (OSError, ssl.SSLError) as error:
                logger.warning(
                    "using the last valid certificate for metrics: %s and %s cannot be used: %s",
                    self._certificate,
                    self._key.name,
                    _why(error),
                )
        connection.context = self._current

    def _load(self) -> ssl.SSLContext:
        self._reads += 1
        context = _context()
        try:
            context.load_cert_chain(self._certificate, self._key, password=no_passphrase)
        except (OSError, ssl.SSLError):
            self._errors += 1
            self._usable = False
            raise
        self._usable = True
        return context

    def _stamp(self) -> _Stamp:
        return tuple(_file_stamp(path) for path in (self._certificate, self._key))


async def self_signed_context(flag: str) -> ssl.SSLContext:
    """A server's TLS context with a certificate that is signed by itself and lives in memory alone.

    It is made by a process of its own, so that what makes it (`cryptography`, some MiB) does not stay.

    Raises ServingError where cryptography is not installed, or the process failed; `flag` is the way out.
    """
    names = [socket.gethostname(), "localhost", "127.0.0.1", "::1"]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "operator_runtime.serving.self_signed", *names),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        pem, complaint = await asyncio.wait_for(process.communicate(), _SIGNING_TIMEOUT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        pem, complaint = b"", b"no answer in time"
    if process.returncode != 0 or not pem:
        last = (complaint.decode("utf-8", "replace").strip().splitlines() or ["no reason given"])[-1]
        raise ServingError(f"cannot sign a certificate for the metrics: {last}. Or give one with {flag}.")
    context = _context()
    load_cert_chain(context, pem)
    return context


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _file_stamp(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def _why(error: OSError | ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return (error.strerror or str(error)).lower()
