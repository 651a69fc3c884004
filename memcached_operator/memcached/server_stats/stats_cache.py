"""Cache of each server's last statistics, and their verdict; pure but for the dictionary that holds it.

Of an answer the figures that are shown are kept, packed, as there may be thousands of servers.

A server is judged over several tries, so that one that was lost makes no noise: it does not answer after two failures
in a row, and has connections again after two answers. A container that was started again is judged anew.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from math import nan
from struct import Struct, pack
from typing import Final, NamedTuple, Self

import msgspec

from memcached_operator.memcached.observed.pods import PodRecord
from memcached_operator.memcached.server_stats.certificates import Certificate, Shown
from memcached_operator.memcached.server_stats.disks import GOOD, Disk, disk
from memcached_operator.memcached.server_stats.server_connection import SATURATED, ErrorKind, Failure
from operator_runtime import shared

_COMMANDS: Final = ("get", "delete", "incr", "decr", "cas", "touch")
FIGURES: Final = (
    *("uptime", "time", "rusage_user", "rusage_system"),
    *("max_connections", "curr_connections", "total_connections", "rejected_connections", "reserved_fds"),
    *("conn_yields", "listen_disabled_num", "accepting_conns"),
    *("cmd_set", "cmd_flush", "cas_badval"),
    *(f"{command}_{how}" for command in _COMMANDS for how in ("hits", "misses")),
    *("bytes_read", "bytes_written", "bytes", "limit_maxbytes", "curr_items", "total_items"),
    *("evictions", "reclaimed", "store_too_large", "store_no_memory", "direct_reclaims"),
    *("lru_crawler_starts", "crawler_reclaimed", "crawler_items_checked"),
    *("moves_to_cold", "moves_to_warm", "moves_within_lru"),
)
"""Names as `stats` has them, in the order in which they are kept."""
EXTSTORE: Final = (
    *(
        f"extstore_{name}"
        for name in (
            *("compact_lost", "compact_rescues", "compact_skipped"),
            *("page_allocs", "page_evictions", "page_reclaims", "pages_free", "pages_used"),
            *("objects_evicted", "objects_read", "objects_written", "objects_used"),
            *("bytes_evicted", "bytes_written", "bytes_read", "bytes_used", "bytes_fragmented"),
            *("limit_maxbytes", "io_queue"),
        )
    ),
    *(f"{name}_extstore" for name in ("get", "get_oom", "recache_from", "miss_from", "badcrc_from")),
)
"""Names that a server with storage on disk adds."""

BY_CLASS: Final = ("evicted", "outofmemory", "evicted_unfetched", "evicted_time", "age", "mem_requested", "number")
"""Names as `stats items` has them of each size class."""


class SizeClass(NamedTuple):
    """The figures of a size class, in the order of `BY_CLASS`; NaN where the server does not give one.

    Attributes:
        number: of the class.
        evicted_unfetched: of the evicted items, those that no client ever fetched.
        evicted_time: for how many seconds the last of them had been idle.
        age: for how many seconds the item has been idle that is next.
        mem_requested: bytes of its items.
        items: how many there are.
    """

    number: int
    evicted: float
    outofmemory: float
    evicted_unfetched: float
    evicted_time: float
    age: float
    mem_requested: float
    items: float


_PLACE: Final = {name: place for place, name in enumerate((*FIGURES, *EXTSTORE))}
_BASIC: Final = tuple(name.encode() for name in FIGURES)
_ALL: Final = tuple(name.encode() for name in (*FIGURES, *EXTSTORE))
_NUMBER: Final = Struct("d")
_CLASS: Final = Struct(f"<B{len(BY_CLASS)}d")
# memcached has at most so many (MAX_NUMBER_OF_SLAB_CLASSES).
_CLASSES: Final = tuple(
    (number, tuple(f"items:{number}:{name}".encode() for name in BY_CLASS)) for number in range(1, 64)
)
# As memcached writes them: whole ones of 64 bits, and seconds with a fraction. Python takes more for numbers, such as
# inf, and raises ValueError for an integer of 4,301 digits.
WHOLE: Final = re.compile(rb"[0-9]{1,20}")
_FIGURE: Final = re.compile(rb"[0-9]{1,20}(\.[0-9]{1,9})?")
# It goes into the status and becomes a label, and a server can send anything.
_VERSION: Final = re.compile(rb"[0-9A-Za-z][0-9A-Za-z.+~_-]{0,63}")


class Answer(msgspec.Struct, frozen=True, gc=False):
    """Answer of a server with its statistics.

    Attributes:
        version: its release, "" where it reports none that can be shown.
        packed: the figures, see `number`.
        classes: the figures of each size class that has had an item, see `by_class`.
    """

    version: str
    packed: bytes
    classes: bytes = b""

    @classmethod
    def of(cls, stats: Mapping[bytes, bytes], items: Mapping[bytes, bytes] | None = None) -> Self:
        """Read the lines of `stats`, and of `stats items` where there are some."""
        version = stats.get(b"version", b"")
        text = shared(version.decode("ascii")) if _VERSION.fullmatch(version) else ""
        names = _ALL if b"extstore_limit_maxbytes" in stats else _BASIC
        figures = pack(f"{len(names)}d", *[_number(stats.get(name)) for name in names])
        held = items or {}
        classes = [
            _CLASS.pack(slab, *map(_number, map(held.get, names))) for slab, names in _CLASSES if names[0] in held
        ]
        return cls(text, figures, b"".join(classes))

    @property
    def has_extstore(self) -> bool:
        """Report whether it has the figures of `EXTSTORE`."""
        return len(self.packed) > len(FIGURES) * _NUMBER.size

    def number(self, name: str) -> float:
        """The figure of that name of `FIGURES` or `EXTSTORE`, NaN where the server does not give it."""
        place = _PLACE[name] * _NUMBER.size
        if place >= len(self.packed):
            return nan
        value: float = _NUMBER.unpack_from(self.packed, place)[0]
        return value

    def by_class(self, name: str) -> Iterator[tuple[int, float]]:
        """The figure of that name of `BY_CLASS` of each size class."""
        place = BY_CLASS.index(name) + 1
        return ((each[0], each[place]) for each in _CLASS.iter_unpack(self.classes))

    def size_classes(self) -> Iterator[SizeClass]:
        """The figures of each size class."""
        return map(SizeClass._make, _CLASS.iter_unpack(self.classes))

    @property
    def class_count(self) -> int:
        """Number of size classes with figures."""
        return len(self.classes) // _CLASS.size


def _number(text: bytes | None) -> float:
    return float(text) if text is not None and _FIGURE.fullmatch(text) else nan


_FAILURES: Final = 2
_CALM: Final = 2
# -c counts file descriptors, of which memcached has so many itself, besides those that it reserves for its threads.
# Measured of 1.6.45: with 1, 4 and 8 threads it takes -c less 13, 28 and 48 connections.
_OWN_DESCRIPTORS: Final = 8
_ANSWERS_SOMEHOW: Final = (ErrorKind.SATURATED, ErrorKind.DENIED)


class Verdict(Enum):
    """Verdict on a server's answers."""

    UNKNOWN = "there is too little data"
    ANSWERING = "it answers"
    FAILING = "it does not answer"
    EXHAUSTED = "it turns connections away"
    OUT_OF_REACH = "no server can be connected to"
    DENIED = "it requires credentials that the operator lacks"


