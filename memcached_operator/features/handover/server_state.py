"""Queries of a server that hands over, on the port of its peers, and words to one whose pod is ending.

The port of peers has no routes: a command there is for this server alone. The words go to the listener of
`handover_ending.lua`, as the kubelet refreshes the files of such a pod no more. Each keeps the pod's hook waiting, and
the last one ends it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from memcached_operator.api.names import TELL_PORT
from memcached_operator.core.objects.labels import PEERS_PORT
from memcached_operator.features.handover.move.item_copy import Transferred, transfer_all
from memcached_operator.features.handover.purge import EmptyServer, PurgeServer, empty, purge
from memcached_operator.servers.server_connection import Endpoint, ErrorKind, Failure, exchange
from memcached_operator.servers.stats_answer import WHOLE
from memcached_operator.servers.text_protocol import MALFORMED, Stats, two_stats_of

ANSWER_WITHIN_S: Final = 1.0
_GENERATIONS: Final = b"user_handover_generation"


@dataclass(frozen=True, slots=True)
class HandoverState:
    """State of a server, by its counters.

    Attributes:
        generations: sum of the generations of the peers' file that each thread has read last.
    """

    threads: int
    generations: int
    items: int = 0

    def has_confirmed(self, generation: int) -> bool:
        """Report whether each thread has read the peers' file of that generation, the last that was written."""
        return self.generations == generation * self.threads


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A server that answers and cannot hand over: its memcached is older than 1.6.45, or has no proxy."""


async def state_of(address: str, timeout_s: float, *, port: int = PEERS_PORT) -> HandoverState | Unsupported | Failure:
    """Query a server."""
    response: tuple[HandoverState | Unsupported | Failure, bytes] = await exchange(
        Endpoint(address, port=port), b"stats\r\nstats proxy\r\n", _state, timeout_s
    )
    return response[0]


def _state(received: bytes) -> HandoverState | Unsupported | Failure | None:
    """Parse the responses to `stats` and `stats proxy`; None while they are not whole."""
    found = two_stats_of(received)
    if found is None or isinstance(found, Failure):
        return found
    stats, proxy = found
    if not stats:
        return MALFORMED
    if isinstance(proxy, Failure):
        return Unsupported() if proxy.kind is ErrorKind.REFUSED else proxy
    return None if proxy is None else _of_counters(stats, proxy)


def _of_counters(stats: Stats, proxy: Stats) -> HandoverState | Unsupported | Failure:
    if _GENERATIONS not in proxy:
        return Unsupported()
    numbers = (stats.get(b"threads", b""), proxy[_GENERATIONS], stats.get(b"curr_items", b"0"))
    if not all(map(WHOLE.fullmatch, numbers)):
        return MALFORMED
    return HandoverState(*map(int, numbers))


DONE: Final = "done"
"""Its pod may end."""
_WAITS: Final = "waits"
_HEARD: Final = b"HD\r\n"
_REFUSED: Final = Failure(ErrorKind.REFUSED, "it does not wait")


async def say(address: str, text: str, timeout_s: float, *, port: int = TELL_PORT) -> bool | Failure:
    """Tell a server its peers, or that its pod may end; True once it has heard that.

    Args:
        text: as the annotation of its pod has it, "" for none, or `DONE`.
    """
    word = text.replace("\n", ",").replace(" ", "/") or _WAITS
    answer: tuple[bool | Failure, bytes] = await exchange(
        Endpoint(address, port=port), f"mg {word}\r\n".encode(), _heard, timeout_s
    )
    return answer[0]


def _heard(received: bytes) -> bool | Failure | None:
    if not received.endswith(b"\r\n"):
        return None
    return True if received == _HEARD else _REFUSED


class PeersPort(NamedTuple):
    """Requests to servers, on the port of their peers; each takes the address of a pod.

    Attributes:
        state_of: how far a server is.
        purge: deletes what was not used since a time, in seconds since 1970.
        empty: deletes all items.
        transfer: has the second one copy what it lacks of the first one's items.
        say: tells one whose pod is ending its peers, or that it may end.
    """

    state_of: Callable[[str, float], Awaitable[HandoverState | Unsupported | Failure]]
    purge: PurgeServer
    empty: EmptyServer
    transfer: Callable[[str, str, float | None, Callable[[int], None]], Coroutine[Any, Any, Transferred | Failure]] = (
        transfer_all
    )
    say: Callable[[str, str, float], Awaitable[bool | Failure]] = say


PEERS: Final = PeersPort(state_of, purge, empty)
