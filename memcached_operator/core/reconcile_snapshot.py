"""Snapshot that a reconcile acts on: one Memcached, and what was found and planned of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from memcached_operator.api.status import Status
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.plan.plan import Plan
from memcached_operator.core.remembered import Remembered
from operator_runtime import ObjectKey


class Snapshot(msgspec.Struct, frozen=True):
    """One Memcached at the moment of a reconcile.

    Attributes:
        last: the status as it was last written.
        all_pods: all of its workloads', also those that are ending.
        now: the time, with its zone.
        remembered: of the Memcached.
        handing_over: no server is replaced that has keys; see `handover.steps`.
    """

    memcached: MemcachedRecord
    spec: Spec
    plan: Plan
    last: Status
    all_pods: Sequence[PodRecord]
    now: datetime
    remembered: Remembered
    handing_over: bool = False

    @property
    def key(self) -> ObjectKey:
        return self.memcached.key

    @property
    def pending_writes(self) -> frozenset[str]:
        """Kinds that are yet to be written for this generation, as that failed or was refused before.

        The status has them, as it is of this generation from then on: what is yet to be done for it is no other
        client's change.
        """
        pending = self.last.pendingWrites if self.last.observedGeneration == self.memcached.generation else None
        return frozenset(pending or ())

    @property
    def pods(self) -> Sequence[PodRecord]:
        """The active ones."""
        return [pod for pod in self.all_pods if pod.active]

    @property
    def inactive(self) -> Sequence[PodRecord]:
        """The others."""
        return [pod for pod in self.all_pods if not pod.active]
