"""Status of a Memcached, the reasons of its conditions, and their parts."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from memcached_operator.api.v1alpha1 import SERVERS_MAX, SIZE_MAX, Spec
from operator_runtime import UNDECODABLE, Condition, Conditions, condition_of, decode_nested

_NAMED: Final = 3


class Reason(StrEnum):
    """Reasons that an owned condition can bear."""

    PENDING = "Pending"
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
    OPERATOR_IMAGE_UNKNOWN = "OperatorImageUnknown"
    ENDPOINT_NOT_READY = "EndpointNotReady"
    DRAIN_TOO_SHORT = "DrainTooShort"
    HANDOVER_UNAVAILABLE = "HandoverUnavailable"
    PREPARING = "Preparing"
    CONNECTING = "Connecting"
    PUBLISHED = "Published"
    DISCONNECTING = "Disconnecting"
    MOVING = "Moving"


_Name = Annotated[str, Meta(extra_json_schema={"maxLength": 260})]  # a DNS name and a port
_LIST: Final = {"x-kubernetes-list-type": "atomic", "maxItems": SERVERS_MAX}
_Names = Annotated[tuple[_Name, ...], Meta(extra_json_schema=_LIST)]
_Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]  # RFC 3339
_Count = Annotated[int, Meta(extra_json_schema={"format": "int32", "minimum": 0, "maximum": SIZE_MAX})]
_Generation = Annotated[int, Meta(extra_json_schema={"format": "int64", "minimum": 0})]
_Workload = Annotated[str, Meta(extra_json_schema={"enum": ["Deployment", "StatefulSet"]})]
_Bytes = Annotated[str, Meta(extra_json_schema={"pattern": "^[1-9][0-9]*[KMGT]i$", "maxLength": 16})]


class Drain(msgspec.Struct, frozen=True):
    """Servers that left the list and still run."""

    workload: Annotated[
        _Workload, Meta(description="Kind of the workload that runs these servers: Deployment or StatefulSet.")
    ]
    firstOrdinal: Annotated[
        _Count, Meta(description="Lowest ordinal of these servers. All higher ordinals drain as well.")
    ]
    startTime: Annotated[_Time, Meta(description="When these servers left the list.")]


class HandoverStep(StrEnum):
    """Step of the last change of the list with a hand-over."""

    PREPARING = "Preparing"
    CONNECTING = "Connecting"
    PUBLISHED = "Published"
    DISCONNECTING = "Disconnecting"
    COMPLETE = "Complete"


class MoveStep(StrEnum):
    """Step of the move of a server's items."""

    PREPARING = "Preparing"
    CONNECTING = "Connecting"
    COPYING = "Copying"
    CLOSING = "Closing"
    REPLACING = "Replacing"
    RESTORING = "Restoring"
    DISCONNECTING = "Disconnecting"


class HandoverMove(msgspec.Struct, frozen=True):
    """Move of a server's items while the server is replaced."""

    server: Annotated[_Name, Meta(description="Name of the server that is replaced.")]
    holder: Annotated[_Name, Meta(description="Name of the pod that holds its items meanwhile.")]
    step: Annotated[
        MoveStep,
        Meta(
            description="Preparing: the holder gets ready. Connecting: it is told of the server's writes. Copying: it "
            "copies the server's items. Closing: the server refuses writes while the last items are copied. Replacing: "
            "the server is replaced. Restoring: the new server copies the items. Disconnecting: the holder goes.",
            extra_json_schema={"type": "string", "enum": [*MoveStep]},
        ),
    ]
    startTime: Annotated[_Time, Meta(description="Since when the server moves.")]


class HandoverStatus(msgspec.Struct, frozen=True):  # null in a merge patch takes a field away
    """Progress of the last change of the list with a hand-over."""

    step: Annotated[
        HandoverStep,
        Meta(
            description="Preparing: all servers get ready, and items of former owners are deleted. Connecting: all "
            "servers get all others as peers. Published: clients follow the list. Disconnecting: servers have no peers "
            "any more. Complete: nothing is under way.",
            extra_json_schema={"type": "string", "enum": [*HandoverStep]},
        ),
    ]
    startTime: Annotated[_Time, Meta(description="Since when it is at this step.")]
    formerListEndTime: Annotated[
        _Time | None, Meta(description="From when on no client has the list before the present one.")
    ] = None
    move: Annotated[
        HandoverMove | None,
        Meta(description="The server that is being replaced with its items, if spec.handover.moves is set."),
    ] = None


