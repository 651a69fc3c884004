"""Input of a hand-over, and the list of servers that it leads to, also while the specification cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, NamedTuple

import msgspec

from memcached_operator.api.status import Status
from memcached_operator.api.v1alpha1 import HANDOVER_SECONDS, HANDOVER_SECONDS_MAX, HANDOVER_SECONDS_MIN, Spec
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.plan.published_list import listed_ordinals, listed_size


class DesiredList(NamedTuple):
    """The list of servers that is desired, and the one that is published.

    Attributes:
        size: how many servers are desired.
        listed: ordinals of those that the status lists.
        for_s: how long clients take to follow a list, None where no hand-over is desired.
    """

    size: int
    listed: frozenset[int]
    for_s: int | None


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


def desired_list(spec: Spec, last: Status) -> DesiredList:
    """The desired list of a specification."""
    for_s = spec.handover.periodSeconds if spec.handover is not None else None
    return DesiredList(spec.size, frozenset(listed_ordinals(last)), for_s)


def unchanged_list(unreadable: bytes, last: Status) -> DesiredList:
    """The list that there is, while the specification cannot be read: what is under way comes to its end.

    Args:
        unreadable: JSON of the specification; where it has no `handover` that can be read, the defaults are taken.
    """
    size = listed_size(last)
    try:
        for_s = msgspec.json.decode(unreadable, type=_Handover).handover.periodSeconds
    except msgspec.MsgspecError:
        for_s = HANDOVER_SECONDS
    return DesiredList(size, frozenset(range(size)), for_s)


class _ForSeconds(msgspec.Struct):
    periodSeconds: Annotated[int, msgspec.Meta(ge=HANDOVER_SECONDS_MIN, le=HANDOVER_SECONDS_MAX)] = HANDOVER_SECONDS


class _Handover(msgspec.Struct):
    handover: _ForSeconds = msgspec.field(default_factory=_ForSeconds)
