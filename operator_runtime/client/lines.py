"""Split a byte stream into lines, with a bound on the length of one.

aiohttp's own `readline` gives up at 512 KiB, while an object may reach etcd's 1.5 MiB and more in memory; and a broken
proxy must not be able to fill the operator's memory with one endless line. Only new bytes are searched, so a line of n
bytes costs O(n) however many chunks bring it.
"""

from __future__ import annotations

from operator_runtime.client.errors import MalformedAnswer

# Ten times what etcd takes for one object (1.5 MiB), as an aggregated API server may send more.
MAX_LINE_BYTES = 16 * 1024 * 1024


class LineSplitter:
    """Collects chunks, gives back whole lines.

    Invariant: `_parts` holds the beginning of one line, without any newline, `_held_bytes` long in all.
    """

    __slots__ = ("_held_bytes", "_max_line_bytes", "_parts")

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._parts: list[bytes] = []
        self._held_bytes = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without their newlines; empty lines are left out.

        Raises:
            MalformedAnswer: a line is longer than the bound.
        """
        head, *rest = chunk.split(b"\n")
        if not rest:
            self._hold(head)
            return []
        tail = rest.pop()
        first = b"".join((*self._parts, head)) if self._parts else head
        self._parts.clear()
        self._held_bytes = 0
        lines = [line for line in (first, *rest) if line]
        for line in lines:
            self._check(len(line))
        if tail:
            self._hold(tail)
        return lines

    def rest(self) -> bytes:
        """Return what came after the last newline, and forget it: a last line without an end, or half of one."""
        rest = b"".join(self._parts)
        self._parts.clear()
        self._held_bytes = 0
        return rest

    def _hold(self, part: bytes) -> None:
        self._check(self._held_bytes + len(part))
        self._parts.append(part)
        self._held_bytes += len(part)

    def _check(self, length_bytes: int) -> None:
        if length_bytes > self._max_line_bytes:
            raise MalformedAnswer(
                f"a line of the watch is longer than {self._max_line_bytes} bytes: "
                "not a Kubernetes object, or a proxy that garbles the stream"
            )
