"""How far a server is on its way to other memory, and what errors and time make of it, as tables."""

from __future__ import annotations

import pytest

from memcached_operator.api.status import Problem, Reason
from memcached_operator.core.rollout.change_costs import NO_RESIZE
from memcached_operator.core.rollout.live.resize_state import (
    BUSY_RETRY_S,
    NOTHING,
    PATIENCE_S,
    REFUSED_RETRY_S,
    REQUEUE_S,
    Impossible,
    Pending,
    Resized,
    ResizeRefused,
    ResizeState,
    Resizing,
    ServerResize,
    Trial,
    resize_state_of,
    resizing_of,
)
from operator_runtime import Conflict, Forbidden, Invalid, KubeError, NotFound, ServerError
from operator_runtime.client.errors import StatusCause, TooManyRequests, Unreachable
from tests.unit.memcached_operator.support import NO_RIGHT

QUOTA = Forbidden(403, "Forbidden", "exceeded quota: small")
MISSING = Forbidden(403, "Forbidden", NO_RIGHT)
SMALL = Forbidden(403, "Forbidden", "node has 64Mi", causes=(StatusCause("NodeCapacity", "too much", "spec"),))
UNREADABLE = Forbidden(403, "Forbidden", 'cannot get resource "pods"')
GONE = NotFound(404, "NotFound", 'pods "a" not found', name="a")
UNSERVED = NotFound(404, "NotFound", "the server could not find the requested resource")
OVER_QUOTA = ResizeRefused("quota", Reason.QUOTA_EXCEEDED)
FAILED, AWAY, BUSY = ServerError(500, "", "etcd is away"), Unreachable("it is away"), TooManyRequests(429, "", "later")


@pytest.mark.parametrize(
    ("error", "is_read", "is_change", "state"),
    [
        (Conflict(409, "Conflict", "changed"), True, True, Pending()),
        (GONE, False, True, Pending()),
        (GONE, True, True, Pending()),
        (UNSERVED, False, True, Pending()),
        (UNSERVED, True, True, Impossible(NO_RESIZE)),
        (NotFound(404, "NotFound", 'pods "b" not found', name="b"), True, True, Impossible(NO_RESIZE)),
        (UNREADABLE, False, True, Impossible(UNREADABLE.message)),
        # What a former leader has seen to costs no server.
        (UNREADABLE, False, False, Pending(UNREADABLE.message)),
        (MISSING, True, True, Impossible(NO_RIGHT)),
        (SMALL, True, True, Impossible(SMALL.message)),
        (QUOTA, True, True, ResizeRefused(QUOTA.message, Reason.QUOTA_EXCEEDED)),
        (
            Forbidden(403, "Forbidden", ""),
            True,
            True,
            ResizeRefused("403 Forbidden: no message", Reason.DENIED_BY_POLICY),
        ),
        (Invalid(422, "Invalid", "QOS"), True, True, Impossible("QOS")),
        (FAILED, True, True, Pending(failure=FAILED)),
        (AWAY, False, True, Pending(failure=AWAY)),
        (BUSY, True, True, Pending(failure=BUSY)),
    ],
)
def test_what_an_error_means(error: KubeError, is_read: bool, is_change: bool, state: ResizeState) -> None:
    assert resize_state_of(error, "a", is_read=is_read, is_change=is_change) == state


def server(*, is_change: bool = True, since_s: float | None = 0.0) -> ServerResize:
    return ServerResize("128Mi,170Mi,170Mi", 0, since_s, is_change)


@pytest.mark.parametrize(
    ("state", "is_change", "after_s", "taken"),
    [
        (Pending("no room"), True, PATIENCE_S - 1, Pending("no room")),
        (Pending("no room"), True, PATIENCE_S, Impossible("no room")),
        (Pending(), True, PATIENCE_S, Impossible("the resize did not finish in time")),
        (Pending("no room"), False, PATIENCE_S, Pending("no room")),
        (Pending("busy", busy=True), True, PATIENCE_S, Pending("busy", busy=True)),
        (Pending(failure=FAILED), True, PATIENCE_S, Pending(failure=FAILED)),
        (OVER_QUOTA, True, PATIENCE_S, OVER_QUOTA),
        (Resized(), True, PATIENCE_S, Resized()),
    ],
)
def test_a_try_that_takes_too_long_is_given_up(
    state: ResizeState, is_change: bool, after_s: float, taken: ResizeState
) -> None:
    found = server(is_change=is_change)
    found.take(state, after_s)
    assert found.state == taken


@pytest.mark.parametrize("state", [OVER_QUOTA, Pending(failure=AWAY), Pending("busy", busy=True)])
def test_the_time_counts_anew_after_what_cannot_be_seen(state: ResizeState) -> None:
    found = server()
    found.take(state, 30.0)
    assert found.since_s is None
    found.take(Pending("no room"), 3600.0)
    assert found.state == Pending("no room")


def test_the_second_server_is_resized_once_the_first_ran_on_and_never_after_one_that_did_not() -> None:
    trial = Trial()
    assert trial.may_begin("a")
    trial.uid = "a"
    assert (trial.may_begin("a"), trial.may_begin("b")) == (True, False)
    trial.passed = True
    assert trial.may_begin("b")
    trial.emptied = "cache-1"
    assert not trial.may_begin("a")
    found = server()
    assert not found.has_started_again(1)
    found.asked = 1
    assert (found.has_started_again(1), found.has_started_again(2)) == (False, True)
    found.take(Impossible("no room"), 1.0)
    assert not found.has_started_again(2)


def of(**states: ResizeState) -> Resizing:
    found = {(name, f"uid-{name}"): server() for name in states}
    for (name, _), each in found.items():
        each.state = states[name]
    return resizing_of(found, 128)


def test_how_far_several_servers_are() -> None:
    assert of() == of(a=Resized()) == NOTHING
    assert of(a=Resized(), b=Pending("no room")) == Resizing({"b": "no room"}, requeue_s=REQUEUE_S)
    assert of(a=Impossible("QOS"), b=Pending(busy=True)) == Resizing(
        {"b": ""}, {"uid-a": "QOS"}, requeue_s=BUSY_RETRY_S
    )
    assert of(a=Pending(failure=FAILED)).failure is FAILED
    refused = of(b=OVER_QUOTA, c=OVER_QUOTA, a=Resized())
    message = "b keeps its memory, as it cannot get 128 MiB: quota"
    assert refused.refused == Problem(Reason.QUOTA_EXCEEDED, message, blocking=False)
    assert refused.requeue_s == REFUSED_RETRY_S
    assert of(b=OVER_QUOTA, c=Pending()).refused is None, "others go on"


def test_a_server_that_has_enough_is_none_that_is_refused() -> None:
    """What it could give back matters to nobody, and another one is waited for."""
    enough, other = server(), server()
    enough.keeps_room = enough.limit_set = True
    enough.state = OVER_QUOTA
    assert resizing_of({("a", "uid-a"): enough, ("b", "uid-b"): other}, 128) == Resizing({"b": ""}, requeue_s=REQUEUE_S)


def test_what_is_no_change_is_not_waited_for_and_tried_slowly() -> None:
    assert resizing_of({("a", "uid-a"): server(is_change=False)}, 128) == Resizing(requeue_s=PATIENCE_S)
