"""Bounds on what unknown clients can make a server hold: connections, and bytes that are on their way.

Any client that reaches a port may connect, send slowly and take nothing. So connections are counted from before a TLS
handshake on, and one more ends the one that has waited longest for its peer.
"""

from __future__ import annotations

import asyncio

ConnectionTask = asyncio.Task[None]
"""A connection's task, from its accept to its end. To cancel it ends the connection at once."""


class Connections:
    """The open connections of a server, which holds `most_bytes` of answers, all together, at most.

    What is held for several counts once, and one may hold more where nothing else is held.

    Invariants:
        `_open` has each of them, and at most `most` of them. Of these `_waiting` has those that wait for their
        peer to shake hands, to send a request or to take an answer, with what is held of it, longest first; the others
        are being answered. `_ending` were cancelled to make room and do so.
    """

    def __init__(self, *, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._open: set[ConnectionTask] = set()
        self._waiting: dict[ConnectionTask, bytes] = {}
        self._ending: set[ConnectionTask] = set()

    def make_room(self) -> bool:
        """Report whether there is room for one more. May end the one that has waited longest for its peer."""
        if len(self._open) < self._most:
            return True
        if not self._waiting:
            return False
        self._end(next(iter(self._waiting)))
        return True

    def add(self, task: ConnectionTask) -> None:
        """Count one more, which waits for its peer."""
        self._open.add(task)
        self.sends(task, b"")
        task.add_done_callback(self._forget)

    def answers(self, task: ConnectionTask) -> None:
        """Record that a request is being answered: its peer waits and not we."""
        self._waiting.pop(task, None)

    def sends(self, task: ConnectionTask, held: bytes) -> None:
        """Record what a peer is to take; with nothing, that it is to send. May end other connections, or it."""
        if task not in self._open:
            return
        self._waiting.pop(task, None)  # from now on it waits for something else
        self._waiting[task] = held
        if held:
            self._drop()

    async def end_all(self) -> None:
        # A task that is cancelled before it began would not close its connection.
        await asyncio.sleep(0)
        tasks = [*self._open, *self._ending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, task: ConnectionTask) -> None:
        self._open.discard(task)
        self._ending.discard(task)
        self._waiting.pop(task, None)

    def _drop(self) -> None:
        """End the connections whose bytes have been on their way longest, while too many are held."""
        while (oldest := next((held for held in self._waiting.values() if held), None)) is not None:
            sizes = {id(held): len(held) for held in self._waiting.values() if held}
            if len(sizes) <= 1 or sum(sizes.values()) <= self._most_bytes:
                return
            for task in [task for task, held in self._waiting.items() if held is oldest]:
                self._end(task)

    def _end(self, task: ConnectionTask) -> None:
        # Before it is cancelled: it does not run at once, and another must not be found to end in its place.
        self._forget(task)
        self._ending.add(task)
        task.cancel()
