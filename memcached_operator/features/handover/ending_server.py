"""Words to a server whose pod is ending, on the listener of `handover_ending.lua`.

The kubelet refreshes its files no more. Each keeps the pod's hook waiting, and the last one ends it.
"""

from __future__ import annotations

from typing import Final

from memcached_operator.api.names import TELL_PORT
from memcached_operator.servers.server_connection import Endpoint, ErrorKind, Failure, exchange

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
