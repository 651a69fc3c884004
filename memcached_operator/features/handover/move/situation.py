"""Pure: input of a move's next step, and the closed set that it is of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from memcached_operator.api.status import MoveStep
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.features.handover.situation import Peers

HOT_S: Final = 120.0
"""What was used within so many seconds moves first where the server's pod is about to end. memcached records a use once
a minute."""
FEW: Final = 200
"""So many items that lack are copied while the server refuses writes, which takes less than the pause before."""


class NotMoved(Enum):
    """Reason for which a server is replaced without its items."""

    HOLDER_NOT_READY = "its holder did not get ready in time"
    HOLDER_STAYS = "the holder of another server does not end"
    HOLDER_FAILED = "its holder failed"
    NOT_CONFIRMED = "it did not confirm its peers in time"
    UNSUPPORTED = "it runs without memcached's proxy"
    NOT_PURGED = "it did not delete what former owners have kept"
    NOT_COPIED = "its items could not be copied"
    NOT_REPLACED = "it could not be replaced in time"
    NOT_WRITTEN = "its workload could not be changed in time"
    UNNEEDED = "it is not to be replaced for now"
    NAME_TOO_LONG = "the name of its holder would be too long"
    UNANSWERED = "it does not answer"
    HANDOVER = "the list of servers changes, or clients may have the former one"
    NOT_READY = "it was not ready when its pod was to end"
    NO_TIME = "its pod had too little time left to end"
    ENDED = "it ended before its items were copied"
    NO_SUCCESSOR = "the new server did not start beside its holder"


class MoveAwaited(Enum):
    FORMER_CLIENTS = "clients of the former list"
    HOLDER = "the holder to be ready"
    CONFIRMATION = "a server to confirm its peers"
    BEGUN = "what began before"
    TEMPLATE = "the template of new servers"
    COPY = "the copy"
    TURN = "the server's turn to be replaced"
    SUCCESSOR = "the new server to be ready"
    HOLDER_GONE = "the holder to be gone"


class Ending(NamedTuple):
    """End of a server's pod, that another client requested, or the operator, and that the pod's hook delays.

    Attributes:
        left_s: seconds until the node ends it in any case.
        grace_s: how many there were.
    """

    left_s: float
    grace_s: float


@dataclass(frozen=True, slots=True)
class MovingServer:
    """A server, or a holder.

    Attributes:
        peers: as its annotation has them, None before there is one.
        confirmed_s: for so many seconds each of its threads is known to have read that, None where one has not.
        silent_s: for so many seconds it has answered no query; 0.0 for the first that it does not answer.
        unsupported: it answers, and has no peers.
        ending: of its pod, None where that is to stay.
        items: that it has, as far as it said so.
    """

    pod: PodRecord
    peers: Peers | None = None
    confirmed_s: float | None = None
    silent_s: float = 0.0
    unsupported: bool = False
    ending: Ending | None = None
    items: int = 0

    @property
    def is_connected(self) -> bool:
        return self.peers is not None and bool(self.peers.addresses)

    @property
    def is_ready(self) -> bool:
        return self.pod.ready and bool(self.pod.address)


@dataclass(frozen=True, slots=True)
class Holder:
    """The StatefulSet of a holder.

    Attributes:
        name, uid: of the pod whose items it holds.
        server: its own pod, None where there is none that was made for that one.
    """

    name: str
    uid: str
    is_deleting: bool = False
    server: MovingServer | None = None


@dataclass(frozen=True, slots=True)
class Copied:
    """Passes over the items of one server.

    Attributes:
        lacking: how many each pass found that the other server did not have, the last one last.
        failures: passes that failed since one did not.
        has_hot: what was used lately was copied first.
        target: uid of the pod of the other server.
    """

    lacking: tuple[int, ...] = ()
    items: int = 0
    failures: int = 0
    is_running: bool = False
    has_hot: bool = False
    target: str = ""

    @property
    def is_whole(self) -> bool:
        """Report whether the last pass found nothing that lacks."""
        return bool(self.lacking) and not self.lacking[-1]

    @property
    def is_near(self) -> bool:
        """Report whether few lack, or as many as are written meanwhile: no further pass makes them less."""
        few = bool(self.lacking) and self.lacking[-1] < FEW
        return few or (len(self.lacking) > 2 and self.lacking[-1] * 2 > self.lacking[-2])


@dataclass(frozen=True, slots=True)
class MoveSituation:
    """Input of a decision.

    Attributes:
        wanted: items are to move; None while the specification cannot be read.
        begins_in_s: seconds until a move may begin, None while a hand-over is under way.
        next_uid: see `Remembered`.
        servers: of the StatefulSet, which are not ending, or whose pods may wait until their items have moved.
        stale: uids of those that are to be replaced.
        made_with: uid of the holder that new servers are made with, "" for none.
        is_observed: the StatefulSet's controller has read that; before, it may make one with the former.
        purged: uids of servers that have deleted what former owners have kept.
        given_up: uids of servers whose items do not move.
        unconfirmed: uids of servers that have not confirmed in their time that they have no peers.
    """

    wanted: bool | None
    begins_in_s: float | None = 0.0
    next_uid: str | None = None
    servers: Sequence[MovingServer] = ()
    stale: frozenset[str] = frozenset()
    holder: Holder | None = None
    made_with: str = ""
    is_observed: bool = True
    purged: frozenset[str] = frozenset()
    given_up: frozenset[str] = frozenset()
    unconfirmed: frozenset[str] = frozenset()
    copied: Mapping[MoveStep, Copied] = field(default_factory=dict)

    @property
    def connected(self) -> Sequence[MovingServer]:
        return [each for each in self.servers if each.is_connected]


@dataclass(frozen=True, slots=True)
class NoMove:
    """Absence of a move."""


@dataclass(frozen=True, slots=True)
class Await:
    """Wait without an action for now, for so many seconds, None where nobody knows."""

    why: MoveAwaited
    for_s: float | None = None


@dataclass(frozen=True, slots=True)
class PurgeServer:
    """Deletion of what a server has kept of former lists: a copy would make it young."""

    server: MovingServer


@dataclass(frozen=True, slots=True)
class Tell:
    """Change of the peers of a server."""

    server: MovingServer
    peers: Peers


@dataclass(frozen=True, slots=True)
class Copy:
    """Pass over a server's items, or the hot ones: see `HOT_S`. Another server copies what it lacks of them."""

    source: MovingServer
    target: MovingServer
    is_hot: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """Replacement of the server, whose holder has its items, or as many as there was time for."""


@dataclass(frozen=True, slots=True)
class AbandonMove:
    """Replacement of a server without its items.

    Attributes:
        name: of the server, "" for the one of the decision.
    """

    why: NotMoved
    name: str = ""


@dataclass(frozen=True, slots=True)
class End:
    """End of a move: the holder goes.

    Attributes:
        not_moved: why the items did not move, None where they have, or where that was told.
    """

    has_moved: bool = False
    not_moved: NotMoved | None = None


MoveAction: TypeAlias = NoMove | Await | PurgeServer | Tell | Copy | Release | AbandonMove | End


@dataclass(frozen=True, slots=True)
class MoveDecision:
    """Next step of a move.

    Attributes:
        step: as the status has it, None where no move is under way.
        name, uid: of the server that moves, and of the pod that is given up where it takes too long.
        holds: the server for which a holder is to be made.
        made_with: the holder that new servers are to be made with.
        limit_s: seconds for it, after which the items do not move, as `late` says, or it is left out; None for no
            limit.
    """

    action: MoveAction
    step: MoveStep | None = None
    name: str = ""
    uid: str = ""
    holds: MovingServer | None = None
    made_with: MovingServer | None = None
    limit_s: float | None = None
    late: NotMoved | None = None
