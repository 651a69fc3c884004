"""Value: what a reconcile has found, from which the next step of a hand-over or of a move follows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from memcached_operator.api.status import Status
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.features.handover.desired_list import DesiredList


class HandoverInput(NamedTuple):
    """Input of a hand-over.

    Attributes:
        last: the status as it was last written.
        pods: the active ones.
        ending: those that are ending, or have ended.
        now: the time, with its zone.
        spec: the specification, None while it cannot be read.
        next_uid: of the pod that the rollout is about to replace, "" for none, None where that is not known.
    """

    memcached: MemcachedRecord
    desired: DesiredList
    last: Status
    pods: Sequence[PodRecord]
    ending: Sequence[PodRecord]
    now: datetime
    spec: Spec | None = None
    next_uid: str | None = ""
