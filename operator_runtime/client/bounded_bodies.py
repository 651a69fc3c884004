"""Bodies of answers, with bounds on how much of one is read, and for how long.

A proxy or a broken server may send without end, at the speed of the network: 3 GiB in six seconds were seen. That
costs a connection and not the memory: each answer has a bound in bytes, by what it can be at most, and one in time.
"""

from __future__ import annotations

import asyncio

import aiohttp

from operator_runtime.client.errors import AnswerTooLong
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
