"""Pure: input of a hand-over's next step, and the closed set that it is of.

The input is the lists, the status with its times, the pods, and what servers report. The peers of a server are an
annotation of its pod. The kubelet writes it into a file, which `handover.lua` reads each second. The first line is the
generation, and each further line a peer: host, port, and "joining" for one that is told of writes and not queried. A
line "closed" has the server refuse writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec

from memcached_operator.api.status import HandoverStatus, HandoverStep, Status
from memcached_operator.api.status_times import bounded_time, parsed_time, status_time
from memcached_operator.api.v1alpha1 import HANDOVER_SECONDS, HANDOVER_SECONDS_MAX, HANDOVER_SECONDS_MIN, Spec
from memcached_operator.core.objects.labels import OUTDATED_ITEMS_ANNOTATION, PEERS_ANNOTATION, PEERS_PORT
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.plan.plan import listed_ordinals, listed_size

MARKER_TTL_S: Final = 3
"""Time after which no server has a marker any more; `handover.lua` sets it."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
READY_WITHIN_S: Final = 600
"""As Kubernetes waits by default for the progress of a Deployment."""
CONFIRMED_WITHIN_S: Final = 60
"""A file of a pod's annotations may be late by that: the kubelet syncs each pod once a minute at the latest."""


def status_at(step: HandoverStep, now: datetime, former_list_end: datetime) -> HandoverStatus:
    return HandoverStatus(step, status_time(now), status_time(former_list_end))


def bounded(status: HandoverStatus, for_s: int, now: datetime) -> HandoverStatus:
    """The status with times that can be believed.

    Without those that are yet to come, as of a leader whose clock was ahead: else steps would last for as long as it
    was. Of one that another client removed or made unreadable, the latest counts: clients may have the former list.
    """
    former_list_end = bounded_time(status.formerListEndTime, now + timedelta(seconds=for_s))
    return msgspec.structs.replace(
        status, startTime=bounded_time(status.startTime, now), formerListEndTime=former_list_end
    )


def start_of(status: HandoverStatus) -> datetime:
    """Time at which the step began; long ago where another client wrote what is no time."""
    return parsed_time(status.startTime) or EPOCH


def former_list_end_of(status: HandoverStatus) -> datetime:
    """Time from which on no client has the list before the present one; long ago where there was none."""
    return parsed_time(status.formerListEndTime) or EPOCH


def former_clients_s(status: HandoverStatus, now: datetime) -> float:
    """Seconds for which clients may have the list before the present one; 0 or less where none has."""
    return (former_list_end_of(status) - now).total_seconds()


def published_s(status: HandoverStatus, for_s: int, now: datetime) -> float:
    """Seconds until clients have had their time to follow a list that was published."""
    return (start_of(status) - now).total_seconds() + for_s + MARKER_TTL_S


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


class PurgeState(Enum):
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
        listed: ordinals of those that the status lists.
        for_s: how long clients take to follow a list, None where no hand-over is desired.
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


class DesiredList(NamedTuple):
    """The list of servers that is desired, and the one that is published.

    Attributes:
        size: how many servers are desired.
        listed: ordinals of those that the status lists.
        for_s: how long clients take to follow a list, None where no hand-over is desired.
    """

    size: int
    listed: frozenset[int]
    for_s: int | None


class HandoverInput(NamedTuple):
    """Input of a hand-over.

    Attributes:
        pods, ending: the active ones, and the others.
        next_uid: see `Remembered`.
    """

    memcached: MemcachedRecord
    desired: DesiredList
    last: Status
    pods: Sequence[PodRecord]
    ending: Sequence[PodRecord]
    now: datetime
    spec: Spec | None = None
    next_uid: str | None = ""


def desired_list(spec: Spec, last: Status) -> DesiredList:
    for_s = spec.handover.periodSeconds if spec.handover is not None else None
    return DesiredList(spec.size, frozenset(listed_ordinals(last)), for_s)


def unchanged_list(unreadable: bytes, last: Status) -> DesiredList:
    """The list that there is, while the specification cannot be read: what is under way comes to its end.

    Args:
        unreadable: JSON of the specification; where it has no `handover` that can be read, the defaults are taken.
    """
    size = listed_size(last)
    try:
        for_s = msgspec.json.decode(unreadable, type=_Handover).handover.periodSeconds
    except msgspec.MsgspecError:
        for_s = HANDOVER_SECONDS
    return DesiredList(size, frozenset(range(size)), for_s)


class _ForSeconds(msgspec.Struct):
    periodSeconds: Annotated[int, msgspec.Meta(ge=HANDOVER_SECONDS_MIN, le=HANDOVER_SECONDS_MAX)] = HANDOVER_SECONDS


class _Handover(msgspec.Struct):
    handover: _ForSeconds = msgspec.field(default_factory=_ForSeconds)


class GivenUp(Enum):
    """Reason for which the list changes without a hand-over."""

    UNSUPPORTED = "cannot hand over: they need memcached 1.6.45 or newer, with its proxy, in an image that contains sh"
    NOT_READY = "are not ready"
    NOT_CONFIRMED = "did not confirm their peers"
    NOT_PURGED = "did not delete what former owners have kept"
    REFUSED = "could not be given peers, as the API server refused to change the annotations of their pods"


class Awaited(Enum):
    FORMER_CLIENTS = "clients of the former list"
    SERVERS = "servers to be ready"
    PURGE = "the purge"
    CONFIRMATIONS = "servers to confirm their peers"
    CLIENTS = "clients to follow the list"


@dataclass(frozen=True, slots=True)
class Nothing:
    """Absence of a hand-over: the list follows the plan."""


@dataclass(frozen=True, slots=True)
class HandoverWait:
    """Wait without an action for now."""

    why: Awaited
    requeue_s: float
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PeersChange:
    """Annotations that the pod of a server is to have.

    Attributes:
        outdated: from now on others change what the server has, without its knowledge.
    """

    server: HandoverServer
    peers: Peers
    outdated: bool = False


@dataclass(frozen=True, slots=True)
class SetPeers:
    """Change of the annotations of servers' pods."""

    changes: tuple[PeersChange, ...]


@dataclass(frozen=True, slots=True)
class EmptyServers:
    """Deletion of all items of these servers.

    Attributes:
        is_last: what they get from now on is not outdated, so that their marks go.
    """

    servers: tuple[HandoverServer, ...]
    is_last: bool = True


@dataclass(frozen=True, slots=True)
class Purge:
    """Deletion, at these servers, of what nobody used since the former list had its last client."""

    servers: tuple[HandoverServer, ...]
    unused_since_s: float


@dataclass(frozen=True, slots=True)
class Advance:
    """Advance to the next step, which is written; None: there is no hand-over.

    Attributes:
        publishes: the list changes with it.
    """

    to: HandoverStatus | None
    publishes: bool = False


@dataclass(frozen=True, slots=True)
class Resume:
    """Return to the step that servers are at, as another client changed the status."""

    to: HandoverStatus


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Change of the list without a hand-over."""

    to: HandoverStatus
    why: GivenUp
    names: tuple[str, ...]


Action: TypeAlias = Nothing | HandoverWait | SetPeers | EmptyServers | Purge | Advance | Resume | GiveUp
