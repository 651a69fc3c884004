"""Bodies of answers, with bounds on how much of one is read, and for how long.

A proxy or a broken server may send without end, at the speed of the network: 3 GiB in six seconds were seen. That
costs a connection and not the memory: each answer has a bound in bytes, by what it can be at most, and one in time.
"""

from __future__ import annotations

import asyncio

import aiohttp

from operator_runtime.client.connection_pools import describe
from operator_runtime.client.errors import AnswerTooLong, StreamStalled, Unreachable
from operator_runtime.client.exchange import Answer
from operator_runtime.client.frames import MAX_LINE_BYTES
from operator_runtime.client.response_identity import Expected

# One object, whether a watch brings it or a call.
MAX_OBJECT_BYTES = MAX_LINE_BYTES
# A `Status` has some hundred bytes. One that quotes an object may be longer, but its HTTP status has what counts.
MAX_ERROR_BYTES = 64 * 1024
# The body of a refusal follows its headers at once; it is not worth the rest of a call's time.
ERROR_BODY_S = 5.0


async def read_whole(answer: Answer, max_bytes: int, expected: Expected | None = None) -> bytes:
    """The body of an answer, whose connection is free then; its time is bounded by the exchange's own.

    A connection that brings something other than `expected` is closed, as the next answer would be another's, too.

    Raises:
        MalformedAnswer: it is not to the request.
        AnswerTooLong: it has more than `max_bytes`; no more of them are read.
        aiohttp.ClientError, OSError, TimeoutError: it did not come whole.
    """
    content = answer.content
    chunks: list[bytes] = []
    received_bytes = 0
    try:
        while chunk := await content.readany():
            received_bytes += len(chunk)
            if received_bytes > max_bytes:
                raise AnswerTooLong(f"the answer is longer than {max_bytes} bytes")
            chunks.append(chunk)
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if expected is not None and body.startswith(b"{"):
            expected.check(body)
    except BaseException:
        answer.abort()
        raise
    answer.release()
    return body


async def read_beginning(answer: Answer) -> bytes:
    """The body of a refusal, as far as it is read and comes in time; its end is not waited for."""
    taken = bytearray()
    try:
        async with asyncio.timeout(ERROR_BODY_S):
            while len(taken) < MAX_ERROR_BYTES and (chunk := await answer.content.readany()):
                taken += chunk
    except (aiohttp.ClientError, OSError, TimeoutError):
        pass  # the headers have shown already what this is
    if answer.content.at_eof():
        answer.release()
    else:
        answer.abort()
    return bytes(taken[:MAX_ERROR_BYTES])


class Stream:
    """The body of a watch, as it comes: bounded in time, and not in bytes. Read it until b"", then close it.

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
