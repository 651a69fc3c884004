"""A key through a memcached: what shows that a pod is a server and not only a name."""

from __future__ import annotations

import asyncio

from memcached_operator.demo.cluster_state import ClusterState

PORT = 11211
_DEADLINE_S = 5.0


class NoAnswerError(Exception):
    """A server did not keep a key; the message says which, and what it said."""


async def set_and_get(address: str, key: str, value: bytes) -> None:
    """Store a key and read it again, by memcached's text protocol.

    Raises:
        NoAnswerError: it was not stored, or another value came back, or nobody answered in time.
    """
    try:
        async with asyncio.timeout(_DEADLINE_S):
            reader, writer = await asyncio.open_connection(address, PORT)
            try:
                writer.write(b"set %b 0 60 %d\r\n%b\r\nget %b\r\n" % (key.encode(), len(value), value, key.encode()))
                answer = await reader.readuntil(b"END\r\n")
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        raise NoAnswerError(f"{address}:{PORT} does not answer: {error!r}") from error
    wanted = b"STORED\r\nVALUE %b 0 %d\r\n%b\r\nEND\r\n" % (key.encode(), len(value), value)
    if answer != wanted:
        raise NoAnswerError(f"{address}:{PORT} answered {answer!r}")


async def through_each_pod(state: ClusterState, memcached: str) -> int:
    """Set and get a key through each of a Memcached's pods; how many there were.

    Raises:
        NoAnswerError: one of them is no server.
    """
    pods = state.pods_of(memcached)
    for pod in pods:
        name = pod["metadata"]["name"]
        await set_and_get(pod["status"]["podIP"], f"demo-{name}", name.encode())
    return len(pods)
