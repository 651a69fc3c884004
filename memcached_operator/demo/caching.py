"""Keys through memcacheds: what shows that a pod is a server and not only a name, and what its name is good for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from memcached_operator.demo.cluster_state import ClusterState
from memcached_operator.servers.server_connection import Endpoint, Failure, exchange

PORT = 11211
_DEADLINE_S = 5.0


class StepFailedError(Exception):
    """A step of the demo did not come true; the message has what was seen instead, such as a server's response."""


def spread(keys: Sequence[str], servers: Sequence[str]) -> Mapping[str, list[str]]:
    """Spread keys over servers, by the hash of the server's name and the key (rendezvous hashing).

    A client that hashes the listed names finds its keys again as long as the names are the same, wherever they lead.
    """
    found: dict[str, list[str]] = {server: [] for server in servers}
    for key in keys:
        found[max(servers, key=lambda server: hashlib.sha256(f"{server} {key}".encode()).digest())].append(key)
    return found


async def through_each_pod(state: ClusterState, memcached: str) -> int:
    """Set and get a key through each of a Memcached's pods; how many there were.

    Raises:
        StepFailedError: it was not stored, or another value came back, or no answer in time.
    """
    pods = state.pods_of(memcached)
    for pod in pods:
        name, address = pod["metadata"]["name"], pod["status"]["podIP"]
        await _set(address, f"demo-{name}", name.encode())
        if not await _is_there(address, f"demo-{name}", name.encode()):
            raise StepFailedError(f"{address}:{PORT} has lost demo-{name}")
    return len(pods)


async def set_all(state: ClusterState, keys_of: Mapping[str, Sequence[str]]) -> None:
    """Set keys, each on the listed server that it is spread to."""
    for server, keys in keys_of.items():
        for key in keys:
            await _set(state.address_of(server), key, key.encode())


async def look_up(state: ClusterState, keys_of: Mapping[str, Sequence[str]]) -> set[str]:
    """Find these keys, each on the listed server that it is spread to; return those that are there."""
    return {
        key
        for server, keys in keys_of.items()
        for key in keys
        if await _is_there(state.address_of(server), key, key.encode())
    }


async def _set(address: str, key: str, value: bytes) -> None:
    line = b"set %b 0 60 %d\r\n%b\r\n" % (key.encode(), len(value), value)
    answer = await _answer(address, line, b"\r\n")
    if answer != b"STORED\r\n":
        raise StepFailedError(f"{address}:{PORT} answered {answer!r}")


async def _is_there(address: str, key: str, value: bytes) -> bool:
    answer = await _answer(address, b"get %b\r\n" % key.encode(), b"END\r\n")
    if answer not in (b"END\r\n", b"VALUE %b 0 %d\r\n%b\r\nEND\r\n" % (key.encode(), len(value), value)):
        raise StepFailedError(f"{address}:{PORT} answered {answer!r}")
    return answer != b"END\r\n"


async def _answer(address: str, line: bytes, ends: bytes) -> bytes:
    def whole(received: bytes) -> bytes | None:
        return received if received.endswith(ends) else None

    answer, _ = await exchange(Endpoint(address, port=PORT), line, whole, _DEADLINE_S)
    if isinstance(answer, Failure):
        raise StepFailedError(f"{address}:{PORT} does not answer: {answer.why}")
    return answer
