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


class Snapshot(msgspec.Struct, frozen=True):
    """One Memcached at the moment of a reconcile.

    Attributes:
        last: the status as it was last written.
        pods: the active ones of its workloads.
        inactive: those that are ending, or have ended.
        now: the time, with its zone.
        remembered: of the Memcached.
        handing_over: no server is replaced that has keys; see `handover.steps`.
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
