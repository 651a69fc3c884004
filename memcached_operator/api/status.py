"""Status of a Memcached, the reasons of its conditions, and their parts."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from memcached_operator.api import names
from operator_runtime import UNDECODABLE, Condition, condition_of, decode_nested

_NAMED: Final = 3


class Reason(StrEnum):
    """Reasons that an owned condition can bear."""

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
    MEMORY_LIMITED = "MemoryLimited"
    SECRET_NOT_FOUND = "SecretNotFound"
    CERTIFICATE_INVALID = "CertificateInvalid"
    PASSWORDS_INVALID = "PasswordsInvalid"
    RELOAD_UNSUPPORTED = "ReloadUnsupported"
    RELOAD_FAILED = "ReloadFailed"
    ANSWERING = "Answering"
    NOT_ANSWERING = "NotAnswering"
    CONNECTIONS_EXHAUSTED = "ConnectionsExhausted"
    DISK_IMPAIRED = "DiskImpaired"
    CERTIFICATE_EXPIRED = "CertificateExpired"
    CERTIFICATE_STALE = "CertificateStale"
    NOT_QUERIED = "NotQueried"
    UNREACHABLE = "Unreachable"
    CREDENTIALS_MISSING = "CredentialsMissing"
    LOAD_BALANCED_SERVERS = "LoadBalancedServers"
    RETENTION_KEPT = "RetentionKept"
    MEMORY_UNUSED = "MemoryUnused"
    OBSERVING = "Observing"
    GROWING = "Growing"
    MAXIMUM_REACHED = "MaximumReached"
    RESIZE_IMPOSSIBLE = "ResizeImpossible"
    PASSWORDS_IN_THE_CLEAR = "PasswordsInTheClear"
    HANDOVER_UNAVAILABLE = "HandoverUnavailable"


class Drain(msgspec.Struct, frozen=True):
    """Servers that left the list and run on for a while.

    Attributes:
        firstOrdinal: the lowest ordinal of those servers; all from it on are meant.
        startTime: RFC 3339 time at which they left the list.
    """

    workload: str
    firstOrdinal: int
    startTime: str


class HandoverStep(StrEnum):
    """Step of the last change of the list with a hand-over."""

    PREPARING = "Preparing"
    CONNECTING = "Connecting"
    PUBLISHED = "Published"
    DISCONNECTING = "Disconnecting"
    COMPLETE = "Complete"


class Handover(msgspec.Struct, frozen=True, omit_defaults=True):
    """The hand-over of a Memcached, for a new leader to go on with.

    Attributes:
        startTime: RFC 3339 time since which it is at this step.
        formerListEndTime: RFC 3339 time from which on no client has the list before the present one; None where there
            was none.
    """

    step: HandoverStep
    startTime: str
    formerListEndTime: str | None = None


class Problem(NamedTuple):
    """Problem that makes a Memcached Degraded, or that its user should know although all is as specified.

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
    message = " ".join(sentence(each.message) for each in ordered) if len(ordered) > 1 else ordered[0].message
    return Problem(ordered[0].reason, message, ordered[0].blocking)


def sentence(message: str) -> str:
    """A message with a full stop: the API server's words have none."""
    return message if message.endswith(".") else f"{message}."


def first_of(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"


class Status(msgspec.Struct, frozen=True, omit_defaults=True):
    """`status` of a Memcached.

    Attributes:
        memory: in force, as a quantity; see `memcached.memory_scaling`.
        recommendedMemory: with which the retention would be kept, None where that is no less.
    """

    workload: str | None = None
    service: str | None = None
    serverList: tuple[str, ...] | None = None
    draining: tuple[Drain, ...] | None = None
    handover: Handover | None = None
    nodes: tuple[str, ...] | None = None
    replicas: int | None = None
    readyReplicas: int | None = None
    selector: str | None = None
    image: str | None = None
    version: str | None = None
    pendingWrites: tuple[str, ...] | None = None
    memory: str | None = None
    recommendedMemory: str | None = None
    observedGeneration: int | None = None
    conditions: tuple[Condition, ...] | None = None

    def condition(self, type_: str) -> Condition | None:
        """The condition of that type, if there is one."""
        return condition_of(self.conditions, type_)


SERVING = "Serving"
DISCOURAGED = "Discouraged"
"""A condition of the operator's that is there only while it is True."""
RETAINING = "Retaining"
"""A condition of the operator's that is there only with `spec.memoryScaling`."""
OWNED_CONDITIONS = ("Ready", "Available", "Progressing", "Degraded", SERVING)
"""The operator's conditions that are always there."""
OCCASIONAL_CONDITIONS = (RETAINING, DISCOURAGED)
"""The others."""
_decode = msgspec.json.Decoder(Status).decode
NO_STATUS: Final = Status()
"""The status of a Memcached that has none."""
UNREADABLE: Final = Status()
"""The status of a Memcached that has one stored under another schema: this one object, which equals `NO_STATUS`."""


def decode_status(body: bytes) -> Status:
    """The live status, `UNREADABLE` for one that is to be written anew.

    The condition that the API server fills in before the first write counts as none.
    """
    try:
        status = decode_nested(_decode, body) if body else NO_STATUS
    except UNDECODABLE:
        return UNREADABLE
    ready = status.condition("Ready")
    if ready is None or ready.reason != Reason.PENDING:
        return status
    written = tuple(each for each in status.conditions or () if each is not ready)
    return msgspec.structs.replace(status, conditions=written or None)


def status_patch(desired: Status, last: Status) -> dict[str, object]:
    """The fields of `desired` that differ from `last`, for a merge patch; empty when there is nothing to write.

    Args:
        last: the live status; where it is `UNREADABLE`, what is not desired of it is taken away.
    """
    if desired == last:
        return {}
    changed = {
        field: msgspec.to_builtins(getattr(desired, field))
        for field in Status.__struct_fields__
        if last is UNREADABLE or getattr(desired, field) != getattr(last, field)
    }
    # A status from before there was the image goes with the next write: an upgrade writes nothing.
    return {} if changed.keys() == {"image"} and last.image is None else changed


def owned_part(status: Status) -> dict[str, object]:
    """Return the owned part of a status, by field: no times of conditions, and no other client's conditions."""
    owned = (each for each in status.conditions or () if each.type in (*OWNED_CONDITIONS, *OCCASIONAL_CONDITIONS))
    conditions = tuple((each.type, each.status, each.reason, each.message) for each in owned)
    return {field: getattr(status, field) for field in Status.__struct_fields__} | {"conditions": conditions}
