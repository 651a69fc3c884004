"""Pure: which servers the list has, in which order, and when those that left the list may go.

The list is a promise to clients that hash keys to servers: a place in it changes only with the specification. What is
decided here follows from the caches and from the status as it was last written, so that a new leader goes on where the
last one was.

- Of a StatefulSet the list has names, in the order of ordinals. A server is listed once it was ready for the first
  time, and keeps its place from then on. When the size shrinks, servers leave the list first; they are removed
  `spec.drainSeconds` after that was written, from the top.
- Of a Deployment it has the addresses of the ready pods.
- While a hand-over is under way (`handover.steps`), the list is held, or servers that left it stay.
- Where `spec.workload` changes, the new workload is made beside the old one, which stays listed until all servers of
  the new one are ready; then it drains as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from memcached_operator.api.names import Workload
from memcached_operator.api.status import Drain, Status
from memcached_operator.memcached.labels import PORT, server
from memcached_operator.memcached.observed.pods import NO_ORDINAL, PodRecord
from memcached_operator.memcached.observed.workloads import WorkloadRecord
from memcached_operator.memcached.spec import Spec
from operator_runtime import ObjectKey, rfc3339

OTHER: Final[Mapping[Workload, Workload]] = {"Deployment": "StatefulSet", "StatefulSet": "Deployment"}
"""The workload that a Memcached moves from, by the one that it moves to."""
_ORDINAL: Final = re.compile(r"[0-9]{1,10}")  # others may write the status, too


class Servers(NamedTuple):
    """What is published of the servers.

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
        """Whether clients know some of the servers by names."""
        return "StatefulSet" in (self.workload, *(each.workload for each in self.draining))


class ListPolicy(NamedTuple):
    """What a hand-over asks of the list of a StatefulSet.

    Attributes:
        held: it stays as the status has it.
        keeps_all: no server is removed, however long it has drained: others have it as a peer.
    """

    held: bool = False
    keeps_all: bool = False


FREE: Final = ListPolicy()


class Plan(NamedTuple):
    """The desired workloads of a Memcached, and the list that is published.

    Attributes:
        target: the kind of workload that the specification asks for.
        replicas: how many pods each workload is to have that is to be kept.
        removed: the workload that is to be deleted now, None for none.
        drained: servers are removed now that the user no longer asks for, and that have drained.
        servers: the list that is published.
        next_s: seconds until servers have drained, None where none do.
    """

    target: Workload
    replicas: Mapping[Workload, int]
    removed: Workload | None
    drained: bool
    servers: Servers
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
    """What follows from the specification and from what there is.

    Args:
        last: the status as it was last written.
        now: the time, with its zone.
        policy: what a hand-over asks of the list.
    """
    target: Workload = spec.workload
    last = _without_future_times(last, now)
    listed = _listed_workload(spec, last, owned, pods)
    written = last.draining or ()
    drained_now = [each for each in written if _left_s(each, spec, now) == 0.0]
    over = [] if policy.keeps_all else drained_now
    size = 1 + max(listed_ordinals(last), default=-1) if policy.held else spec.size
    replicas: dict[Workload, int] = {target: spec.size, listed: spec.size}
    draining: list[Drain] = []
    removed, drained = None, False
    if "StatefulSet" in replicas:
        live = _live_replicas(owned, pods)
        kept = _replicas(spec.size, live, last, over)
        replicas["StatefulSet"] = kept = max(kept, live) if policy.keeps_all else kept
        drained = kept < live and any(each.workload == "StatefulSet" for each in over)
        if listed == "StatefulSet":
            draining += [each for each in _leaving(size, last, now) if each.firstOrdinal < kept]
    if listed != target:
        # It was moved from, and is moved to again: should the user think again once more, it has drained so far.
        draining += [each for each in written if each.workload == target and each not in over]
    elif (other := owned.get(OTHER[target])) is not None and not other.deleting:
        drain = next((each for each in written if each.workload == other.kind and each.firstOrdinal == 0), None)
        if drain is None and last.workload != target:
            drain = Drain(other.kind, 0, _upwards(now))
        elif drain is None or drain in over:
            removed = other.kind  # one without an entry was never listed
        draining += [drain] if drain is not None else []
    names = last.serverList or () if policy.held else _list(key, spec.size, listed, last, pods)
    servers = Servers(listed, names, tuple(draining))
    # What has drained is acted upon, in this look or when the status has it.
    next_s = min((_left_s(each, spec, now) for each in draining if each not in drained_now), default=None)
    return Plan(target, replicas, removed, drained, servers, next_s)


def as_published(last: Status, pods: Sequence[PodRecord]) -> Servers | None:
    """What stays published while the specification cannot be read; None where nothing was."""
    match last.workload:
        case "Deployment":
            return Servers("Deployment", _addresses(pods), last.draining or ())
        case "StatefulSet":
            return Servers("StatefulSet", last.serverList or (), last.draining or ())
        case _:
            return None


def as_ending(last: Status, owned: Mapping[Workload, WorkloadRecord], pods: Sequence[PodRecord]) -> Servers | None:
    """What stays published while the Memcached is being deleted; None where nothing was.

    Where a StatefulSet is there, it makes a lost server anew under its name, which stays listed. Where it goes or is
    gone, no server comes back.
    """
    published, workload = as_published(last, pods), owned.get("StatefulSet")
    if published is None or published.workload != "StatefulSet" or (workload is not None and not workload.deleting):
        return published
    left = {pod.name for pod in pods}
    return published._replace(listed=tuple(each for each in published.listed if each.partition(".")[0] in left))


