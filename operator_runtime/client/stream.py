"""The body of a watch, as it comes: bounded in time, and not in bytes."""

from __future__ import annotations

import asyncio

import aiohttp

from operator_runtime.client.connection_pools import describe
from operator_runtime.client.errors import StreamStalled, Unreachable
from operator_runtime.client.exchange import Answer


class Stream:
    """The body of an answer that goes on arriving. Read it until b"", then close it.

    Invariant: one timer runs; when it is due it checks what has come since. One for each read would cost more than the
    read.
    """

    __slots__ = ("_answer", "_ends_at", "_loop", "_silence_limit_s", "_silent_since", "_timer", "received_bytes")

    def __init__(self, answer: Answer, silence_limit_s: float, longest_s: float) -> None:
        self._answer = answer
        self._loop = asyncio.get_running_loop()
        self._silence_limit_s = silence_limit_s
        self._silent_since = self._loop.time()
        self._ends_at = self._silent_since + longest_s
        self._timer = self._loop.call_at(self._due_at(), self._check)
        self.received_bytes = 0

    async def read(self) -> bytes:
        """The next bytes, as they come; b"" at a clean end.

        Raises:
            StreamStalled: no byte for the silence limit, or no end long after the one that was requested.
            Unreachable: the connection broke, also in the middle of a chunk.
        """
        try:
            chunk = await self._answer.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(describe(error)) from error
        self._silent_since = self._loop.time()
        self.received_bytes += len(chunk)
        return chunk

    def close(self) -> None:
        self._timer.cancel()
        self._answer.abort()

    def _due_at(self) -> float:
        return min(self._silent_since + self._silence_limit_s, self._ends_at)

    def _check(self) -> None:
        # Not aiohttp's own timer: bytes of which nothing comes, such as the length of a chunk digit by digit, are bytes
        # to it.
        content = self._answer.content
        now = self._loop.time()
        if content.is_eof() or content.exception() is not None:
            return
        if now >= self._ends_at:
            content.set_exception(StreamStalled("it goes on after its end"))
            return
        if content.total_bytes > self.received_bytes:
            # After this process itself was stopped, its timers are due in the same moment as what has come meanwhile.
            self._silent_since = now
        if now >= self._due_at():
            content.set_exception(StreamStalled(f"no byte for {self._silence_limit_s:.0f} s"))
            return
        self._timer = self._loop.call_at(self._due_at(), self._check)
