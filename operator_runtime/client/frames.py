"""Wire format of list and watch: the lines of a stream, the pages of a list, the metadata in both.

Objects themselves stay raw: the kind's own decoder chooses what of one is kept. The rules are `client.watch`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from operator_runtime.client.errors import UNDECODABLE, KubeError, MalformedAnswer, classify_event
from operator_runtime.client.json_depth import decode_nested

# 500 objects, the usual page, of 128 KiB each; where they are larger, pages of fewer are requested.
MAX_PAGE_BYTES = 64 * 1024 * 1024
# A list in one piece is as long as what there is: the 150,000 pods that Kubernetes is built for, of 7 KiB each.
MAX_LIST_BYTES = 1024 * 1024 * 1024

# Ten times what etcd takes for one object (1.5 MiB), as an aggregated API server may send more.
MAX_LINE_BYTES = 16 * 1024 * 1024

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_QUOTED_CHARS = 80
# Objects in one page of a list, as kubectl and client-go request.
PAGE_SIZE = 500


T = TypeVar("T")


class Frame(msgspec.Struct):
    """One line of a stream: a watch event, or the bare `Status` (named by its `kind`) that some send instead."""

    type: str = ""
    object: msgspec.Raw = msgspec.Raw()
    kind: str = ""


class FrameMetadata(msgspec.Struct):
    namespace: str = ""
    name: str = ""
    resourceVersion: str = ""
    annotations: dict[str, str] | None = None

    @property
    def ends_snapshot(self) -> bool:
        """Report whether this is the bookmark that follows the last object of a streaming list."""
        return self.annotations is not None and self.annotations.get(_INITIAL_EVENTS_END) == "true"


class ListMetadata(msgspec.Struct):
    resourceVersion: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct):
    """One page of a list, or the `Status` in its place."""

    kind: str = ""
    metadata: ListMetadata = msgspec.field(default_factory=ListMetadata)
    # Go writes an empty list as null when it was not allocated.
    items: list[msgspec.Raw] | None = None


class _Bare(msgspec.Struct):
    metadata: FrameMetadata = msgspec.field(default_factory=FrameMetadata)


_decode_frame = msgspec.json.Decoder(Frame).decode
_decode_bare = msgspec.json.Decoder(_Bare).decode
_decode_page = msgspec.json.Decoder(Page).decode


def frame_of(line: bytes) -> Frame:
    """Read one line of a stream; MalformedAnswer where it is no watch event. `refusal_of` has other errors."""
    try:
        return decode_nested(_decode_frame, line)
    except UNDECODABLE as error:
        raise _not_an_event(line) from error


def refusal_of(frame: Frame, line: bytes) -> KubeError:
    """Error of a line that is neither an object's event nor a bookmark: the server's, or that it is none."""
    if frame.type == "ERROR":
        return classify_event(frame.object)
    if frame.kind == "Status":
        return classify_event(line)
    return _not_an_event(line)


def page_of(body: bytes) -> Page:
    """Read one page of a list.

    Raises:
        MalformedAnswer: not a list, or one without a resourceVersion (a watch from "" would miss what came since).
        ApiError: a `Status` delivered as 200.
    """
    try:
        page = decode_nested(_decode_page, body)
    except UNDECODABLE as error:
        raise MalformedAnswer(f"not a list of objects: {_quote(body)}") from error
    if page.kind == "Status":
        raise classify_event(body)
    if not page.metadata.resourceVersion:
        raise MalformedAnswer("a list without a resourceVersion: there is nothing to watch from")
    return page


def bookmark_of(raw: msgspec.Raw) -> FrameMetadata:
    """Return the metadata of a bookmark, its only true part. A built-in kind's comes with a whole object of nulls.

    Raises MalformedAnswer where there is no metadata, or no resourceVersion in it.
    """
    try:
        metadata = _decode_bare(raw).metadata
    except UNDECODABLE as error:
        raise MalformedAnswer(f"a bookmark without metadata: {_quote(bytes(raw))}") from error
    if not metadata.resourceVersion:
        raise MalformedAnswer(f"a bookmark without a resourceVersion: {_quote(bytes(raw))}")
    return metadata


def metadata_of(raw: msgspec.Raw) -> FrameMetadata:
    """Return the metadata of an object that its kind's decoder cannot read; empty where not even that can be read."""
    try:
        return decode_nested(_decode_bare, bytes(raw)).metadata
    except UNDECODABLE:
        return FrameMetadata()


def object_of(decode: Callable[[bytes], T], answer: bytes) -> T:
    """Decode an answer that is to be one object.

    Raises:
        MalformedAnswer: it is no object of the API at all: cut short, or a proxy's word in JSON.
        msgspec.DecodeError: it is one, and `decode` cannot read it.
    """
    try:
        return decode(answer)
    except UNDECODABLE as error:
        if metadata_of(msgspec.Raw(answer)).name:
            raise
        raise MalformedAnswer(f"not an object of the API: {_quote(answer)}") from error


class LineSplitter:
    """Collects chunks, gives back whole lines, of bounded length.

    aiohttp's own `readline` gives up at 512 KiB, while an object may reach etcd's 1.5 MiB and more in memory; and a
    broken proxy must not fill the operator's memory with one endless line. Only new bytes are searched, so a line of n
    bytes costs O(n) however many chunks bring it.

    `_held` is the beginning of one line.
    """

    __slots__ = ("_held", "_max_line_bytes")

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._held = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """The non-empty lines that `chunk` completes, without newlines; MalformedAnswer for one over the bound."""
        first, *rest = chunk.split(b"\n")
        if not rest:
            self._hold(first)
            return []
        tail = rest.pop()
        if self._held:
            first = self.rest() + first
        lines = [line for line in (first, *rest) if line]
        for line in lines:
            self._check(len(line))
        if tail:
            self._hold(tail)
        return lines

    def rest(self) -> bytes:
        """Return what came after the last newline, and forget it: a last line without an end, or half of one."""
        rest = bytes(self._held)
        self._held.clear()
        return rest

    def _hold(self, part: bytes) -> None:
        self._check(len(self._held) + len(part))
        self._held += part

    def _check(self, length_bytes: int) -> None:
        if length_bytes > self._max_line_bytes:
            raise MalformedAnswer(
                f"a line of the watch is longer than {self._max_line_bytes} bytes: "
                "not a Kubernetes object, or a proxy that garbles the stream"
            )


def _not_an_event(line: bytes) -> MalformedAnswer:
    return MalformedAnswer(f"not a watch event: {_quote(line)}")


def _quote(body: bytes) -> str:
    return repr(body[: _QUOTED_CHARS * 4].decode("utf-8", "replace")[:_QUOTED_CHARS])
