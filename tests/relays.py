"""What can stand between an operator and the API server: a TLS front as a load balancer has it, an HTTP proxy."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

_HOST = "127.0.0.1"
_CHUNK_BYTES = 65_536
_HEAD_END = b"\r\n\r\n"
_DIAL_TIMEOUT_S = 10.0


class Relay:
    """Listens on loopback and serves each connection on a thread; a context manager."""

    def __init__(self) -> None:
        self._listener = socket.create_server((_HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._flowing = threading.Event()
        self._flowing.set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Close every connection that is open."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def stall(self) -> None:
        """Carry nothing any more, and close nothing either: what a network does that has lost its way."""
        self._flowing.clear()

    def serve(self, connection: socket.socket) -> None:
        """Serve one connection to its end; OSError ends it too."""
        raise NotImplementedError

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._flowing.wait()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            self._held(connection, lambda: self.serve(connection))

    def _held(self, connection: socket.socket, work: Callable[[], None]) -> None:
        with self._lock:
            self._open.add(connection)
        try:
            work()
        finally:
            with self._lock:
                self._open.discard(connection)

    def _join(self, near: socket.socket, far: socket.socket, answered: Callable[[bytes], None] | None = None) -> None:
        """Carry bytes both ways until either side ends; `answered` is told those of the far side."""

        def carry(source: socket.socket, target: socket.socket, told: Callable[[bytes], None] | None) -> None:
            with suppress(OSError):
                while data := source.recv(_CHUNK_BYTES):
                    self._flowing.wait()
                    if told is not None:
                        told(data)
                    target.sendall(data)
            for each in (source, target):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

        back = threading.Thread(target=carry, args=(far, near, answered), daemon=True)
        back.start()
        carry(near, far, None)
        back.join()


class ConnectProxy(Relay):
    """An HTTP proxy that opens tunnels; `tunnels` has the HOST:PORT of each."""

    def __init__(self) -> None:
        super().__init__()
        self.tunnels: list[str] = []

    def serve(self, connection: socket.socket) -> None:
        head = _head(connection)
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        assert method == "CONNECT"
        host, _, port = target.rpartition(":")
        self.tunnels.append(target)
        with socket.create_connection((host, int(port)), timeout=_DIAL_TIMEOUT_S) as far:
            far.settimeout(None)
            connection.sendall(b"HTTP/1.1 200 Connection established" + _HEAD_END)
            self._join(connection, far)


@dataclass(slots=True)
class Conversation:
    """One connection through a front: its first request, and everything that came back on it."""

    request_line: str
    answer: bytearray = field(default_factory=bytearray)


class TlsFront(Relay):
    """Ends TLS with a certificate of its own before an API server, and hears what is said."""

    def __init__(self, server_port: int, authority: Path, certificate: Path, key: Path) -> None:
        """
        Args:
            server_port: the API server's, on loopback.
            authority: whom to trust for the API server.
            certificate: shown to clients, with its `key`.
        """
        super().__init__()
        self._server_port = server_port
        self._client_context = ssl.create_default_context(cafile=authority)
        self.conversations: list[Conversation] = []
        self.show(certificate, key)

    def show(self, certificate: Path, key: Path) -> None:
        """Show another certificate to whoever connects from now on."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server_context = context

    def answers(self, path: str) -> bytes:
        """All that came back on connections whose first request was for this path."""
        return b"".join(bytes(each.answer) for each in self.conversations if f" {path}?" in each.request_line)

    def serve(self, connection: socket.socket) -> None:
        with self._server_context.wrap_socket(connection, server_side=True) as near:
            self._held(near, lambda: self._carry(near))

    def _carry(self, near: socket.socket) -> None:
        head = _head(near)
        conversation = Conversation(head.split(b"\r\n", 1)[0].decode())
        self.conversations.append(conversation)
        raw = socket.create_connection((_HOST, self._server_port), timeout=_DIAL_TIMEOUT_S)
        with self._client_context.wrap_socket(raw, server_hostname=_HOST) as far:
            far.settimeout(None)
            far.sendall(head)
            self._join(near, far, conversation.answer.extend)


def _head(connection: socket.socket) -> bytes:
    """What came until the first blank line was complete, and perhaps some bytes more."""
    head = b""
    while _HEAD_END not in head:
        data = connection.recv(_CHUNK_BYTES)
        if not data:
            raise ConnectionError("closed before a request was complete")
        head += data
    return head
