"""Cache of each server's last statistics, and their verdict; pure but for the dictionary that holds it.

A server is judged over several tries, so that one that was lost makes no noise: it does not answer after two failures
in a row, and has connections again after two answers. A container that was started again is judged anew.

So is its disk: memcached counts what goes wrong there and goes on, so that a client sees misses alone. What cannot be
read, or is not what was written, is one; and a value that it has no time to move to the disk is evicted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum
from typing import Final, NamedTuple

import msgspec

from memcached_operator.servers.certificates import Certificate, Shown
from memcached_operator.servers.queried_pod import QueriedPod
from memcached_operator.servers.server_connection import SATURATED, ErrorKind, Failure
from memcached_operator.servers.stats_answer import StatsAnswer

QUEUE: Final = 50
"""Requests that wait for the disk: with a fast one there are none at most times, and each takes its time for all before
it."""
EVICTIONS_PER_S: Final = 1.0
ROOM: Final = 0.3
"""Share of a disk's pages that is free while it has room: memcached itself keeps up to a quarter free."""
# Answers in a row that show a problem before one is reported, and without it before the report is taken back; one comes
# each interval.
_REPORTED_AFTER: Final = 3
_OVER_AFTER: Final = 20


class DiskProblem(Enum):
    """Problem of a disk, the worst first; in words for people."""

    DAMAGED = "values that it reads from its disk are damaged"
    SLOW = f"more than {QUEUE} requests wait for its disk"
    BEHIND = "it evicts items while its disk has room, as more is stored than the disk can take"


class Disk(msgspec.Struct, frozen=True, gc=False):
    """State of a server's disk.

    Attributes:
        problem: what is reported of it, None for nothing.
        bad: how many answers in a row showed a problem, be it another each time.
        without: how many answers in a row did not show the one that is reported.
    """

    problem: DiskProblem | None = None
    bad: int = 0
    without: int = 0

    @property
    def why(self) -> str:
        return self.problem.value if self.problem is not None else ""


GOOD: Final = Disk()


def disk(known: Disk, before: StatsAnswer | None, now: StatsAnswer) -> Disk:
    """Judge a server's disk by another answer.

    Args:
        before: the answer before it since the server was started, None for none.
    """
    if not now.has_extstore or before is None:
        return GOOD
    seen = _seen(before, now)
    bad = min(known.bad + 1, _REPORTED_AFTER) if seen is not None else 0
    without = min(known.without + 1, _OVER_AFTER) if seen is not known.problem else 0
    # One damaged value is one too many; a burst of requests, or of values, is not.
    lasting = seen if seen is DiskProblem.DAMAGED or bad >= _REPORTED_AFTER else None
    if without >= _OVER_AFTER or _is_worse(lasting, known.problem):
        return Disk(lasting, bad)
    return Disk(known.problem, bad, without)


def _is_worse(one: DiskProblem | None, other: DiskProblem | None) -> bool:
    worst_first = (*DiskProblem, None)
    return worst_first.index(one) < worst_first.index(other)


def _seen(before: StatsAnswer, now: StatsAnswer) -> DiskProblem | None:
    def more(name: str) -> float:
        return now.number(name) - before.number(name)

    if more("badcrc_from_extstore") > 0:
        return DiskProblem.DAMAGED
    if now.number("extstore_io_queue") > QUEUE:
        return DiskProblem.SLOW
    free, used = now.number("extstore_pages_free"), now.number("extstore_pages_used")
    evicts = more("evictions") > EVICTIONS_PER_S * max(more("time"), 1.0)
    return DiskProblem.BEHIND if evicts and free > ROOM * (free + used) else None


_FAILURES: Final = 2
_CALM: Final = 2
# -c counts file descriptors, of which memcached has so many itself, besides those that it reserves for its threads.
# Measured of 1.6.45: with 1, 4 and 8 threads it takes -c less 13, 28 and 48 connections.
_OWN_DESCRIPTORS: Final = 8
_ANSWERS_SOMEHOW: Final = (ErrorKind.SATURATED, ErrorKind.DENIED)


