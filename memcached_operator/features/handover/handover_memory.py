"""Memory of a Memcached's hand-overs from one reconcile to the next; a new leader does with none of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from memcached_operator.api.status import HandoverStatus, HandoverStep, Problem
from memcached_operator.features.handover.actions import GiveUp
from memcached_operator.features.handover.deletion_tasks import Emptying, PurgeRun


@dataclass(slots=True)
class HandoverMemory:
    """State of a Memcached's hand-overs that is in memory alone.

    Attributes:
        purge: of the hand-over that is being prepared, or was last.
        size: how many servers are desired, and `waits_since` when that was first seen by this leader.
        unsupported: by pod and number of its restarts, whether its server cannot hand over.
        believed: the status that this leader wrote last, and the one before it, which stands where that failed.
        given_up: of the last change, which had no hand-over.
        refusal: of the API server's, to change a pod; until `refused_until_s` (by the clock) none is changed.
    """

    purge: PurgeRun | None = None
    size: int | None = None
    waits_since: datetime | None = None
    unsupported: dict[tuple[str, int], bool] = field(default_factory=dict)
    emptying: Emptying = field(default_factory=Emptying)
    reported: HandoverStep | None = None
    believed: tuple[HandoverStatus | None, ...] = ()
    given_up: GiveUp | None = None
    refusal: Problem | None = None
    refused_until_s: float = float("-inf")

    def end(self) -> None:
        """Leave off what is under way."""
        self.emptying.keep(())
        if self.purge is not None:
            self.purge.end()
