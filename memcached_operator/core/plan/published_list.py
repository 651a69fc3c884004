"""Pure: the list of servers that is published for clients, in its order, and the draining of those that left it.

The list is a promise to clients that hash keys to servers: a place in it changes only with the specification.

- Of a StatefulSet the list has names, in the order of ordinals. A server is listed once it was ready for the first
  time, and keeps its place from then on.
- Of a Deployment it has the addresses of the ready pods.

When the size of a StatefulSet shrinks, servers leave the list first. They are removed `spec.drainPeriodSeconds` after
that was written into the status, from the top.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from memcached_operator.api.status import Drain, Status
from memcached_operator.api.status_times import bounded_time, parsed_time, status_time
from memcached_operator.api.v1alpha1 import Workload
from memcached_operator.core.objects.labels import PORT, server
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from operator_runtime import ObjectKey

_NAMED: Final = re.compile(r"[^.]+-([0-9]{1,10})\.")  # others may write the status, too


class ListedServers(NamedTuple):
    """Published servers.

    Attributes:
        workload: whose servers are listed.
        listed: `host:port` of each, in their order.
        draining: servers that left the list and still run.
    """

    workload: Workload
    listed: tuple[str, ...]
    draining: tuple[Drain, ...] = ()

    @property
    def has_names(self) -> bool:
        """Report whether clients know some of the servers by names."""
        return "StatefulSet" in (self.workload, *(each.workload for each in self.draining))


class ListPolicy(NamedTuple):
    """Requirements of a hand-over on the list of a StatefulSet.

    Attributes:
        is_frozen: it stays as the status has it.
        keeps_all: no server is removed, however long it has drained: others have it as a peer.
    """

    is_frozen: bool = False
    keeps_all: bool = False


FREE: Final = ListPolicy()


def next_list(key: ObjectKey, size: int, listed: Workload, last: Status, pods: Sequence[PodRecord]) -> tuple[str, ...]:
    """`host:port` of each server that is to be listed."""
    if listed == "Deployment":
        return addresses(pods)
    there = {pod.ordinal: pod.ready for pod in pods if pod.workload == "StatefulSet"}
    # Taken back, as it was not removed yet. It was ready once, or it would not have been on the list that it left.
    first = min((each.firstOrdinal for each in drains_of_stateful_set(last)), default=size)
    ordinals = listed_ordinals(last) | {each for each, ready in there.items() if ready or each >= first}
    return tuple(server(key.name, key.namespace, ordinal) for ordinal in sorted(ordinals) if ordinal < size)


def as_published(last: Status, pods: Sequence[PodRecord]) -> ListedServers | None:
    """List that stays published while the specification cannot be read; None where nothing was."""
    match last.workload:
        case "Deployment":
            return ListedServers("Deployment", addresses(pods), last.draining or ())
        case "StatefulSet":
            return ListedServers("StatefulSet", last.serverList or (), last.draining or ())
        case _:
            return None


def as_ending(
    last: Status, owned: Mapping[Workload, WorkloadRecord], pods: Sequence[PodRecord]
) -> ListedServers | None:
    """List that stays published while the Memcached is being deleted; None where nothing was.

    Where a StatefulSet is there, it makes a lost server anew under its name, which stays listed. Where it goes or is
    gone, no server comes back.
    """
    published, workload = as_published(last, pods), owned.get("StatefulSet")
    if published is None or published.workload != "StatefulSet" or (workload is not None and not workload.deleting):
        return published
    left = {pod.name for pod in pods}
    return published._replace(listed=tuple(each for each in published.listed if each.partition(".")[0] in left))


def addresses(pods: Iterable[PodRecord]) -> tuple[str, ...]:
    """`host:port` of each ready pod of a Deployment, sorted as text."""
    ready = (pod.address for pod in pods if pod.workload == "Deployment" and pod.ready and pod.address)
    return tuple(sorted(f"[{each}]:{PORT}" if ":" in each else f"{each}:{PORT}" for each in ready))


def listed_ordinals(last: Status) -> set[int]:
    """Ordinals of the servers of a StatefulSet that the last list had."""
    named = (_NAMED.match(each) for each in last.serverList or () if last.workload != "Deployment")
    return {int(each[1]) for each in named if each is not None}


def listed_size(last: Status) -> int:
    """Size of a StatefulSet that has all servers of the last list, with what is missing between them; 0 for none."""
    return 1 + max(listed_ordinals(last), default=-1)


def drains_of_stateful_set(last: Status) -> list[Drain]:
    """The servers of a StatefulSet that had left the last list and still ran."""
    return [each for each in last.draining or () if each.workload == "StatefulSet"]


class StatefulSetServers(NamedTuple):
    """The servers that a StatefulSet keeps.

    Attributes:
        replicas: how many pods it is to have now.
        has_drained: some are removed now that have drained.
        draining: those that left the list, are leaving it, and are kept.
    """

    replicas: int
    has_drained: bool
    draining: tuple[Drain, ...]


def stateful_set_servers(
    size: int,
    last: Status,
    owned: Mapping[Workload, WorkloadRecord],
    pods: Sequence[PodRecord],
    drained: Sequence[Drain],
    now: datetime,
    policy: ListPolicy,
    *,
    is_listed: bool,
) -> StatefulSetServers:
    """The servers that a StatefulSet keeps: from the top, without those that have drained or were never listed.

    Args:
        is_listed: clients are given the servers of this StatefulSet.
    """
    live = _live_replicas(owned, pods)
    unknown = _unknown(size, live, last, pods) if is_listed else ()
    replicas = _replicas(size, live, last, drained, unknown)
    if policy.keeps_all:
        replicas = max(replicas, live)
    has_drained = replicas < live and any(each.workload == "StatefulSet" for each in drained)
    list_size = listed_size(last) if policy.is_frozen else size
    leaving = _leaving(list_size, last, now, unknown) if is_listed else []
    return StatefulSetServers(replicas, has_drained, tuple(each for each in leaving if each.firstOrdinal < replicas))


def drained_at(drain: Drain, drain_s: int) -> datetime | None:
    """Time at which these servers have drained; None where another client wrote no time as their start."""
    since = parsed_time(drain.startTime)
    try:
        return since + timedelta(seconds=drain_s) if since is not None else None
    except OverflowError:
        return None


def drain_left_s(drain: Drain, drain_s: int, now: datetime) -> float:
    at = drained_at(drain, drain_s)
    return max(0.0, (at - now).total_seconds()) if at is not None else 0.0


def without_future_times(last: Status, now: datetime) -> Status:
    """The status without times that are yet to come, as of a leader whose clock was ahead: they drained too long."""
    written = last.draining or ()
    draining = tuple(msgspec.structs.replace(each, startTime=bounded_time(each.startTime, now)) for each in written)
    return last if draining == written else msgspec.structs.replace(last, draining=draining)


def _unknown(size: int, live: int, last: Status, pods: Iterable[PodRecord]) -> Collection[int]:
    """Ordinals of servers that clients may have on a list, although the status has them neither listed nor draining.

    Another client changed it, or they got ready after they were no longer desired.
    """
    first = min((each.firstOrdinal for each in drains_of_stateful_set(last)), default=live)
    ready = (pod.ordinal for pod in pods if pod.ready and size <= pod.ordinal < min(first, live))
    return set(ready) - listed_ordinals(last)


def _leaving(size: int, last: Status, now: datetime, unknown: Collection[int]) -> list[Drain]:
    """Servers that leave the list of a StatefulSet, or have left it: from which ordinal on, since when."""
    since: dict[int, str] = {}
    for each in drains_of_stateful_set(last):
        first = max(each.firstOrdinal, size)  # what is below has been taken back
        since[first] = min(since.get(first, each.startTime), each.startTime)
    left = [size] if any(ordinal >= size for ordinal in listed_ordinals(last)) else unknown
    if left:
        since.setdefault(min(left), status_time(now))
    return [Drain("StatefulSet", first, since[first]) for first in sorted(since)]


def _live_replicas(owned: Mapping[Workload, WorkloadRecord], pods: Iterable[PodRecord]) -> int:
    """Count the pods that a StatefulSet has, or had before it was deleted and left its pods behind."""
    if (live := owned.get("StatefulSet")) is not None:
        return live.replicas
    return 1 + max((pod.ordinal for pod in pods), default=-1)


def _replicas(size: int, live: int, last: Status, drained: Sequence[Drain], unknown: Collection[int]) -> int:
    """Count the pods that a StatefulSet is to have: what is yet to leave the list by the status stays."""
    written = drains_of_stateful_set(last)
    drained_from = min((each.firstOrdinal for each in written if each in drained), default=live)
    kept = [size, *(ordinal + 1 for ordinal in (*listed_ordinals(last), *unknown))]
    if any(each.firstOrdinal < drained_from for each in written if each not in drained):
        kept.append(drained_from)
    return min(max(kept), max(live, size))
