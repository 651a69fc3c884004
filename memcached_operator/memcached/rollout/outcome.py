"""The result of keeping the objects of one Memcached: what is there, what was in the way, what is waited for."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from memcached_operator.api.status import Problem, Reason, Status, sentence
from memcached_operator.memcached.desired.codec import OwnedRecord
from memcached_operator.memcached.observed.workloads import WorkloadRecord
from memcached_operator.memcached.refusal_reasons import refused
from memcached_operator.memcached.rollout.decision import DONE, Rollout
from operator_runtime import EnsureResult, Forbidden, Invalid, NotOwned, Refused, ServerError, TooManyRequests

R = TypeVar("R", bound=OwnedRecord)
_FAILED: Final = "The API server failed to write the "


def reported_failing(last: Status) -> frozenset[str]:
    """The kinds of which a status says that the API server failed to write them."""
    ready = last.condition("Ready")
    return frozenset(re.findall(rf"{_FAILED}(\w+): ", ready.message)) if ready is not None else frozenset()


@dataclass(slots=True)
class Outcome:
    """The result of keeping one Memcached's objects.

    Attributes:
        published: the list of servers that was published, if it is to be; None before there is one.
        waiting: what is waited for before all is there.
        foreign: kinds of which an object with the name has another owner.
        rollout: how far the servers have come to the present template.
        absent: why servers of a StatefulSet are missing, "" where that is not known, or none is.
        queued: they are yet to come to the operator's own defaults, when it is their turn.
        unmet: kinds that are yet to be written for this generation, as that failed or was refused before.
        failed: those that are so now.
        unwritten: what the API server said as it failed to write the workload, "" where it did not fail.
        next_s: seconds until more is to be done, None where an event will tell.
        failure: what is to be raised once all else is done and told, for all of it to be tried again.
    """

    unmet: frozenset[str] = frozenset()
    failed: set[str] = field(default_factory=set)
    workload: WorkloadRecord | None = None
    service: str = ""
    published: tuple[str, ...] | None = None
    problems: list[Problem] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    foreign: set[str] = field(default_factory=set)
    rollout: Rollout = DONE
    absent: str = ""
    queued: bool = False
    unwritten: str = ""
    next_s: float | None = None
    failure: ServerError | TooManyRequests | None = None

    def look_again(self, *after_s: float | None) -> None:
        """More is to be done after so many seconds each, if not before; None for never."""
        self.next_s = min((each for each in (self.next_s, *after_s) if each is not None), default=None)

    async def attempt(
        self, kind: str, doing: Awaitable[EnsureResult[R]], *, newer: bool = False, blocking: bool = False
    ) -> EnsureResult[R] | None:
        """The result of keeping one object; None where something was in the way, which is noted here.

        Args:
            kind: of the object.
            doing: keeps or removes it.
            newer: the specification asks for it since just now, or it is yet to be done for this generation.
            blocking: for its sake the servers are not changed.
        """
        try:
            kept = await doing
        except NotOwned as error:
            self.foreign.add(kind)
            problem = Problem(Reason.NOT_CONTROLLED, str(error), blocking)
        except (Forbidden, Invalid, Refused) as error:
            problem = Problem(*refused(kind, error), blocking)
        except (ServerError, TooManyRequests) as error:
            message = self.try_again(kind, error)
            if blocking:
                self.unwritten = message
            self._fail(kind, newer)
            return None
        else:
            if kept.waiting:
                self.waiting.append(kept.waiting)
            return kept
        self._fail(kind, newer)
        self.problems.append(problem)
        return None

    def of_finalizer(self, why_not: Problem | ServerError | TooManyRequests | None) -> None:
        """Why the finalizer could not be put on the Memcached, None where it could or is not to be."""
        if isinstance(why_not, Problem):
            self.problems.append(why_not)
        elif why_not is not None:
            self.try_again("finalizer", why_not)

    def try_again(self, what: str, error: ServerError | TooManyRequests) -> str:
        """The API server failed to write this for now; what is said of it.

        As where an admission webhook for one kind does not answer: neither the other objects nor the status wait for
        it.
        """
        message = sentence(f"{_FAILED}{what}: {error.message or error}")
        self.waiting.append(message)
        self.failure = error
        return message

    def _fail(self, kind: str, newer: bool) -> None:
        if newer:
            self.failed.add(kind)
