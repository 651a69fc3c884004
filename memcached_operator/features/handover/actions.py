"""The closed set of what a hand-over may do next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from memcached_operator.api.status import HandoverStatus
from memcached_operator.features.handover.situation import HandoverServer, Peers


class GivenUp(Enum):
    """Reason for which the list changes without a hand-over."""

    UNSUPPORTED = "cannot hand over: they need memcached 1.6.45 or newer, with its proxy, in an image that contains sh"
    NOT_READY = "are not ready"
    NOT_CONFIRMED = "did not confirm their peers"
    NOT_PURGED = "did not delete what former owners have kept"
    REFUSED = "could not be given peers, as the API server refused to change the annotations of their pods"


class Awaited(Enum):
    """Cause of a wait."""

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
