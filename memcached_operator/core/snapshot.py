"""Snapshot that a reconcile acts on: one Memcached as it was found and planned, and what is remembered of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from memcached_operator.api.status import Status
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.holder import Moving
from memcached_operator.core.objects.pod_template import Fingerprint
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.plan.plan import Plan
from memcached_operator.core.rollout.container_restarts import Restarts
from memcached_operator.core.rollout.diagnosis.ended_pods import NO_FAILURE, PodFailure
from memcached_operator.core.rollout.live.live_memory import Resizes
from memcached_operator.core.rollout.server_states import UNSEEN, Seen


class Snapshot(msgspec.Struct, frozen=True):
    """One Memcached at the moment of a reconcile.

    Attributes:
        pods: the active ones of its workloads.
        inactive: those that are ending, or have ended.
        handing_over: no server is replaced that has keys; see `handover.steps`.
        moving: what moves require, None where servers are replaced without their items.
    """

    memcached: MemcachedRecord
    spec: Spec
    plan: Plan
    last: Status
    pods: Sequence[PodRecord]
    inactive: Sequence[PodRecord]
    now: datetime
    remembered: Remembered
    handing_over: bool = False
    moving: Moving | None = None


@dataclass(slots=True)
class Remembered:
    """Memory of a Memcached from one reconcile to the next.

    Nothing in it is needed to do right: a successor that knows none of it comes to the same, by a request, an event or
    a wait more. Where there is nothing to do and nothing is remembered, a step of a reconcile is left out.

    Attributes:
        times: of pods, that were yet to come when they were seen first.
        failure: of a pod, that nothing has made good.
        restarts: of each server by its pod's uid, as far as they were reported; None before the first reconcile.
        awaits_mounts: events are read for a server whose volumes are not mounted.
        announced: the template whose costs were announced, None where no change is under way.
        missing_since_s: when each server was first seen without a pod, by its ordinal and a monotonic clock; None
            where none is missing.
        in_place: servers that are restarted in their pods; None where none is.
        in_lock: its rollout may hold `RolloutLock`, wait for it, or be suspended; None where that is not known.
        next_uid: of the pod that the rollout is about to replace, "" for none, None where that is not known.
    """

    times: Seen = field(default_factory=lambda: UNSEEN)
    failure: PodFailure = NO_FAILURE
    restarts: Mapping[str, int] | None = None
    awaits_mounts: bool = False
    announced: Fingerprint | None = None
    missing_since_s: Mapping[int, float] | None = None
    in_place: Restarts | None = None
    resizes: Resizes | None = None
    in_lock: bool | None = None
    next_uid: str | None = None