class AnswerVerdict(Enum):
    UNKNOWN = "there is too little data"
    ANSWERING = "it answers"
    FAILING = "it does not answer"
    EXHAUSTED = "it turns connections away"
    OUT_OF_REACH = "no server can be connected to"
    DENIED = "it requires credentials that the operator lacks"


class QueriedServer(msgspec.Struct, frozen=True, gc=False):
    """State of a server since its container was started.

    Attributes:
        restarts: how often the container had been started again by then.
        why: of a verdict that is not good, in words that stay the same from try to try.
        answer: the last one, None before the first.
        in_a_row: how many tries ended as the last one, good or bad; an answer of a full server is neither.
        health: report of the last try if it had no answer.
        shown: the certificate that it showed last, None where it never showed one.
        outdated_certificate: its Secret has another certificate, which only a new server would show.
    """

    restarts: int
    up: bool
    verdict: AnswerVerdict = AnswerVerdict.UNKNOWN
    why: str = ""
    answer: StatsAnswer | None = None
    in_a_row: int = 1
    health: str = ""
    shown: Shown | None = None
    outdated_certificate: bool = False
    disk: Disk = GOOD

    @property
    def version(self) -> str:
        """Release of the server, "" where that is not known."""
        return self.answer.version if self.answer else ""


class ServerHealth(NamedTuple):
    """Health of a server that was queried, or will be."""

    pod: str
    verdict: AnswerVerdict = AnswerVerdict.UNKNOWN
    why: str = ""
    version: str = ""
    shown: Shown | None = None
    disk: str = ""


def health(
    before: QueriedServer | None, result: StatsAnswer | Failure, *, restarts: int, reached: bool
) -> QueriedServer:
    """Judge a server by another try.

    Args:
        reached: any server ever answered this process, so that one that cannot be connected to is at fault itself.
    """
    up = isinstance(result, StatsAnswer)
    known = before or QueriedServer(restarts, up, in_a_row=0)
    in_a_row = known.in_a_row + 1 if known.up == up else 1
    if isinstance(result, StatsAnswer):
        of_disk = disk(known.disk, known.answer, result)
        if _is_full(known.answer, result):
            return QueriedServer(restarts, up, AnswerVerdict.EXHAUSTED, SATURATED.why, result, in_a_row=0, disk=of_disk)
        calming = known.verdict is AnswerVerdict.EXHAUSTED and in_a_row < _CALM
        verdict = AnswerVerdict.EXHAUSTED if calming else AnswerVerdict.ANSWERING
        return QueriedServer(restarts, up, verdict, known.why if calming else "", result, in_a_row, disk=of_disk)
    if result.kind is ErrorKind.SATURATED:
        verdict = AnswerVerdict.EXHAUSTED
    elif result.kind is ErrorKind.DENIED and (known.verdict is AnswerVerdict.UNKNOWN or in_a_row >= _FAILURES):
        verdict = AnswerVerdict.DENIED
    elif in_a_row < _FAILURES:
        verdict = known.verdict
    elif result.kind is ErrorKind.UNREACHABLE and not reached:
        verdict = AnswerVerdict.OUT_OF_REACH
    else:
        verdict = AnswerVerdict.FAILING
    # A reason that changes with each try would be a status to write each time.
    news = verdict is not known.verdict or result.why == known.health
    why = result.why if news else known.why
    return QueriedServer(restarts, up, verdict, why, known.answer, in_a_row, result.why, disk=known.disk)


def _is_full(before: StatsAnswer | None, now: StatsAnswer) -> bool:
    """Report whether a server that answered us rejects others: we had the place that another client had just left."""
    if before is None or not now.number("rejected_connections") > before.number("rejected_connections"):
        return False
    taken = now.number("curr_connections") + now.number("reserved_fds") + _OWN_DESCRIPTORS
    return taken >= now.number("max_connections")


