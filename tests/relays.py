"""An HTTP proxy between an operator and the API server."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self

_HOST = "127.0.0.1"
_CHUNK_BYTES = 65_536
_HEAD_END = b"\r\n\r\n"
_DIAL_TIMEOUT_S = 10.0


class ConnectProxy:
    """Opens tunnels on loopback, each on a thread; `tunnels` has the HOST:PORT of each. A context manager."""

    def __init__(self) -> None:
        self._listener = socket.create_server((_HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self.tunnels: list[str] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with near, suppress(OSError):
            head = b""
            while _HEAD_END not in head:
                data = near.recv(_CHUNK_BYTES)
                if not data:
                    return
                head += data
            method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
            assert method == "CONNECT"
            host, _, port = target.rpartition(":")
            self.tunnels.append(target)
            with socket.create_connection((host, int(port)), timeout=_DIAL_TIMEOUT_S) as far:
                far.settimeout(None)
                near.sendall(b"HTTP/1.1 200 Connection established" + _HEAD_END)
                back = threading.Thread(target=_carry, args=(far, near), daemon=True)
                back.start()
                _carry(near, far)
                back.join()


def _carry(source: socket.socket, target: socket.socket) -> None:
    """Carry bytes one way until either side ends."""
    with suppress(OSError):
        while data := source.recv(_CHUNK_BYTES):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
