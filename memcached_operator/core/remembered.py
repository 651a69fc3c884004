"""What an operator remembers of one Memcached from one reconcile to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from memcached_operator.core.objects.pod_template import Fingerprint
from memcached_operator.core.rollout.container_restarts import Restarts
from memcached_operator.core.rollout.diagnosis.failed_pods import NO_FAILURE, Failure
from memcached_operator.core.rollout.live.live_memory import Resizes
from memcached_operator.core.rollout.observed_times import UNSEEN, Seen


@dataclass(slots=True)
class Remembered:
    """What is remembered of a Memcached.

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
        resizes: servers that are given other memory while they run.
    """

    times: Seen = field(default_factory=lambda: UNSEEN)
    failure: Failure = NO_FAILURE
    restarts: Mapping[str, int] | None = None
    awaits_mounts: bool = False
    announced: Fingerprint | None = None
    missing_since_s: Mapping[int, float] | None = None
    in_place: Restarts | None = None
    resizes: Resizes | None = None
