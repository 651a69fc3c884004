"""Pure: input of a hand-over's next step: the status, the pods, and what their servers report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from memcached_operator.api.status import HandoverStatus
from memcached_operator.features.handover.peers import Peers
from memcached_operator.features.handover.step_times import EPOCH


class PurgeState(Enum):
    """Progress of this hand-over's purge."""

    DUE = "not begun"
    RUNNING = "under way"
    DONE = "done at every server"
    FAILED = "over, and not done at some server"


class StatusOrigin(Enum):
    """Client that wrote a status."""

    OWN = "this leader"
    FORMER = "a former leader, as far as is known"
    FOREIGN = "another client: this leader wrote another one"


@dataclass(frozen=True, slots=True)
class HandoverServer:
    """A server of the StatefulSet that is not being deleted.

    Attributes:
        name: of its pod.
        address: of its pod, "" before it has one.
        ready_since_s: in seconds since 1970, None while it is not ready.
        peers: as its annotation has them, None before there is one.
        confirms: each of its threads has read that.
        unsupported: it answers, and cannot hand over.
        outdated: others may have changed what it has while it was away.
        emptied: this leader has emptied it since it is ready.
    """

    name: str
    ordinal: int
    address: str
    ready_since_s: int | None
    peers: Peers | None = None
    confirms: bool = False
    unsupported: bool = False
    outdated: bool = False
    emptied: bool = False

    @property
    def is_connected(self) -> bool:
        return self.peers is not None and bool(self.peers.addresses)


@dataclass(frozen=True, slots=True)
class Situation:
    """Input of a decision.

    Attributes:
        last: as the status has it.
        size: how many servers are desired.
        listed: ordinals of those that the status lists.
        for_s: how long clients take to follow a list, None where no hand-over is desired.
        now: the time, with its zone.
        unpurged: names of servers that are ready, and were not purged.
        waits_since: the time since which this leader sees that size, with its zone: before that, nobody may have led.
        is_refused: the API server refuses to change pods.
        origin: who wrote the status as it is.
    """

    last: HandoverStatus | None
    size: int
    listed: frozenset[int]
    servers: Sequence[HandoverServer]
    for_s: int | None
    now: datetime
    purge: PurgeState = PurgeState.DUE
    unpurged: frozenset[str] = frozenset()
    waits_since: datetime = EPOCH
    is_refused: bool = False
    origin: StatusOrigin = StatusOrigin.FORMER

    @property
    def is_changing(self) -> bool:
        return self.listed != frozenset(range(self.size))

    @property
    def has_others(self) -> bool:
        """Report whether there is a list before and after, with servers to hand over from and to."""
        return bool(self.listed) and self.size > 0

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of desired servers that are not ready."""
        ready = {each.ordinal for each in self.servers if each.ready_since_s is not None and each.address}
        known = {each.ordinal: each.name for each in self.servers}
        return tuple(known.get(each, f"ordinal {each}") for each in range(self.size) if each not in ready)

    @property
    def ready(self) -> Sequence[HandoverServer]:
        return [each for each in self.servers if each.ready_since_s is not None and each.address]
