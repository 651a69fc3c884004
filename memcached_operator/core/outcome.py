"""The results of a reconcile's steps: what was written, what prevented a write, what is waited for."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar, get_args

import msgspec

from memcached_operator.api.status import Problem, Reason, sentence
from memcached_operator.core.objects.owned_object import OwnedRecord
from memcached_operator.core.objects.refusal_reasons import refusal_reason, refused
from memcached_operator.core.objects.workload_types import WorkloadManifest
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.rollout.next_step import DONE, RolloutProgress
from memcached_operator.core.rollout.workload_decision import Hold
from operator_runtime import (
    Client,
    Conflict,
    EnsureResult,
    Forbidden,
    Invalid,
    Kind,
    NotFound,
    NotOwned,
    Refused,
    ServerError,
    TooManyRequests,
)

R = TypeVar("R", bound=OwnedRecord)


class Outcome(msgspec.Struct, frozen=True):
    """Outcome of a step: what is to be reported and done. The outcomes of several steps are merged with `+`.

    Attributes:
        problems: what its user should know.
        waiting: what is waited for before all is there, in sentences.
        foreign: kinds of which an object with the name has another owner.
        pending_writes: kinds that are yet to be written for this generation.
        requeue_s: seconds until more is to be done, None where an event will come.
        failures: what the API server failed in, for all of it to be tried again once all else is done and reported.
    """

    problems: tuple[Problem, ...] = ()
    waiting: tuple[str, ...] = ()
    foreign: frozenset[str] = frozenset()
    pending_writes: frozenset[str] = frozenset()
    requeue_s: float | None = None
    failures: tuple[ServerError | TooManyRequests, ...] = ()

    def __add__(self, other: Outcome) -> Outcome:
        if other is EMPTY or self is EMPTY:
            return self if other is EMPTY else other
        return Outcome(
            self.problems + other.problems,
            self.waiting + other.waiting,
            self.foreign | other.foreign,
            self.pending_writes | other.pending_writes,
            soonest(self.requeue_s, other.requeue_s),
            self.failures + other.failures,
        )

    def raise_failure(self) -> None:
        """Raise the latest failure, if there is one: the reconcile is tried again after a growing pause.

        Raises:
            ServerError, TooManyRequests: what the API server failed in.
        """
        if self.failures:
            raise self.failures[-1]


EMPTY: Final = Outcome()
AT_ONCE: Final = Outcome(requeue_s=0.0)
"""Of a write after which there is more to do, as soon as the cache shows it."""
WriteRefusal: TypeAlias = Conflict | NotFound | Forbidden | Invalid | ServerError | TooManyRequests
WRITE_REFUSALS: Final = get_args(WriteRefusal)


def soonest(*after_s: float | None) -> float | None:
    """The least of these numbers of seconds, None where there is none."""
    return min((each for each in after_s if each is not None), default=None)


class Attempt(msgspec.Struct, Generic[R], frozen=True):
    """Result of an attempt to keep an object.

    Attributes:
        kept: None where something prevented that, as the outcome has it.
    """

    kept: EnsureResult[R] | None
    outcome: Outcome


async def attempt(
    kind: str, doing: Awaitable[EnsureResult[R]], *, is_pending: bool = False, blocking: bool = False
) -> Attempt[R]:
    """Keep or remove one object, whatever becomes of it.

    Args:
        is_pending: it is yet to be written for this generation.
        blocking: for its sake the servers are not changed.
    """
    try:
        kept = await doing
        return Attempt(kept, Outcome(waiting=(kept.waiting,)) if kept.waiting else EMPTY)
    except NotOwned as error:
        problem = Problem(Reason.NOT_CONTROLLED, str(error), blocking)
        failed = Outcome(problems=(problem,), foreign=frozenset((kind,)))
    except (Forbidden, Invalid, Refused) as error:
        failed = Outcome(problems=(Problem(*refused(kind, error), blocking),))
    except (ServerError, TooManyRequests) as error:
        message = sentence(f"The API server failed to write the {kind}: {error.message or error}")
        failed = Outcome(waiting=(message,), failures=(error,))
    return Attempt(None, msgspec.structs.replace(failed, pending_writes=frozenset((kind,) if is_pending else ())))


def refused_write(client: Client, kind: Kind[Any], live: Any, what: str, error: WriteRefusal) -> Outcome:
    """The outcome of a write of an object in the cache: done again, reported with its cause, or tried again.

    Args:
        what: could not be done, as the beginning of a sentence.
    """
    message = f"{what}: {error.message or error}"
    match error:
        case Conflict() | NotFound():
            client.outdated(kind, live)
            return AT_ONCE
        case Forbidden() | Invalid():
            return Outcome((Problem(refusal_reason(error.message), message, blocking=False),))
        case ServerError() | TooManyRequests():
            return Outcome(waiting=(message,), failures=(error,))


class WorkloadResult(msgspec.Struct, frozen=True):
    """Result for the workloads of a Memcached, and for their servers.

    Attributes:
        hold: what keeps its pods as they are made now.
        absent: why servers of a StatefulSet are missing, "" where that is not known, or none is.
        refused: that not all servers could be given memory that nobody specified.
    """

    workload: WorkloadRecord | None = None
    manifest: WorkloadManifest | None = None
    hold: Hold = Hold.NONE
    write_failed: bool = False
    rollout: RolloutProgress = DONE
    absent: str = ""
    refused: Blocked | None = None
    outcome: Outcome = EMPTY

    @property
    def is_rolling(self) -> bool:
        """Report whether servers are to be replaced, now or later."""
        return bool(self.rollout.stale) or self.hold in (Hold.QUEUED, Hold.PAUSED, Hold.LACKING)


class ObjectsResult(msgspec.Struct, frozen=True):
    """Result for all objects of a Memcached.

    Attributes:
        service: the name of its Service, "" without one.
        published: the list of servers that was published, if it is to be; None before there is one.
    """

    workloads: WorkloadResult
    service: str = ""
    published: tuple[str, ...] | None = None
    outcome: Outcome = EMPTY


@dataclass(frozen=True, slots=True)
class Blocked:
    """Growth that not all servers could be given while they run.

    Attributes:
        kept_mib: what all of them have, and keep.
    """

    problem: Problem
    kept_mib: int
