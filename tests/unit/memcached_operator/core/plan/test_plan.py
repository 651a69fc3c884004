"""The rules of the list, case by case; `test_plan_machine` holds its promises in any order of events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest

from memcached_operator.api.status import Drain, Status
from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.plan.plan import ListedServers, Plan, as_ending, as_published, plan
from operator_runtime import rfc3339
from tests.unit.memcached_operator.server_model import (
    KEY,
    NO_STATUS,
    START,
    addressed_pod,
    name_of,
    named_pod,
    workload_of,
)
from tests.unit.memcached_operator.support import pod_of


def ago(seconds: int) -> str:
    return rfc3339(START - timedelta(seconds=seconds))


def names(*ordinals: int) -> tuple[str, ...]:
    return tuple(map(name_of, ordinals))


def plan_of(
    spec: Spec,
    *,
    last: Status = NO_STATUS,
    sets: int | None = None,
    deployment: int | None = None,
    pods: Sequence[PodRecord] = (),
    now: datetime = START,
) -> Plan:
    """A plan; `sets` and `deployment` are the replicas of what there is."""
    owned: dict[Workload, WorkloadRecord] = {}
    if sets is not None:
        owned["StatefulSet"] = workload_of("StatefulSet", sets)
    if deployment is not None:
        owned["Deployment"] = workload_of("Deployment", deployment)
    return plan(KEY, spec, last, owned, pods, now)


def named(size: int, **changes: Any) -> Spec:
    return Spec(size=size, workload="StatefulSet", **changes)


@pytest.mark.parametrize("number", ["9" * 5_000, "²", "x", ""])
def test_what_is_no_ordinal_in_a_list_that_somebody_wrote_is_not_owned(number: str) -> None:
    last = Status(workload="StatefulSet", serverList=(name_of(0), name_of(1).replace("-1.", f"-{number}.")))
    found = plan_of(named(3), last=last, sets=3).servers
    assert found is not None
    assert found.listed == names(0)


def of_names(*ordinals: int, draining: Sequence[Drain] = ()) -> Status:
    """A status whose list has these servers of the StatefulSet."""
    return Status(workload="StatefulSet", serverList=names(*ordinals), draining=tuple(draining) or None)


class Case(NamedTuple):
    """A StatefulSet of so many replicas, the ordinals of its ready and its unready pods, and what is planned."""

    size: int
    last: Status
    live: int
    ready: tuple[int, ...]
    unready: tuple[int, ...]
    listed: tuple[int, ...]
    replicas: int
    draining: tuple[tuple[int, int], ...] = ()  # from which ordinal on, since how many seconds ago
    drained: bool = False


def since(first: int, seconds: int) -> Drain:
    return Drain("StatefulSet", first, ago(seconds))


ALL = (0, 1, 2, 3)
SOON, ZONELESS = (Drain("StatefulSet", 1, time) for time in ("soon", "2026-11-21T11:59:59"))
NAMED = {
    "no server is listed before it is ready": Case(3, Status(), 3, (), (0, 1, 2), (), 3),
    "one that is ready is listed in its place": Case(3, of_names(2), 3, (0, 2), (1,), (0, 2), 3),
    "one that is no longer ready stays": Case(3, of_names(0, 1, 2), 3, (0, 2), (1,), (0, 1, 2), 3),
    "one whose pod is gone stays": Case(3, of_names(0, 1, 2), 3, (0, 2), (), (0, 1, 2), 3),
    "growing lists what is ready": Case(4, of_names(0, 1), 2, (0, 1), (), (0, 1), 4),
    "the list shrinks first": Case(2, of_names(0, 1, 2, 3), 4, (0, 1, 2, 3), (), (0, 1), 4, ((2, 0),)),
    "they run on while they drain": Case(2, of_names(0, 1, draining=[since(2, 29)]), 4, ALL, (), (0, 1), 4, ((2, 29),)),
    "and go when they have": Case(2, of_names(0, 1, draining=[since(2, 30)]), 4, ALL, (), (0, 1), 2, drained=True),
    "those that left before go before, from the top": Case(
        1, of_names(0, draining=[since(1, 10), since(2, 40)]), 4, ALL, (), (0,), 2, ((1, 10),), drained=True
    ),
    "those below wait for nobody above, and those above not past their own time": Case(
        1, of_names(0, draining=[since(1, 40), since(2, 10)]), 4, ALL, (), (0,), 1, drained=True
    ),
    "a second shrink has a time of its own": Case(
        1, of_names(0, 1, draining=[since(2, 20)]), 4, ALL, (), (0,), 4, ((1, 0), (2, 20))
    ),
    "one that was never listed goes at once": Case(1, of_names(0), 3, (0,), (1, 2), (0,), 1),
    "growing again takes back what still runs, ready or not": Case(
        3, of_names(0, draining=[since(1, 10)]), 4, (0, 1), (2, 3), (0, 1, 2), 4, ((3, 10),)
    ),
    "and all, with nothing left to drain": Case(4, of_names(0, draining=[since(1, 10)]), 4, (0, 1, 2), (3,), ALL, 4),
    "what was drained and removed comes back when it is ready": Case(3, of_names(0), 1, (0,), (1, 2), (0,), 3),
    "a server that the status does not know may have clients": Case(
        2, of_names(0, 1), 4, ALL, (), (0, 1), 4, ((2, 0),)
    ),
    "also where the status knows of others above it": Case(
        1, of_names(0, draining=[since(2, 10)]), 4, ALL, (), (0,), 4, ((1, 0), (2, 10))
    ),
    "of those alone that are not desired": Case(2, of_names(0, 1), 4, (0, 1, 3), (2,), (0, 1), 4, ((3, 0),)),
    "also where another client took the whole status away": Case(2, Status(), 4, ALL, (), (0, 1), 4, ((2, 0),)),
    "what is to leave and was scaled away by hand stays so": Case(2, of_names(*ALL), 2, (0, 1), (), (0, 1), 2),
    "replicas that somebody took are put back": Case(3, of_names(0, 1, 2), 1, (0,), (), (0, 1, 2), 3),
    "down to nothing, with as much patience": Case(0, of_names(0, 1), 2, (0, 1), (), (), 2, ((0, 0),)),
    "nothing is at rest with nothing": Case(0, of_names(), 0, (), (), (), 0),
    "a time yet to come is now": Case(1, of_names(0, draining=[since(1, -9)]), 2, (0, 1), (), (0,), 2, ((1, 0),)),
    "a time that cannot be read is now": Case(1, of_names(0, draining=[SOON]), 2, (0, 1), (), (0,), 2, ((1, 0),)),
    "a time without a zone is now": Case(1, of_names(0, draining=[ZONELESS]), 2, (0, 1), (), (0,), 2, ((1, 0),)),
}


@pytest.mark.parametrize("case", NAMED.values(), ids=NAMED)
def test_a_stateful_set_s_list_and_replicas(case: Case) -> None:
    pods = [named_pod(each) for each in case.ready] + [named_pod(each, ready=False) for each in case.unready]
    found = plan_of(named(case.size), last=case.last, sets=case.live, pods=pods[::-1])
    assert found.servers.listed == names(*case.listed)
    assert found.replicas == {"StatefulSet": case.replicas}
    assert found.servers.draining == tuple(since(*each) for each in case.draining)
    assert (found.drained, found.removed, found.target) == (case.drained, None, "StatefulSet")
    left = [30 - seconds for _, seconds in case.draining]
    assert found.next_s == (min(left) if left else None)


@pytest.mark.parametrize(
    ("stateful_set", "listed"), [("there", names(0, 1, 2)), ("being deleted", names(0, 2)), ("gone", names(0, 2))]
)
def test_while_a_memcached_goes_a_lost_server_is_listed_as_long_as_its_stateful_set_makes_it_anew(
    stateful_set: str, listed: tuple[str, ...]
) -> None:
    there = workload_of("StatefulSet", 3, deleting=stateful_set == "being deleted")
    owned: dict[Workload, WorkloadRecord] = {} if stateful_set == "gone" else {"StatefulSet": there}
    found = as_ending(of_names(0, 1, 2), owned, [named_pod(0), named_pod(2)])
    assert found == ListedServers("StatefulSet", listed)


def test_the_time_at_which_servers_leave_is_never_before_they_do() -> None:
    now = START + timedelta(microseconds=1)
    found = plan_of(named(1), last=of_names(0, 1), sets=2, pods=[named_pod(0), named_pod(1)], now=now)
    assert found.servers.draining == (Drain("StatefulSet", 1, "2026-11-21T12:00:01Z"),)
    assert found.next_s == pytest.approx(30.999999)


def test_the_patience_is_the_specification_s_as_it_is_now() -> None:
    last = of_names(0, draining=(since(1, 30),))
    for drain_s, replicas, next_s in ((30, 1, None), (100, 2, 70.0), (0, 1, None)):
        found = plan_of(named(1, drainPeriodSeconds=drain_s), last=last, sets=2, pods=[named_pod(0), named_pod(1)])
        assert (found.replicas["StatefulSet"], found.next_s) == (replicas, next_s)


def test_a_stateful_set_that_left_its_pods_behind_is_made_anew_with_those_that_drain() -> None:
    last = of_names(0, draining=(since(1, 10),))
    found = plan_of(named(1), last=last, sets=None, pods=[named_pod(each) for each in range(3)])
    assert found.replicas == {"StatefulSet": 3}


# Deployment


def test_a_deployment_s_list_has_the_addresses_of_its_ready_pods_sorted_as_text() -> None:
    addresses = {"10.0.0.9": True, "10.0.0.10": True, "10.0.0.1": False, "": True, "2001:db8::1": True}
    pods = [pod_of(address, ready=ready, address=address) for address, ready in addresses.items()]
    found = plan_of(Spec(size=3), deployment=3, pods=[*pods, named_pod(0)])
    assert found.servers == ListedServers("Deployment", ("10.0.0.10:11211", "10.0.0.9:11211", "[2001:db8::1]:11211"))
    assert found.replicas == {"Deployment": 3}
    assert found.next_s is None


# Moving from one workload to the other

ADDRESSED = tuple(addressed_pod(number) for number in (1, 2))
ADDRESSES = ("10.0.0.1:11211", "10.0.0.2:11211")
MOVING = Status(workload="Deployment", serverList=ADDRESSES)
MOVED = of_names(0, 1, draining=(Drain("Deployment", 0, ago(10)),))


@pytest.mark.parametrize(
    ("pods", "moves"),
    [
        ([], False),
        ([named_pod(0), named_pod(1, ready=False)], False),
        # Servers that are to go anyway are none of those that are asked for.
        ([named_pod(0), named_pod(2), named_pod(3)], False),
        ([named_pod(1), named_pod(0)], True),
    ],
    ids=["no pods", "one of two", "others", "both"],
)
def test_the_list_moves_when_all_new_servers_are_ready(pods: list[PodRecord], moves: bool) -> None:
    found = plan_of(named(2), last=MOVING, sets=2, deployment=2, pods=[*ADDRESSED, *pods])
    assert found.servers.workload == ("StatefulSet" if moves else "Deployment")
    assert found.servers.draining == ((Drain("Deployment", 0, ago(0)),) if moves else ())
    assert found.replicas == ({"StatefulSet": 2} if moves else {"StatefulSet": 2, "Deployment": 2})
    assert (found.removed, found.next_s) == (None, 30.0 if moves else None)


@pytest.mark.parametrize(("seconds", "removed"), [(29, None), (30, "Deployment")])
def test_the_old_workload_goes_when_it_has_drained(seconds: int, removed: Workload | None) -> None:
    drain = Drain("Deployment", 0, ago(seconds))
    pods = [*ADDRESSED, named_pod(0), named_pod(1)]
    found = plan_of(named(2), last=of_names(0, 1, draining=(drain,)), sets=2, deployment=2, pods=pods)
    assert (found.removed, found.servers.draining) == (removed, (drain,))
    assert found.next_s == (None if removed else 1.0)


def test_a_workload_that_was_never_listed_goes_at_once_when_the_move_is_taken_back() -> None:
    found = plan_of(Spec(size=2), last=MOVING, sets=2, deployment=2, pods=[*ADDRESSED, named_pod(0, ready=False)])
    assert (found.removed, found.servers) == ("StatefulSet", ListedServers("Deployment", ADDRESSES))


def test_a_workload_that_may_have_been_listed_drains_where_the_status_does_not_have_it() -> None:
    found = plan_of(Spec(size=2), last=MOVING, sets=2, deployment=2, pods=[*ADDRESSED, named_pod(0)])
    drain = Drain("StatefulSet", 0, ago(0))
    assert (found.removed, found.servers) == (None, ListedServers("Deployment", ADDRESSES, (drain,)))


def test_what_has_begun_to_drain_and_is_moved_back_to_keeps_its_time_until_it_is_listed() -> None:
    there = plan_of(Spec(size=2), last=MOVED, sets=2, deployment=2, pods=[ADDRESSED[0], named_pod(0), named_pod(1)])
    assert there.servers == ListedServers("StatefulSet", names(0, 1), (Drain("Deployment", 0, ago(10)),))
    again = plan_of(named(2), last=MOVED, sets=2, deployment=2, pods=[ADDRESSED[0], named_pod(0), named_pod(1)])
    assert (again.removed, again.servers.draining) == (None, (Drain("Deployment", 0, ago(10)),))


def test_a_stateful_set_that_drains_and_is_moved_back_to_smaller_loses_no_server_before_its_time() -> None:
    last = Status(workload="Deployment", serverList=ADDRESSES, draining=(since(0, 10),))
    pods = [*ADDRESSED, named_pod(0), named_pod(1, ready=False), named_pod(2)]
    assert plan_of(named(2), last=last, sets=3, deployment=2, pods=pods).replicas["StatefulSet"] == 3
    later = START + timedelta(seconds=20)
    assert plan_of(named(2), last=last, sets=3, deployment=2, pods=pods, now=later).replicas["StatefulSet"] == 2


def test_a_status_that_somebody_emptied_gives_the_other_workload_its_time_once_more() -> None:
    pods = [*ADDRESSED, named_pod(0), named_pod(1)]
    found = plan_of(named(2), last=Status(), sets=2, deployment=2, pods=pods)
    assert (found.removed, found.servers.draining) == (None, (Drain("Deployment", 0, ago(0)),))


# A specification that cannot be read


def test_without_a_readable_specification_the_list_stays_as_it_was_or_follows_the_deployment() -> None:
    assert as_published(Status(), ADDRESSED) is None
    assert as_published(MOVING, ADDRESSED[:1]) == ListedServers("Deployment", ADDRESSES[:1])
    assert as_published(MOVED, []) == ListedServers("StatefulSet", names(0, 1), MOVED.draining or ())
