"""The way to the API server: who asks, over which connections, and how answers and watches are read.

aiohttp makes a TLS context that trusts the machine's certificate authorities as it is imported, which takes a third of
a start's time. Connections of this package have contexts of their own. So the authorities are loaded with the first
connection that uses aiohttp's, such as one of an author's own session.
"""

from __future__ import annotations

import ssl
from typing import Any


def _load_when_used(context: ssl.SSLContext, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:
    """In place of `SSLContext.load_default_certs`."""

    def wrap_bio(*arguments: Any, **options: Any) -> ssl.SSLObject:
        del context.wrap_bio  # the class's own is seen again
        context.load_default_certs(purpose)
        return context.wrap_bio(*arguments, **options)

    context.wrap_bio = wrap_bio  # type: ignore[method-assign]


_load, ssl.SSLContext.load_default_certs = ssl.SSLContext.load_default_certs, _load_when_used  # type: ignore[method-assign, assignment]
try:
    import aiohttp  # noqa: F401 -- so that it is imported here first
finally:
    ssl.SSLContext.load_default_certs = _load  # type: ignore[method-assign]
