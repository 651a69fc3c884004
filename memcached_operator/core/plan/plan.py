"""Pure: the list of servers that is published for clients, in its order, and the end of servers that left it.

What is decided here follows from the caches and from the status as it was last written, so that a new leader goes on
where the last one was. While a hand-over is under way (`handover.steps`), the list is held, or servers that left it
stay. The list is a promise to clients that hash keys to servers: a place in it changes only with the specification.

- Of a StatefulSet the list has names, in the order of ordinals. A server is listed once it was ready for the first
  time, and keeps its place from then on.
- Of a Deployment it has the addresses of the ready pods.

When the size of a StatefulSet shrinks, servers leave the list first. They are removed `spec.drainPeriodSeconds` after
that was written into the status, from the top.

Where `spec.workload` changes, the new workload is created next to the old one, which stays listed until all servers of
the new one are ready. Then the old one drains as a whole, and is deleted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from memcached_operator.api.status import Drain, Status
from memcached_operator.api.status_times import bounded_time, parsed_time, status_time
from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.objects.labels import PORT, server
from memcached_operator.core.observed.pods import NO_ORDINAL, PodRecord
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
    return msgspec.structs.replace(last, draining=draining)


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


OTHER: Final[Mapping[Workload, Workload]] = {"Deployment": "StatefulSet", "StatefulSet": "Deployment"}
"""The workload that a Memcached moves from, by the one that it moves to."""


class Migration(NamedTuple):
    """Effect of a migration on the workloads.

    Attributes:
        draining: servers of a workload that drain as a whole.
        removed: the workload that is to be deleted now, None for none.
    """

    draining: tuple[Drain, ...] = ()
    removed: Workload | None = None


def listed_workload(
    spec: Spec, last: Status, owned: Mapping[Workload, WorkloadRecord], pods: Iterable[PodRecord]
) -> Workload:
    """The workload whose servers clients are given: the specified one, once it has all its servers."""
    target: Workload = spec.workload
    other = OTHER[target]
    moves = last.workload == other or (last.workload is None and other in owned)
    return other if moves and not _is_all_ready(target, spec.size, owned, pods) else target


def migration(
    target: Workload,
    listed: Workload,
    last: Status,
    owned: Mapping[Workload, WorkloadRecord],
    pods: Iterable[PodRecord],
    drained: Sequence[Drain],
    now: datetime,
) -> Migration:
    """Decide what a change of `spec.workload` asks for now."""
    written = last.draining or ()
    if listed != target:
        # It was moved from, and is moved to again: should the user think again once more, it has drained so far.
        return Migration(tuple(each for each in written if each.workload == target and each not in drained))
    other = owned.get(OTHER[target])
    if other is None or other.deleting:
        return Migration()
    drain = next((each for each in written if each.workload == other.kind and each.firstOrdinal == 0), None)
    if drain is None:
        # One without an entry, whose successor is listed, was never listed, or another client removed the entry.
        left = last.workload != target or any(pod.ready and pod.workload == other.kind for pod in pods)
        return Migration((Drain(other.kind, 0, status_time(now)),)) if left else Migration(removed=other.kind)
    return Migration((drain,), other.kind if drain in drained else None)


def _is_all_ready(
    kind: Workload, size: int, owned: Mapping[Workload, WorkloadRecord], pods: Iterable[PodRecord]
) -> bool:
    """Report whether a workload has so many servers that the list can go over to it."""
    if (workload := owned.get(kind)) is None or workload.deleting:
        return False
    if kind == "Deployment":
        return len(addresses(pods)) >= size
    return sum(pod.ready for pod in pods if NO_ORDINAL < pod.ordinal < size) == size


class Plan(NamedTuple):
    """The desired workloads of a Memcached, and the list that is published.

    Attributes:
        replicas: how many pods each workload is to have that is to be kept.
        removed: the workload that is to be deleted now, None for none.
        drained: servers are removed now that are no longer desired, and that have drained.
        next_s: seconds until servers have drained, None where none do.
    """

    target: Workload
    replicas: Mapping[Workload, int]
    removed: Workload | None
    drained: bool
    servers: ListedServers
    next_s: float | None


def plan(
    key: ObjectKey,
    spec: Spec,
    last: Status,
    owned: Mapping[Workload, WorkloadRecord],
    pods: Sequence[PodRecord],
    now: datetime,
    policy: ListPolicy = FREE,
) -> Plan:
    """Plan the servers by the specification and by what there is."""
    target: Workload = spec.workload
    last = without_future_times(last, now) if last.draining else last
    is_moving = OTHER[target] in owned or last.workload == OTHER[target]
    listed = listed_workload(spec, last, owned, pods) if is_moving else target
    drained = [each for each in last.draining or () if drain_left_s(each, spec.drainPeriodSeconds, now) == 0.0]
    over = () if policy.keeps_all else drained
    moved = migration(target, listed, last, owned, pods, over, now) if is_moving else Migration()
    draining, has_drained = moved.draining, False
    replicas: dict[Workload, int] = {target: spec.size, listed: spec.size}
    if "StatefulSet" in replicas:
        kept = stateful_set_servers(spec.size, last, owned, pods, over, now, policy, is_listed=listed == "StatefulSet")
        replicas["StatefulSet"], has_drained = kept.replicas, kept.has_drained
        draining = kept.draining + draining
    names = last.serverList or () if policy.is_frozen else next_list(key, spec.size, listed, last, pods)
    # What has drained is acted upon, in this reconcile or when the status has it.
    next_s = min(
        (drain_left_s(each, spec.drainPeriodSeconds, now) for each in draining if each not in drained), default=None
    )
    return Plan(target, replicas, moved.removed, has_drained, ListedServers(listed, names, draining), next_s)
