"""Bounds on what unknown clients can make a server hold: connections, and bytes that are on their way.

Any client that reaches a port may connect, send slowly and take nothing. So connections are counted from before a TLS
handshake on, and one more ends the one that has waited longest for its peer.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

logger = logging.getLogger(__name__)

# As asyncio's own servers do when descriptors or memory are short.
ACCEPT_PAUSE_S = 1.0

Conversation = asyncio.Task[None]
"""A connection's task, from its accept to its end. To cancel it ends the connection at once."""


class Connections:
    """Accepts connections, and ends those that stand in the way of others.

    Invariants:
        `_open` has each conversation, and at most `most` of them. Of these `_waiting` has those that wait for their
        peer to shake hands, to send a request or to take an answer, with what is held of it, longest first; the others
        are being answered. `_ending` were cancelled to make room and do so.
    """

    def __init__(
        self,
        name: str,
        converse: Callable[[socket.socket], Coroutine[Any, Any, None]],
        *,
        most: int,
        most_bytes: int,
        pause_s: float = ACCEPT_PAUSE_S,
    ) -> None:
        """
        Args:
            name: what is served, for the log.
            converse: serves one connection to its end, and closes it. It reports by `waits`, `answers` and `sends` how
                it is with it.
            most: connections at once.
            most_bytes: of answers that are held, all together. What is held for several counts once, and one may hold
                more where nothing else is held.
            pause_s: seconds without accepting where descriptors or memory are short.
        """
        self._name = name
        self._converse = converse
        self._most = most
        self._most_bytes = most_bytes
        self._pause_s = pause_s
        self._listening: list[socket.socket] = []
        self._open: set[Conversation] = set()
        self._waiting: dict[Conversation, bytes] = {}
        self._ending: set[Conversation] = set()
        self._short = False

    def listen(self, listening: Sequence[socket.socket]) -> None:
        """Accept from these, until `close`, which closes them."""
        self._listening = list(listening)
        for each in self._listening:
            self._resume(each)

    async def close(self) -> None:
        """Accept no more, and end all connections."""
        for each in self._listening:
            asyncio.get_running_loop().remove_reader(each)
            each.close()
        self._listening.clear()
        # A task that is cancelled before it began would not close its connection.
        await asyncio.sleep(0)
        tasks = [*self._open, *self._ending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def waits(self, task: Conversation) -> None:
        """Record that a conversation waits for its peer's handshake or request."""
        self.sends(task, b"")

    def answers(self, task: Conversation) -> None:
        """Record that a request is being answered: its peer waits and not we."""
        self._waiting.pop(task, None)

    def sends(self, task: Conversation, held: bytes) -> None:
        """Record what a peer is to take. May end other connections, or it."""
        if task not in self._open:
            return
        self._waiting.pop(task, None)  # from now on it waits for something else
        self._waiting[task] = held
        if held:
            self._drop()

    def _resume(self, listening: socket.socket) -> None:
        # asyncio's own servers report a connection with TLS only after its handshake: too late to bound them.
        if listening.fileno() != -1:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            connection, _ = listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # it has gone again
        except OSError as error:
            loop.remove_reader(listening)
            loop.call_later(self._pause_s, self._resume, listening)
            if not self._short:
                self._short = True
                logger.warning("%s: cannot accept connections: %s", self._name, (error.strerror or str(error)).lower())
            return
        self._short = False
        if len(self._open) >= self._most and not self._make_room():
            connection.close()
            return
        connection.setblocking(False)
        task = loop.create_task(self._converse(connection))
        self._open.add(task)
        self._waiting[task] = b""
        task.add_done_callback(self._forget)

    def _forget(self, task: Conversation) -> None:
        self._open.discard(task)
        self._ending.discard(task)
        self._waiting.pop(task, None)

    def _make_room(self) -> bool:
        """End the connection that has waited longest for its peer; False if none waits."""
        if not self._waiting:
            return False
        self._end(next(iter(self._waiting)))
        return True

    def _drop(self) -> None:
        """End the connections whose bytes have been on their way longest, while too many are held."""
        while (oldest := next((held for held in self._waiting.values() if held), None)) is not None:
            sizes = {id(held): len(held) for held in self._waiting.values() if held}
            if len(sizes) <= 1 or sum(sizes.values()) <= self._most_bytes:
                return
            for task in [task for task, held in self._waiting.items() if held is oldest]:
                self._end(task)

    def _end(self, task: Conversation) -> None:
        # Before it is cancelled: it does not run at once, and another must not be found to end in its place.
        self._forget(task)
        self._ending.add(task)
        task.cancel()
