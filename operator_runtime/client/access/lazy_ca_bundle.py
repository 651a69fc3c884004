"""aiohttp, without the machine's certificate authorities until a connection needs them.

aiohttp makes a TLS context that trusts them as it is imported, which takes a twelfth of a start's processor time.
Connections to the API server have contexts of their own. The authorities are loaded with the first connection that uses
aiohttp's context, such as one of an author's own session.
"""

from __future__ import annotations

import ssl
from typing import Any

__all__ = ["aiohttp"]


def _load_when_used(context: ssl.SSLContext, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:
    """Replace `SSLContext.load_default_certs`."""

    def wrap_bio(*arguments: Any, **options: Any) -> ssl.SSLObject:
        del context.wrap_bio  # the class's own is seen again
        context.load_default_certs(purpose)
        return context.wrap_bio(*arguments, **options)

    context.wrap_bio = wrap_bio  # type: ignore[method-assign]


_load = ssl.SSLContext.load_default_certs
ssl.SSLContext.load_default_certs = _load_when_used  # type: ignore[method-assign, assignment]
try:
    import aiohttp
finally:
    ssl.SSLContext.load_default_certs = _load  # type: ignore[method-assign]
