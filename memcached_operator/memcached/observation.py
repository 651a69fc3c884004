"""What one look at the caches found, of which a status is made."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from memcached_operator.api.names import Workload
from memcached_operator.memcached.workloads.pods import PodRecord
from memcached_operator.memcached.workloads.records import WorkloadRecord


class Reason(StrEnum):
    """Every reason that a condition of ours can bear."""

    MINIMUM_REPLICAS_AVAILABLE = "MinimumReplicasAvailable"
    MINIMUM_REPLICAS_UNAVAILABLE = "MinimumReplicasUnavailable"
    DEPLOYING = "Deploying"
    SCALING = "Scaling"
    UPDATING = "Updating"
    MIGRATING = "Migrating"
    TERMINATING = "Terminating"
    COMPLETE = "Complete"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    NOT_CONTROLLED = "NotControlled"
    INVALID_SPEC = "InvalidSpec"
    FORBIDDEN = "Forbidden"
    QUOTA_EXCEEDED = "QuotaExceeded"
    TERMINATION_STALLED = "TerminationStalled"
    OTHER_BUDGET = "OtherBudget"
    AS_EXPECTED = "AsExpected"
    ALL_SERVERS_READY = "AllServersReady"
    SERVERS_NOT_READY = "ServersNotReady"
    WAITING = "Waiting"


class Drain(msgspec.Struct, frozen=True):
    """Servers that left the list and run on for a while.

    Attributes:
        workload: the kind that runs them.
        first: the lowest ordinal of those servers; all from it on are meant.
        since: RFC 3339 time at which they left the list.
    """

    workload: str
    first: int
    since: str


class Problem(NamedTuple):
    """What makes a Memcached Degraded.

    Attributes:
        blocking: for its sake its servers are not changed; False when all else goes on.
    """

    reason: Reason
    message: str
    blocking: bool = True


def joined(problems: Sequence[Problem]) -> Problem | None:
    """Several problems as one, what blocks first; None for none."""
    if not problems:
        return None
    ordered = sorted(problems, key=lambda each: not each.blocking)
    message = " ".join(_sentence(each.message) for each in ordered) if len(ordered) > 1 else ordered[0].message
    return Problem(ordered[0].reason, message, ordered[0].blocking)


def _sentence(message: str) -> str:
    """The API server's words end without a full stop."""
    return message if message.endswith(".") else f"{message}."


class Servers(NamedTuple):
    """What is published of the servers.

    Attributes:
        workload: whose servers are listed.
        listed: `host:port` of each, in their order.
        draining: servers that left the list and still run.
    """

    workload: Workload
    listed: tuple[str, ...]
    draining: tuple[Drain, ...] = ()

    @property
    def has_names(self) -> bool:
        """Whether clients know some of the servers by names."""
        return "StatefulSet" in (self.workload, *(each.workload for each in self.draining))


class Observation(NamedTuple):
    """What one look at the caches found.

    Attributes:
        name: of the Memcached.
        generation: of the Memcached.
        size: pods that are wanted; None when the specification cannot be read.
        kind: what is to run them.
        workload: it, None while there is none.
        pods: the active pods, in any order, of both workloads while it moves from one to the other.
        servers: what is to be published of them; None where nothing is known yet.
        service: name of the Service that this Memcached controls, "" without one.
        problem: what keeps the operator from doing its work, None when nothing does.
        waiting: what is being waited for before all is there, "" for nothing.
        terminating: what its deletion waits for, "" while it is not being deleted.
        leaving: the kind of the workload that is there beside, which the servers move from; None for none.
        advice: what a person should know although all is as they asked, "" for nothing.
        followed: something else is made of the list that the status has.
    """

    name: str
    generation: int
    size: int | None
    kind: Workload
    workload: WorkloadRecord | None
    pods: Sequence[PodRecord]
    servers: Servers | None = None
    service: str = ""
    problem: Problem | None = None
    waiting: str = ""
    terminating: str = ""
    leaving: Workload | None = None
    advice: str = ""
    followed: bool = False

    @property
    def target(self) -> Sequence[PodRecord]:
        """The pods of the workload that the specification asks for."""
        return [pod for pod in self.pods if self.leaving is None or pod.workload != self.leaving]

    @property
    def serving(self) -> Sequence[PodRecord]:
        """The pods of the workload whose servers are listed, without those that are on their way out."""
        listed = self.servers.workload if self.servers else None
        wanted = self.size if listed == "StatefulSet" else None
        pods = (pod for pod in self.pods if listed in (None, pod.workload))
        return [pod for pod in pods if wanted is None or pod.ordinal < wanted]