class Server(msgspec.Struct, frozen=True, gc=False):
    """State of a server since its container was started.

    Attributes:
        restarts: how often the container had been started again by then.
        up: the last try had an answer.
        why: of a verdict that is not good, in words that stay the same from try to try.
        answer: the last one, None before the first.
        in_a_row: how many tries ended as the last one, good or bad; an answer of a full server is neither.
        health: report of the last try if it had no answer.
        shown: the certificate that it showed last, None where it never showed one.
        outdated_certificate: its Secret has another certificate, which only a new server would show.
        disk: what is made of its disk, which is good where it has none.
    """

    restarts: int
    up: bool
    verdict: Verdict = Verdict.UNKNOWN
    why: str = ""
    answer: Answer | None = None
    in_a_row: int = 1
    health: str = ""
    shown: Shown | None = None
    outdated_certificate: bool = False
    disk: Disk = GOOD

    @property
    def version(self) -> str:
        """Its release, "" where that is not known."""
        return self.answer.version if self.answer else ""


class ServerHealth(NamedTuple):
    """Health of a server that was queried, or will be."""

    pod: str
    verdict: Verdict = Verdict.UNKNOWN
    why: str = ""
    version: str = ""
    shown: Shown | None = None
    disk: str = ""


def health(before: Server | None, said: Answer | Failure, *, restarts: int, reached: bool) -> Server:
    """Judge a server by another try.

    Args:
        before: what was known, None where the container was started since.
        said: how the try ended.
        reached: any server ever answered this process, so that one that cannot be connected to is at fault itself.
    """
    up = isinstance(said, Answer)
    known = before or Server(restarts, up, in_a_row=0)
    in_a_row = known.in_a_row + 1 if known.up == up else 1
    if isinstance(said, Answer):
        of_disk = disk(known.disk, known.answer, said)
        if _is_full(known.answer, said):
            return Server(restarts, up, Verdict.EXHAUSTED, SATURATED.why, said, in_a_row=0, disk=of_disk)
        calming = known.verdict is Verdict.EXHAUSTED and in_a_row < _CALM
        verdict = Verdict.EXHAUSTED if calming else Verdict.ANSWERING
        return Server(restarts, up, verdict, known.why if calming else "", said, in_a_row, disk=of_disk)
    if said.kind is ErrorKind.SATURATED:
        verdict = Verdict.EXHAUSTED
    elif said.kind is ErrorKind.DENIED and (known.verdict is Verdict.UNKNOWN or in_a_row >= _FAILURES):
        verdict = Verdict.DENIED
    elif in_a_row < _FAILURES:
        verdict = known.verdict
    elif said.kind is ErrorKind.UNREACHABLE and not reached:
        verdict = Verdict.OUT_OF_REACH
    else:
        verdict = Verdict.FAILING
    # A reason that changes with each try would be a status to write each time.
    news = verdict is not known.verdict or said.why == known.health
    why = said.why if news else known.why
    return Server(restarts, up, verdict, why, known.answer, in_a_row, said.why, disk=known.disk)


