"""The values of leader election by a Lease: what a candidate knows, what happens to it, what it does, and the JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from math import inf

import msgspec

from operator_runtime.client.resources import LEASES
from operator_runtime.settings.timing import LONGEST_LEASE_S, Timing


@dataclass(frozen=True, slots=True)
class Candidate:
    """One participant: a name that no other process has or had, and the lengths of the protocol."""

    identity: str
    timing: Timing


@dataclass(frozen=True, slots=True)
class Lease:
    """The record as a candidate saw it. `holder` is "" for a free one; `acquire_time` is handed on unread.

    Namespace and name are for the store of the watch: a candidate knows one Lease.
    """

    uid: str
    resource_version: str
    holder: str
    duration_s: float
    acquire_time: str | None
    transitions: int
    namespace: str = field(default="", compare=False)
    name: str = field(default="", compare=False)


# What happens.


@dataclass(frozen=True, slots=True)
class Seen:
    """Record as the watch shows it now; None: it is gone."""

    lease: Lease | None


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer to `Fetch`; None: there is no such Lease."""

    lease: Lease | None


@dataclass(frozen=True, slots=True)
class Written:
    """The answer to `Write`: taken, and stored like this."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class LeaseConflict:
    """Conflict as the answer to `Write`: another replica was first."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Failure of a request, or one whose result is not known; `why` in words.

    `retry_after_s` is as the API server requests; a candidate waits for as long, a leader has no time to.
    """

    why: str
    retry_after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Tick:
    """End of the wait that `wake_at` named. One that comes early or late does no harm."""


@dataclass(frozen=True, slots=True)
class ReleaseLease:
    """Let go of the Lease, so that another may begin at once: this process will not write again."""


Event = Seen | Fetched | Written | LeaseConflict | Failed | Tick | ReleaseLease


# What is to be done.


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class WriteLease:
    """Write the Lease in place of `over`; create it where that is None. A `holder` of "" releases it.

    Who renews or releases keeps `acquire_time`; None stands for now. `transitions` counts the changes of the holder.
    """

    over: Lease | None
    holder: str
    duration_s: int
    acquire_time: str | None
    transitions: int


@dataclass(frozen=True, slots=True)
class Lead:
    """Begin to work: writes may go out until `State.write_until`."""


@dataclass(frozen=True, slots=True)
class Lost:
    """End this process at once; `why` in words."""

    why: str


Action = Fetch | WriteLease | Lead | Lost


class Phase(StrEnum):
    STANDBY = "standby"
    LEADING = "leading"
    RELEASING = "releasing"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class State:
    """Knowledge of one candidate. All times are on its own clock.

    Invariants:
        `write_until` is in the future only in phase LEADING.
        At most one request is under way, and `request` is it; `sent_at` is the moment before it went out.
        `held_until` is -inf where the record is free, held by this process, or never was there.

    Attributes:
        lease: the record as last seen, None where there was none.
        held_until: until then another replica may be writing.
        write_until: until then this candidate may write, and is to renew, unless `disputed`.
        stale: `lease` is known to be out of date, or nothing was seen yet: fetch it before anything else.
        next_at: no request before that.
        overtaken: the watch has shown a record while a request was under way.
        disputed: while leading: the Lease was seen in other hands or gone, and nothing newer shows it held here.
        in_doubt: a write failed, and may have been taken all the same.
        failure: why the last request failed, "" if it did not.
    """

    phase: Phase = Phase.STANDBY
    lease: Lease | None = None
    held_until: float = -inf
    write_until: float = -inf
    stale: bool = True
    request: Fetch | WriteLease | None = None
    sent_at: float = -inf
    next_at: float = -inf
    overtaken: bool = False
    disputed: bool = False
    in_doubt: bool = False
    failure: str = ""

    def may_write(self, now: float) -> bool:
        return now < self.write_until and not self.disputed


# The API has 32 bits for them. It refuses one more, and no replica would lead until a person corrects the Lease.
_MOST_TRANSITIONS = 2**31 - 1


class _Meta(msgspec.Struct):
    name: str
    uid: str
    resourceVersion: str
    namespace: str = ""


class _Spec(msgspec.Struct):
    holderIdentity: str | None = None
    leaseDurationSeconds: int | None = None
    acquireTime: str | None = None
    leaseTransitions: int | None = None


class _Object(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decode = msgspec.json.Decoder(_Object).decode


def lease_of(raw: msgspec.Raw | bytes, default_duration_s: float) -> Lease:
    """The record for the rules of the election from a Lease's JSON; msgspec.DecodeError where it is none.

    A Lease that was made by hand may lack a duration, or have one that no leader has.
    """
    found = _decode(raw)
    meta, spec = found.metadata, found.spec
    duration_s = default_duration_s if spec.leaseDurationSeconds is None else float(spec.leaseDurationSeconds)
    return Lease(
        uid=meta.uid,
        resource_version=meta.resourceVersion,
        holder=spec.holderIdentity or "",
        duration_s=min(duration_s, LONGEST_LEASE_S),
        acquire_time=spec.acquireTime,
        transitions=spec.leaseTransitions or 0,
        namespace=meta.namespace,
        name=meta.name,
    )


def lease_body(write: WriteLease, name: str, namespace: str, now: datetime) -> dict[str, object]:
    """Build the body of a write: a whole Lease to create, or a merge patch, which leaves fields of others alone.

    The patch carries the uid and the version of what it replaces, so that it changes exactly that or nothing.
    """
    # `metav1.MicroTime`: the API server refuses any other number of digits.
    time = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {
        "holderIdentity": write.holder,
        "leaseDurationSeconds": write.duration_s,
        "acquireTime": write.acquire_time or time,
        "renewTime": time,
        "leaseTransitions": min(write.transitions, _MOST_TRANSITIONS),
    }
    if write.over is not None:
        version = {"uid": write.over.uid, "resourceVersion": write.over.resource_version}
        return {"metadata": version, "spec": spec}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}
