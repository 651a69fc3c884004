"""Leases, which leader election lives on."""

from __future__ import annotations

from kube_simulator.errors import Cause
from kube_simulator.kinds.compaction import COORDINATION_V1, compact
from kube_simulator.kinds.kind_strategy import Strategy, plain
from kube_simulator.kinds.times import micro_time
from kube_simulator.schema.causes import at_least_zero, invalid
from kube_simulator.values import Json

# Of coordinated leader election, which is switched off unless an API server is told otherwise.
_SWITCHED_OFF = ("strategy", "preferredHolder")


def _default(new: Json) -> Json:
    spec = {
        key: value
        for key, value in compact(new.get("spec") or {}, f"{COORDINATION_V1}LeaseSpec").items()
        if key not in _SWITCHED_OFF
    }
    times = {key: micro_time(spec[key]) for key in ("acquireTime", "renewTime") if key in spec}
    return {**new, "spec": {**spec, **times}}


def _validate(new: Json, _old: Json | None) -> list[Cause]:
    spec = new["spec"]
    duration_s = spec.get("leaseDurationSeconds")
    found = []
    if duration_s is not None and duration_s <= 0:
        found.append(invalid("spec.leaseDurationSeconds", duration_s, "must be greater than 0"))
    return found + at_least_zero("spec.leaseTransitions", spec.get("leaseTransitions"))


STRATEGY: Strategy = plain(_default, _validate)