def _listed_workload(
    spec: Spec, last: Status, owned: Mapping[Workload, WorkloadRecord], pods: Iterable[PodRecord]
) -> Workload:
    target: Workload = spec.workload
    other = OTHER[target]
    moves = last.workload == other or (last.workload is None and other in owned)
    return other if moves and not _is_all_ready(target, spec.size, owned, pods) else target


def _is_all_ready(
    kind: Workload, size: int, owned: Mapping[Workload, WorkloadRecord], pods: Iterable[PodRecord]
) -> bool:
    """Whether a workload has so many servers that the list can go over to it."""
    if (workload := owned.get(kind)) is None or workload.deleting:
        return False
    if kind == "Deployment":
        return len(_addresses(pods)) >= size
    return sum(pod.ready for pod in pods if NO_ORDINAL < pod.ordinal < size) == size


def _list(key: ObjectKey, size: int, listed: Workload, last: Status, pods: Sequence[PodRecord]) -> tuple[str, ...]:
    if listed == "Deployment":
        return _addresses(pods)
    there = {pod.ordinal: pod.ready for pod in pods if pod.workload == "StatefulSet"}
    # Taken back, as it was not removed yet. It was ready once, or it would not have been on the list that it left.
    first = min((each.firstOrdinal for each in _of_stateful_set(last)), default=size)
    ordinals = listed_ordinals(last) | {each for each, ready in there.items() if ready or each >= first}
    return tuple(server(key.name, key.namespace, ordinal) for ordinal in sorted(ordinals) if ordinal < size)


def _addresses(pods: Iterable[PodRecord]) -> tuple[str, ...]:
    ready = (pod.address for pod in pods if pod.workload == "Deployment" and pod.ready and pod.address)
    return tuple(sorted(f"[{each}]:{PORT}" if ":" in each else f"{each}:{PORT}" for each in ready))


def listed_ordinals(last: Status) -> set[int]:
    """Of the servers of a StatefulSet that the last list had."""
    if last.workload != "StatefulSet":
        return set()
    numbers = (each.partition(".")[0].rpartition("-")[2] for each in last.serverList or ())
    return {int(each) for each in numbers if _ORDINAL.fullmatch(each)}


def _of_stateful_set(last: Status) -> list[Drain]:
    return [each for each in last.draining or () if each.workload == "StatefulSet"]


def _leaving(size: int, last: Status, now: datetime) -> list[Drain]:
    """What leaves the list of a StatefulSet, and has left it: from which ordinal on, since when."""
    since: dict[int, str] = {}
    for each in _of_stateful_set(last):
        first = max(each.firstOrdinal, size)  # what is below has been taken back
        since[first] = min(since.get(first, each.startTime), each.startTime)
    if any(ordinal >= size for ordinal in listed_ordinals(last)):
        since.setdefault(size, _upwards(now))
    return [Drain("StatefulSet", first, since[first]) for first in sorted(since)]


def _live_replicas(owned: Mapping[Workload, WorkloadRecord], pods: Iterable[PodRecord]) -> int:
    """How many pods a StatefulSet has, or had before it was deleted and left its pods behind."""
    if (live := owned.get("StatefulSet")) is not None:
        return live.replicas
    return 1 + max((pod.ordinal for pod in pods), default=-1)


def _replicas(size: int, live: int, last: Status, over: Sequence[Drain]) -> int:
    """How many pods a StatefulSet is to have now: from the top, without those that have drained or were never listed.

    The status as it was written decides: what is yet to leave the list stays.

    Args:
        over: the entries of that status whose servers have drained.
    """
    written = _of_stateful_set(last)
    drained_from = min((each.firstOrdinal for each in written if each in over), default=live)
    kept = [size, *(ordinal + 1 for ordinal in listed_ordinals(last))]
    if any(each.firstOrdinal < drained_from for each in written if each not in over):
        kept.append(drained_from)
    return min(max(kept), max(live, size))


def _without_future_times(last: Status, now: datetime) -> Status:
    """The status without times that are yet to come, as of a leader whose clock was ahead: else servers would drain for
    as long as it was."""
    if not last.draining:
        return last
    latest = _upwards(now)
    draining = tuple(_until(latest, each) for each in last.draining)
    return last if draining == last.draining else msgspec.structs.replace(last, draining=draining)


def _until(latest: str, drain: Drain) -> Drain:
    try:
        ahead = datetime.fromisoformat(drain.startTime) > datetime.fromisoformat(latest)
    except (ValueError, TypeError):  # written by another client
        return drain
    return msgspec.structs.replace(drain, startTime=latest) if ahead else drain


def drained_at(drain: Drain, drain_s: int) -> datetime | None:
    """When these servers have drained; None where another client wrote since when they do, and not as a time."""
    try:
        since = datetime.fromisoformat(drain.startTime)
        return since.astimezone(UTC) + timedelta(seconds=drain_s) if since.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _left_s(drain: Drain, spec: Spec, now: datetime) -> float:
    """Seconds until these servers have drained."""
    at = drained_at(drain, spec.drainSeconds)
    return max(0.0, (at - now).total_seconds()) if at is not None else 0.0


def _upwards(now: datetime) -> str:
    """The time in whole seconds, which is not before `now`."""
    return rfc3339(now + timedelta(microseconds=999_999))