class Sizes(msgspec.Struct, frozen=True):  # null in a merge patch takes a size away
    """Sizes of a server that are in force."""

    maxItemSize: Annotated[_Bytes, Meta(description="Of spec.maxItemSize.")]
    extstoreSize: Annotated[_Bytes | None, Meta(description="Of spec.extstore.size. Absent without a disk.")] = None


def sizes_of(spec: Spec) -> Sizes:
    """The sizes that are in force by a specification that was read."""
    return Sizes(spec.maxItemSize, spec.extstore.size if spec.extstore is not None else None)


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


def first_names(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"


class Status(msgspec.Struct, frozen=True, omit_defaults=True):
    """Most recently observed state of the Memcached. Written by the operator."""

    nodes: Annotated[
        _Names | None,
        Meta(description="Names of the memcached pods that are neither terminating nor finished, sorted."),
    ] = None
    replicas: Annotated[_Count | None, Meta(description="Number of memcached pods.")] = None
    readyReplicas: Annotated[_Count | None, Meta(description="Number of memcached pods that are ready.")] = None
    selector: Annotated[
        str | None,
        Meta(
            description="Label selector of the memcached pods, in the format of kubectl get pods --selector. Used by "
            "the scale subresource.",
            extra_json_schema={"maxLength": 1024},
        ),
    ] = None
    image: Annotated[
        str | None,
        Meta(
            description="Container image that the servers run. During a rollout of another image, the previous one.",
            # Not the specification's bound: another client can have given the workload one that is longer.
            extra_json_schema={"maxLength": 4096},
        ),
    ] = None
    version: Annotated[
        str | None,
        Meta(
            description="Version of memcached that the servers report. Absent if no server was queried.",
            extra_json_schema={"maxLength": 64},
        ),
    ] = None
    workload: Annotated[
        _Workload | None,
        Meta(
            description="Kind of the workload that runs the servers of the list: Deployment or StatefulSet. During a "
            "move from one to the other, the previous one."
        ),
    ] = None
    service: Annotated[
        _Name | None, Meta(description="Name of the Service that the operator created. Absent if there is none.")
    ] = None
    serverList: Annotated[
        _Names | None,
        Meta(
            description="Servers for clients to use, each as host:port. For a StatefulSet, the stable DNS names of the "
            "servers, ordered by ordinal. For a Deployment, the addresses of its ready pods, sorted."
        ),
    ] = None
    memory: Annotated[
        _Bytes | None,
        Meta(
            description="Memory of each server for items that is in force: spec.memory in whole Mi, or what it has "
            "grown to by spec.memoryScaling."
        ),
    ] = None
    recommendedMemory: Annotated[
        _Bytes | None,
        Meta(
            description="Smallest memory of each server, by an estimate, with which "
            "spec.memoryScaling.retentionSeconds would be kept. Absent while it is not known, or not less than the "
            "memory in force."
        ),
    ] = None
    effectiveSizes: Annotated[
        Sizes | None, Meta(description="Sizes that are in force: those of spec, rounded down to what memcached takes.")
    ] = None
    draining: Annotated[
        tuple[Drain, ...] | None,
        Meta(
            description="Servers that left the list and still run, until spec.drainPeriodSeconds have passed.",
            extra_json_schema=_LIST,
        ),
    ] = None
    handover: Annotated[
        HandoverStatus | None,
        Meta(description="The hand-over between servers, if spec.handover is set and the list is complete."),
    ] = None
    pendingWrites: Annotated[
        _Names | None,
        Meta(
            description="Kinds of objects that the operator has yet to write for this generation, because the API "
            "server failed or refused. Absent if there are none."
        ),
    ] = None
    observedGeneration: Annotated[
        _Generation | None, Meta(description="The metadata.generation that the operator observed last.")
    ] = None
    conditions: Annotated[
        Conditions | None,
        Meta(
            description="Latest observations of the state. Ready: everything specified exists and is ready. Available: "
            "enough servers are ready. Progressing: a change is being rolled out. Degraded: something requires manual "
            "intervention. Serving: the servers answer requests. Discouraged: something is specified that is not "
            "recommended. Retaining: items stay for spec.memoryScaling.retentionSeconds; present only with that "
            "field. HandingOver: a hand-over between servers is under way; present only with spec.handover or while "
            "it is True."
        ),
    ] = None

    def condition(self, type_: str) -> Condition | None:
        """The condition of that type, if there is one."""
        return condition_of(self.conditions, type_)

    def pending_writes_for(self, generation: int | None) -> tuple[str, ...]:
        """Kinds that are yet to be written for this generation, as that failed or was refused before.

        The status has them, as it is of this generation from then on: what is yet to be done for it is no other
        client's change.
        """
        return (self.pendingWrites or ()) if self.observedGeneration == generation else ()


SERVING = "Serving"
DISCOURAGED = "Discouraged"
RETAINING = "Retaining"
"""A condition of the operator's that is there only with `spec.memoryScaling`."""
HANDING_OVER = "HandingOver"
"""A condition of the operator's that is there only with `spec.handover`, or while a hand-over is under way."""
OWNED_CONDITIONS = ("Ready", "Available", "Progressing", "Degraded", SERVING, DISCOURAGED)
"""The operator's conditions that are always there."""
OCCASIONAL_CONDITIONS = (RETAINING, HANDING_OVER)
"""The others."""
# Without a condition, tools that judge an object by its status would take a new one for ready.
UNWRITTEN: Final = {
    "conditions": [
        {
            "type": type_,
            "status": "Unknown",
            "reason": Reason.PENDING.value,
            "message": "Waiting for the operator.",
            "lastTransitionTime": "1970-01-01T00:00:00Z",
        }
        for type_ in OWNED_CONDITIONS
    ]
}
"""The status that the API server gives a Memcached until the operator has written one."""
_decode = msgspec.json.Decoder(Status).decode
NO_STATUS: Final = Status()
"""The status of a Memcached that has none."""
UNREADABLE: Final = Status()
"""The status of a Memcached that has one stored under another schema: this one object, which equals `NO_STATUS`."""


def stored_status(body: bytes) -> Status:
    """The live status, `UNREADABLE` for one that is to be written anew."""
    try:
        return decode_nested(_decode, body) if body else NO_STATUS
    except UNDECODABLE:
        return UNREADABLE


def decode_status(body: bytes) -> Status:
    """`stored_status`, in which the conditions that the API server fills in before the first write count as none."""
    status = stored_status(body)
    conditions = status.conditions or ()
    written = tuple(each for each in conditions if each.reason != Reason.PENDING or each.type not in OWNED_CONDITIONS)
    return status if len(written) == len(conditions) else msgspec.structs.replace(status, conditions=written or None)


def status_patch(desired: Status, last: Status) -> dict[str, object]:
    """The fields of `desired` that differ from `last`, for a merge patch; empty when there is nothing to write.

    Args:
        last: the live status; where it is `UNREADABLE`, what is not desired of it is taken away.
    """
    if desired == last:
        return {}
    return {
        field: msgspec.to_builtins(getattr(desired, field))
        for field in Status.__struct_fields__
        if last is UNREADABLE or getattr(desired, field) != getattr(last, field)
    }


def owned_part(status: Status) -> dict[str, object]:
    """Return the owned part of a status, by field: no times of conditions, and no other client's conditions."""
    owned = (each for each in status.conditions or () if each.type in (*OWNED_CONDITIONS, *OCCASIONAL_CONDITIONS))
    conditions = tuple((each.type, each.status, each.reason, each.message) for each in owned)
    return {field: getattr(status, field) for field in Status.__struct_fields__} | {"conditions": conditions}
