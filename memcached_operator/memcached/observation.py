"""What one look at the caches found, of which a status is made."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from memcached_operator.api import names
from memcached_operator.api.names import Workload
from memcached_operator.memcached.asking.answers import Heard
from memcached_operator.memcached.changing.rollout import DONE, Rollout
from memcached_operator.memcached.workloads.pods import PodRecord
from memcached_operator.memcached.workloads.records import WorkloadRecord


class Reason(StrEnum):
    """Every reason that a condition of ours can bear."""

    PENDING = names.PENDING
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
    DENIED_BY_POLICY = "DeniedByPolicy"
    REVERTED = "Reverted"
    IMMUTABLE = "Immutable"
    QUOTA_EXCEEDED = "QuotaExceeded"
    TERMINATION_STALLED = "TerminationStalled"
    CONFLICTING_DISRUPTION_BUDGET = "ConflictingDisruptionBudget"
    AS_EXPECTED = "AsExpected"
    ALL_SERVERS_READY = "AllServersReady"
    SERVERS_NOT_READY = "ServersNotReady"
    WAITING = "Waiting"
    ROLLOUT_STUCK = "RolloutStuck"
    ROLLOUT_PAUSED = "RolloutPaused"
    SECRET_NOT_FOUND = "SecretNotFound"
    CERTIFICATE_INVALID = "CertificateInvalid"
    PASSWORDS_INVALID = "PasswordsInvalid"
    RELOAD_UNSUPPORTED = "ReloadUnsupported"
    ANSWERING = "Answering"
    NOT_ANSWERING = "NotAnswering"
    CONNECTIONS_EXHAUSTED = "ConnectionsExhausted"
    CERTIFICATE_EXPIRED = "CertificateExpired"
    CERTIFICATE_STALE = "CertificateStale"
    NOT_ASKED = "NotAsked"
    LOAD_BALANCED_SERVERS = "LoadBalancedServers"
    PASSWORDS_IN_THE_CLEAR = "PasswordsInTheClear"


class Drain(msgspec.Struct, frozen=True):
    """Servers that left the list and run on for a while.

    Attributes:
        workload: the kind that runs them.
        firstOrdinal: the lowest ordinal of those servers; all from it on are meant.
        startTime: RFC 3339 time at which they left the list.
    """

    workload: str
    firstOrdinal: int
    startTime: str


class Problem(NamedTuple):
    """What makes a Memcached Degraded.

    Attributes:
        blocking: for its sake its servers are not changed; False when all else goes on.
    """

    reason: Reason
    message: str
    blocking: bool = True


class Advice(NamedTuple):
    """What a person should know although all is as they asked.

    Attributes:
        reason: of the condition Discouraged, which stands as long as it is so, and of the event that says it once.
        message: of both.
    """

    reason: Reason
    message: str


def joined(problems: Sequence[Problem]) -> Problem | None:
    """Several problems as one, what blocks first; None for none."""
    if not problems:
        return None
    ordered = sorted(problems, key=lambda each: not each.blocking)
    message = " ".join(sentence(each.message) for each in ordered) if len(ordered) > 1 else ordered[0].message
    return Problem(ordered[0].reason, message, ordered[0].blocking)


def sentence(message: str) -> str:
    """A message with a full stop: the API server's words have none."""
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


class Observation(msgspec.Struct, frozen=True):
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
        unwritten: the workload is not as the specification asks, as the API server failed to write it.
        terminating: what its deletion waits for, "" while it is not being deleted.
        leaving: the kind of the workload that is there beside, which the servers move from; None for none.
        advice: what a person should know although all is as they asked.
        rollout: how far the servers have come to the present template.
        absent: why servers of a StatefulSet are missing, "" where nobody knows, or none is.
        paused: the user holds the rollout.
        pause_s: seconds between one server that is replaced and the next.
        queued: the servers are yet to come to the operator's own defaults.
        heard: what its ready servers said when they were asked, in the order of their names; None where none is asked.
        names: DNS names by which clients know the servers, for what their certificates are to be for.
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
    unwritten: bool = False
    terminating: str = ""
    leaving: Workload | None = None
    advice: Sequence[Advice] = ()
    rollout: Rollout = DONE
    absent: str = ""
    paused: bool = False
    pause_s: int = 0
    queued: bool = False
    heard: Sequence[Heard] | None = None
    names: Sequence[str] = ()

    @property
    def target(self) -> Sequence[PodRecord]:
        """The pods of the workload that the specification asks for."""
        return [pod for pod in self.pods if self.leaving is None or pod.workload != self.leaving]

    @property
    def awaited(self) -> int | None:
        """How many pods there are to be, where servers on their way are all that is waited for; else None."""
        more = self.problem or self.waiting or self.terminating or self.leaving or self.paused or self.queued
        drains = self.servers is None or self.servers.draining
        return None if more or drains or self.workload is None or self.rollout != DONE else self.size

    @property
    def serving(self) -> Sequence[PodRecord]:
        """The pods of the workload whose servers are listed, without those that are on their way out."""
        listed = self.servers.workload if self.servers else None
        wanted = self.size if listed == "StatefulSet" else None
        pods = (pod for pod in self.pods if listed in (None, pod.workload))
        return [pod for pod in pods if wanted is None or pod.ordinal < wanted]


def client_names(observed: Observation, namespace: str) -> list[str]:
    """The DNS names by which clients know the servers: that of the Service, and those that servers keep."""
    service = [f"{observed.service}.{namespace}.svc"] if observed.service else []
    servers = observed.servers
    listed = servers.listed if servers is not None and servers.workload == "StatefulSet" else ()
    return [*service, *(each.rpartition(":")[0] for each in listed)]
