"""A certificate and its key that are in memory, such as a Secret's, into a TLS context, which takes files alone."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def no_passphrase() -> bytes:
    """Passphrase of an encrypted key: it is refused instead of requested at a terminal."""
    return b""


def load_cert_chain(context: ssl.SSLContext, pem: bytes, passphrase: Callable[[], bytes | str] = no_passphrase) -> None:
    """Have a client's or a server's `context` show a certificate that is held in memory.

    Args:
        pem: the certificate, the certificates between it and its authority, and its private key.
        passphrase: called where the key is encrypted.

    Raises:
        ssl.SSLError: they are no PEM, do not belong together, or the key is encrypted.
        OSError: no file could be made for them.
    """
    with _as_file(pem) as path:
        context.load_cert_chain(path, password=passphrase)


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
