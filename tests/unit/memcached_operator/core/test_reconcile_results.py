"""How an attempt to keep an object ends, and how outcomes are merged."""

from __future__ import annotations

import pytest

from memcached_operator.api.status import Problem, Reason
from memcached_operator.core.objects.owned_object import OwnedRecord
from memcached_operator.core.outcome import Outcome, attempt
from operator_runtime import EnsureResult, Forbidden, Invalid, NotOwned, ServerError, TooManyRequests
from tests.unit.memcached_operator.support import NO_RIGHT

ETCD, BUSY = ServerError(500, "InternalError", "etcd is away"), TooManyRequests(429, "", "later")
FIRST, SECOND = Problem(Reason.FORBIDDEN, "first"), Problem(Reason.INVALID_SPEC, "second")


def test_outcomes_are_merged_in_their_order_and_the_soonest_time_counts() -> None:
    one = Outcome((FIRST,), ("a",), frozenset({"Service"}), frozenset({"Service"}), 5.0, (ETCD,))
    other = Outcome((SECOND,), ("b",), frozenset({"ConfigMap"}), frozenset(), 3.0, (BUSY,))
    assert one + other == Outcome(
        (FIRST, SECOND), ("a", "b"), frozenset({"Service", "ConfigMap"}), frozenset({"Service"}), 3.0, (ETCD, BUSY)
    )
    assert one + Outcome() == Outcome() + one == one
    assert (other + Outcome(requeue_s=9.0)).requeue_s == 3.0


def test_the_latest_failure_is_raised_and_none_where_there_is_none() -> None:
    Outcome(problems=(FIRST,)).raise_failure()
    with pytest.raises(TooManyRequests):
        Outcome(failures=(ETCD, BUSY)).raise_failure()


async def doing(answer: EnsureResult[OwnedRecord] | Exception) -> EnsureResult[OwnedRecord]:
    if isinstance(answer, Exception):
        raise answer
    return answer


KEPT = EnsureResult[OwnedRecord](None, "")
WAITS = EnsureResult[OwnedRecord](None, "The Service is being deleted.")
FOREIGN = NotOwned("it is another's")
SERVICE = frozenset({"Service"})


def in_the_way(reason: Reason, message: str, foreign: frozenset[str] = frozenset()) -> Outcome:
    return Outcome((Problem(reason, message, False),), foreign=foreign, pending_writes=SERVICE)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (KEPT, Outcome()),
        (WAITS, Outcome(waiting=("The Service is being deleted.",))),
        (FOREIGN, in_the_way(Reason.NOT_CONTROLLED, "it is another's", foreign=SERVICE)),
        (Forbidden(403, "", NO_RIGHT), in_the_way(Reason.FORBIDDEN, NO_RIGHT)),
        (Invalid(422, "", "no"), in_the_way(Reason.INVALID_SPEC, "The API server refused the Service: no")),
        (
            ETCD,
            Outcome(
                waiting=("The API server failed to write the Service: etcd is away.",),
                pending_writes=SERVICE,
                failures=(ETCD,),
            ),
        ),
    ],
)
async def test_an_attempt_ends_with_what_was_kept_or_with_what_was_in_the_way(
    answer: EnsureResult[OwnedRecord] | Exception, outcome: Outcome
) -> None:
    found = await attempt("Service", doing(answer), is_pending=True)
    assert found.kept is (None if isinstance(answer, Exception) else answer)
    assert found.outcome == outcome
    assert (await attempt("Service", doing(answer))).outcome.pending_writes == frozenset(), (
        "it is as this generation has it"
    )


async def test_what_the_servers_depend_on_blocks_them() -> None:
    (problem,) = (await attempt("StatefulSet", doing(FOREIGN), blocking=True)).outcome.problems
    assert problem.blocking