def _is_full(before: Answer | None, now: Answer) -> bool:
    """Report whether a server that answered us rejects others: we had the place that another client had just left."""
    if before is None or not now.number("rejected_connections") > before.number("rejected_connections"):
        return False
    taken = now.number("curr_connections") + now.number("reserved_fds") + _OWN_DESCRIPTORS
    return taken >= now.number("max_connections")


class StatsCache:
    """States of the pods' servers, by the pod's uid.

    Attributes:
        reached: any server ever answered this process.
        missing: ready pods that a reconcile read and that were not queried yet, by uid.
    """

    def __init__(self) -> None:
        self._servers: dict[str, Server] = {}
        self.reached = False
        self.missing: dict[str, PodRecord] = {}

    def __len__(self) -> int:
        return len(self._servers)

    def of(self, pod: PodRecord) -> Server | None:
        """Return the state of a pod's server since its container was started."""
        server = self._servers.get(pod.uid)
        return server if server is not None and server.restarts == pod.restarts else None

    def hear(
        self,
        pod: PodRecord,
        said: Answer | Failure,
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
        self.reached = self.reached or isinstance(said, Answer) or said.kind in _ANSWERS_SOMEHOW
        server = health(before, said, restarts=pod.restarts, reached=self.reached)
        shown = before.shown if before is not None else None
        if certificate is not None and (shown is None or certificate != shown.certificate):
            shown = Shown(certificate, now_s)
        if shown is not None:
            outdated_certificate = due is not None and shown.certificate.fingerprint != due
            server = msgspec.structs.replace(server, shown=shown, outdated_certificate=outdated_certificate)
        self._servers[pod.uid] = server
        self.missing.pop(pod.uid, None)
        return _told(server) != _told(before)

    def look(self, pods: Iterable[PodRecord]) -> list[ServerHealth]:
        """Return the health of those that can be queried, in the order of their names; the others are queried soon."""
        found = []
        for pod in sorted((each for each in pods if is_asked(each)), key=lambda each: each.name):
            server = self.of(pod)
            if server is None:
                self.missing[pod.uid] = pod
                found.append(ServerHealth(pod.name))
            else:
                of = (server.verdict, server.why, server.version, server.shown, server.disk.why)
                found.append(ServerHealth(pod.name, *of))
        return found

    def out_of_reach(self, pod: PodRecord) -> str:
        """Explain why this process can connect to no server, as to this pod's; "" where it can, or is yet to try."""
        server = self.of(pod)
        return server.why if server and server.verdict is Verdict.OUT_OF_REACH and not self.reached else ""

    def with_outdated_certificate(self, pods: Iterable[PodRecord]) -> frozenset[str]:
        """The uids of those that only a new server in their place would bring to the certificate of their Secret."""
        servers = ((pod.uid, self.of(pod)) for pod in pods)
        return frozenset(uid for uid, server in servers if server is not None and server.outdated_certificate)

    def keep(self, uids: Collection[str]) -> None:
        """Forget all pods but these."""
        for gone in self._servers.keys() - uids:
            del self._servers[gone]


def _told(server: Server | None) -> tuple[object, ...]:
    if server is None:
        return Verdict.UNKNOWN, "", "", None, False, None
    return server.verdict, server.why, server.version, server.shown, server.outdated_certificate, server.disk.problem


def is_asked(pod: PodRecord) -> bool:
    """Report whether a pod's server is to be queried: only ready servers are polled."""
    return pod.active and pod.ready and bool(pod.address)
