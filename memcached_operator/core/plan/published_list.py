"""Pure: the list of servers that is published for clients, in its order.

The list is a promise to clients that hash keys to servers: a place in it changes only with the specification.

- Of a StatefulSet the list has names, in the order of ordinals. A server is listed once it was ready for the first
  time, and keeps its place from then on.
- Of a Deployment it has the addresses of the ready pods.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from memcached_operator.api.status import Drain, Status
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
