"""Pure: peers from which a server fills itself, as the annotation of its pod has them.

The kubelet writes the annotation into a file, which `handover.lua` reads each second. The first line is the
generation, and each further line a peer: host, port, and "joining" for one that is told of writes and not queried.
A line "closed" has the server refuse writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from memcached_operator.core.objects.labels import OUTDATED_ITEMS_ANNOTATION, PEERS_ANNOTATION, PEERS_PORT
from memcached_operator.core.observed.pods import PodRecord

# Times the number of threads it fits into 32 bits, as memcached counts.
_GENERATION: Final = re.compile(r"[1-9][0-9]{0,6}")
_CLOSED: Final = "closed"
_PEER: Final = re.compile(r"(\S+) [0-9]+( joining)?")


class Peers(NamedTuple):
    """Peers of one server.

    Attributes:
        generation: grows with each change of it; 1 or more.
        addresses: IP addresses of the peers. Empty: the server queries no other, and still hides marks from clients.
        joining: those of them that may have older copies: they are told of writes, and not queried.
        is_closed: the server is about to end, and refuses writes.
    """

    generation: int
    addresses: tuple[str, ...] = ()
    joining: frozenset[str] = frozenset()
    is_closed: bool = False

    def __str__(self) -> str:
        """The value of the annotation."""
        lines = (f"{each} {PEERS_PORT}{' joining' if each in self.joining else ''}" for each in self.addresses)
        return "\n".join([str(self.generation), *lines, *([_CLOSED] if self.is_closed else [])])


def peers_of(annotation: str) -> Peers | None:
    """Parse an annotation; None for one that is missing, or not of the operator's making."""
    generation, *lines = annotation.split("\n")
    if is_closed := lines[-1:] == [_CLOSED]:
        lines.pop()
    found = [_PEER.fullmatch(line) for line in lines]
    if not _GENERATION.fullmatch(generation) or not all(found):
        return None
    peers = [each for each in found if each is not None]
    joining = frozenset(each[1] for each in peers if each[2])
    return Peers(int(generation), tuple(each[1] for each in peers), joining, is_closed)


def was_applied(pod: PodRecord, annotations: Mapping[str, str | None]) -> bool:
    """Report whether a pod has annotations as they were written; a webhook may have changed them."""
    is_outdated = annotations.get(OUTDATED_ITEMS_ANNOTATION, "true") is not None
    is_marked = OUTDATED_ITEMS_ANNOTATION not in annotations or pod.outdated_items == is_outdated
    return is_marked and pod.peers == annotations.get(PEERS_ANNOTATION, pod.peers)
