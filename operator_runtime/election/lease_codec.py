"""The Lease of an election as the API has it: bytes to the record that `lease_decision` decides about, and back."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from operator_runtime.client.resources import LEASES
from operator_runtime.election.lease_state import Lease, WriteLease
from operator_runtime.election.timing import LONGEST_LEASE_S

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


def micro_time(when: datetime) -> str:
    """`metav1.MicroTime`: RFC 3339 in UTC with six digits. The API server refuses any other number of digits."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def lease_body(write: WriteLease, name: str, namespace: str, now: datetime) -> dict[str, object]:
    """Build the body of a write: a whole Lease to create, or a merge patch, which leaves fields of others alone.

    The patch carries the uid and the version of what it replaces, so that it changes exactly that or nothing.
    """
    time = micro_time(now)
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
