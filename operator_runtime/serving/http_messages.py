"""Pure: HTTP/1.1 as far as probes and scrapes need it: a request's head in, an answer's bytes out.

kubelet, Prometheus and curl send short GETs without a body. Reading those takes a page of code; aiohttp's server would
take 3 MiB of memory in every operator, for as long as it lives. Whatever is unusual is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qs, unquote, urlsplit

TEXT = "text/plain; charset=utf-8"

# Room for a scraper's Accept header and a long bearer token; servers commonly take 8 to 64 KiB.
MAX_HEAD_BYTES = 16_384
# asyncio begins to hold a writer back when its peer has left so much untaken (the high-water mark of a transport).
PIECE_BYTES = 65_536


class BadRequest(Exception):
    """A head that is refused; the connection ends with the answer.

    Attributes:
        status: HTTP status code of the answer.
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request.

    Attributes:
        path: decoded, without the query.
        query: values by name; a name without a value has "".
        headers: by lower-case name; of repeated ones the values joined by commas.
        keep_alive: the client wants to send more on this connection.
        peer: IP address of the other end of the connection, which may be a proxy's; "" where it is not known.
    """

    method: str
    path: str
    query: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    keep_alive: bool = True
    peer: str = ""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """One answer."""

    status: int
    body: bytes = b""
    content_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


def text_response(status: int, text: str) -> HttpResponse:
    """An answer of one line or more of text."""
    return HttpResponse(status, text.encode())


def parse_head(head: bytes, peer: str = "") -> HttpRequest:
    """Read a request's head, up to and with the blank line, which came from that address.

    Raises:
        BadRequest: it is no HTTP/1 request, or it announces a body.
    """
    try:
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, target, version = first.split(" ")
    except ValueError:
        raise BadRequest(400, "not an HTTP request") from None
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadRequest(505, f"{version[:20]} is not spoken here")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        # A name with a space, or a line that begins with one, is how requests are smuggled past a proxy.
        if not colon or not name or name != name.strip() or " " in name:
            raise BadRequest(400, "a malformed header")
        name, value = name.lower(), value.strip()
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    if "transfer-encoding" in headers or headers.get("content-length", "0") != "0":
        raise BadRequest(413, "no body is taken here")
    if method not in ("GET", "HEAD"):
        raise BadRequest(405, "only GET and HEAD are answered here")
    try:
        parts = urlsplit(target)
        query = parse_qs(parts.query, keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise BadRequest(400, "a malformed URL") from None
    connection = {each.strip().lower() for each in headers.get("connection", "").split(",")}
    keep_alive = "close" not in connection if version == "HTTP/1.1" else "keep-alive" in connection
    values = {name: tuple(each) for name, each in query.items()}
    return HttpRequest(method, unquote(parts.path), values, headers, keep_alive, peer)


def encode_response(response: HttpResponse, *, keep_alive: bool, body: bool = True) -> Iterator[bytes | memoryview]:
    """An answer's bytes in pieces of about `PIECE_BYTES`, of which all but the first are views of the body.

    Args:
        response: the answer.
        keep_alive: another request may follow on the connection.
        body: False for the answer to a HEAD, which only has how long it would be.
    """
    try:
        phrase = HTTPStatus(response.status).phrase
    except ValueError:
        phrase = ""
    lines = [
        f"HTTP/1.1 {response.status} {phrase}",
        f"Content-Type: {response.content_type}",
        f"Content-Length: {len(response.body)}",
        "X-Content-Type-Options: nosniff",
        f"Connection: {'keep-alive' if keep_alive else 'close'}",
        *(f"{name}: {value}" for name, value in response.headers.items()),
    ]
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
    if not body:
        yield head
        return
    # Most answers are short, and go out as one packet.
    yield head + response.body[:PIECE_BYTES]
    for begin in range(PIECE_BYTES, len(response.body), PIECE_BYTES):
        yield memoryview(response.body)[begin : begin + PIECE_BYTES]
