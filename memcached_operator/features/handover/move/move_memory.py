"""Memory of a Memcached's moves from one reconcile to the next; a new leader does with none of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from memcached_operator.api.status import MoveStep, Problem
from memcached_operator.features.handover.move.item_copy import Transferred
from memcached_operator.features.handover.move.situation import Copied, MoveSituation, NotMoved
from memcached_operator.features.handover.purge import Purged
from memcached_operator.servers.server_connection import Failure

MoveTask: TypeAlias = asyncio.Task[Purged | Transferred | Failure]


@dataclass(slots=True)
class MoveMemory:
    """Memory of a Memcached's moves.

    Attributes:
        purged, given_up, unconfirmed: uids of pods; see `MoveSituation`.
        purges: uid of the pod that deletes what former owners have kept.
        confirmed_s: by the clock, since when each pod (by its uid) is known to have confirmed a generation.
        silent_since_s: by the clock, since when a pod does not answer.
        copied: what passes have found, by the step.
        carried: how many items the pass that is under way has gone over.
        awaited: what is waited for with a limit, and since when.
        refused_s: by the clock, when the API server refused to make a holder last, or to delete it.
        refusal: the latter.
    """

    purged: set[str] = field(default_factory=set)
    purges: str = ""
    given_up: dict[str, NotMoved] = field(default_factory=dict)
    unconfirmed: set[str] = field(default_factory=set)
    confirmed_s: dict[tuple[str, int], float] = field(default_factory=dict)
    silent_since_s: dict[str, float] = field(default_factory=dict)
    copied: dict[MoveStep, Copied] = field(default_factory=dict)
    tasks: dict[MoveStep, MoveTask] = field(default_factory=dict)
    carried: int = 0
    awaited: tuple[object, float] | None = None
    refused_s: float = float("-inf")
    refusal: Problem | None = None

    def keep(self, situation: MoveSituation) -> None:
        """Forget who was given up, but for those that are to be replaced still."""
        if situation.holder is None:
            ending = {each.pod.uid for each in situation.servers if each.ending is not None}
            # Also for memory that it cannot be given, or a Secret.
            due = situation.stale | {situation.next_uid} | ending
            kept = {uid: why for uid, why in self.given_up.items() if uid in due}
            self.given_up = {uid: why for uid, why in kept.items() if why is not NotMoved.UNNEEDED}

    def collect(self) -> None:
        """Take what tasks have come to."""
        for step, task in [each for each in self.tasks.items() if each[1].done()]:
            del self.tasks[step]
            answer = None if task.cancelled() or task.exception() is not None else task.result()
            if isinstance(answer, Purged):
                self.purged.add(self.purges)
            elif step is not MoveStep.PREPARING:
                before = self.copied.get(step, Copied())
                if isinstance(answer, Transferred) and answer.is_part:
                    self.copied[step] = replace(before, failures=0, has_hot=True, is_running=False)
                elif isinstance(answer, Transferred):
                    lacking = (*before.lacking, answer.lacking)
                    now = replace(before, lacking=lacking, items=answer.items)
                    self.copied[step] = replace(now, failures=0, is_running=False)
                else:
                    self.copied[step] = replace(before, failures=before.failures + 1, is_running=False)

    def end(self) -> None:
        """Leave off what is under way, and forget it."""
        for task in self.tasks.values():
            task.cancel()
        for each in (self.tasks, self.copied, self.confirmed_s, self.silent_since_s):
            each.clear()
        self.refusal = None
        self.purged.clear()
        self.unconfirmed.clear()