class StatsCache:
    """States of the pods' servers, by the pod's uid.

    Attributes:
        reached: any server ever answered this process.
        missing: ready pods that are queried before others, as those that a reconcile read and that were not queried
            yet, by uid.
    """

    def __init__(self) -> None:
        self._servers: dict[str, QueriedServer] = {}
        self.reached = False
        self.missing: dict[str, QueriedPod] = {}

    def __len__(self) -> int:
        return len(self._servers)

    def of(self, pod: QueriedPod) -> QueriedServer | None:
        """Return the state of a pod's server since its container was started."""
        server = self._servers.get(pod.uid)
        return server if server is not None and server.restarts == pod.restarts else None

    def query_soon(self, pod: QueriedPod) -> None:
        """Have a server queried again soon, if this process queries it."""
        if pod.uid in self._servers:
            self.missing[pod.uid] = pod

    def record(
        self,
        pod: QueriedPod,
        result: StatsAnswer | Failure,
        certificate: Certificate | None = None,
        now_s: float = 0.0,
        *,
        due: str | None = None,
    ) -> bool:
        """Take the result of a try; report whether the server is judged otherwise since.

        Args:
            now_s: since when it shows that, if it is another than before, in seconds since 1970.
            due: fingerprint of the one that only a new server would show, None where that is not known.
        """
        before = self.of(pod)
        self.reached = self.reached or isinstance(result, StatsAnswer) or result.kind in _ANSWERS_SOMEHOW
        server = health(before, result, restarts=pod.restarts, reached=self.reached)
        shown = before.shown if before is not None else None
        if certificate is not None and (shown is None or certificate != shown.certificate):
            shown = Shown(certificate, now_s)
        if shown is not None:
            outdated_certificate = due is not None and shown.certificate.fingerprint != due
            server = msgspec.structs.replace(server, shown=shown, outdated_certificate=outdated_certificate)
        self._servers[pod.uid] = server
        self.missing.pop(pod.uid, None)
        return _reported(server) != _reported(before)

    def read(self, pods: Iterable[QueriedPod]) -> list[ServerHealth]:
        """Return the health of those that can be queried, in the order of their names; the others are queried soon."""
        found = []
        for pod in sorted((each for each in pods if is_queried(each)), key=lambda each: each.name):
            server = self.of(pod)
            if server is None:
                self.missing[pod.uid] = pod
                found.append(ServerHealth(pod.name))
            else:
                of = (server.verdict, server.why, server.version, server.shown, server.disk.why)
                found.append(ServerHealth(pod.name, *of))
        return found

    def out_of_reach(self, pod: QueriedPod) -> str:
        """Explain why this process can connect to no server, as to this pod's; "" where it can, or is yet to try."""
        server = self.of(pod)
        return server.why if server and server.verdict is AnswerVerdict.OUT_OF_REACH and not self.reached else ""

    def with_outdated_certificate(self, pods: Iterable[QueriedPod]) -> frozenset[str]:
        """The uids of those that only a new server in their place would bring to the certificate of their Secret."""
        servers = ((pod.uid, self.of(pod)) for pod in pods)
        return frozenset(uid for uid, server in servers if server is not None and server.outdated_certificate)

    def keep(self, uids: Collection[str]) -> None:
        """Forget all pods but these."""
        for gone in self._servers.keys() - uids:
            del self._servers[gone]


def _reported(server: QueriedServer | None) -> tuple[object, ...]:
    server = server or QueriedServer(0, up=False)
    return server.verdict, server.why, server.version, server.shown, server.outdated_certificate, server.disk.problem


def is_queried(pod: QueriedPod) -> bool:
    """Report whether a pod's server is to be queried: only ready servers are polled."""
    return pod.active and pod.ready and bool(pod.address)
