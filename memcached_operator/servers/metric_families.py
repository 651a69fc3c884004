"""The answers of servers as metrics, under the names of prometheus/memcached_exporter (pkg/exporter/exporter.go).

Dashboards and alerts that were made for it work, with the labels of a pod in the place of an exporter's target. What it
asks `stats slabs`, `stats items` and `stats settings` for is left out, but for the limit of connections, and for what
alerts use of each size class: there are up to 63 of them.

Two types differ: OpenMetrics knows no counter whose name does not end with `_total`, so that `memcached_uptime_seconds`
and `memcached_extstore_bytes_used` are gauges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import isnan
from typing import Final

from prometheus_client import Metric
from prometheus_client.samples import Sample

from memcached_operator.servers.queried_pod import QueriedPod
from memcached_operator.servers.stats_answer import COMMANDS, SHOWN, SHOWN_BY_CLASS, SHOWN_OF_DISKS, StatsAnswer
from memcached_operator.servers.stats_cache import AnswerVerdict, QueriedServer, is_queried

PATH: Final = "/metrics/servers"
_PREFIX = "memcached_"
_EXPIRY = "server_certificate_expiry_timestamp_seconds"

_Labels = dict[str, str]
_Row = tuple[_Labels, StatsAnswer]
_Value = Callable[[StatsAnswer], float]


def _stat(name: str) -> _Value:
    return lambda answer: answer.number(name)


def _sets(answer: StatsAnswer) -> float:
    """memcached counts each cas among them."""
    return answer.number("cmd_set") - sum(answer.number(f"cas_{how}") for how in ("misses", "hits", "badval"))


_BY_COMMAND: Final[Mapping[tuple[str, str], _Value]] = {
    **{(command, "hit"): _stat(f"{command}_hits") for command in COMMANDS},
    **{(command, "miss"): _stat(f"{command}_misses") for command in COMMANDS},
    ("cas", "badval"): _stat("cas_badval"),
    ("flush", "hit"): _stat("cmd_flush"),
    ("set", "hit"): _sets,
}


class _Samples:
    """Samples that are made when they are written: of thousands of servers there are too many to hold at once.

    What they are made of does not change, so that they may be written on another thread.
    """

    def __init__(self, most: int, make: Callable[[], Iterator[Sample]]) -> None:
        """`most`: how many there are at most, as a server does not give each figure."""
        self._most, self._make = most, make

    def __iter__(self) -> Iterator[Sample]:
        return self._make()

    def __len__(self) -> int:
        return self._most


def _read(name: str, rows: Sequence[_Row], value: _Value, more: _Labels | None = None) -> Iterator[Sample]:
    """Samples of what `value` reads of each answer, with further labels; NaN is what the server does not give."""
    for labels, answer in rows:
        if not isnan(number := value(answer)):
            yield Sample(name, labels | more if more else labels, number)


def _commands(name: str, rows: Sequence[_Row]) -> Iterator[Sample]:
    for (command, status), value in _BY_COMMAND.items():
        yield from _read(name, rows, value, {"command": command, "status": status})


def _by_class(name: str, rows: Sequence[_Row], stat: str) -> Iterator[Sample]:
    for labels, answer in rows:
        for each in answer.size_classes():
            if not isnan(number := getattr(each, stat)):
                yield Sample(name, {**labels, "slab": str(each.number)}, number)


def server_families(
    pods: Iterable[QueriedPod], server_of: Callable[[QueriedPod], QueriedServer | None]
) -> Iterator[Metric]:
    """The last answers of the servers that were queried; of one that gave none only that.

    Nothing is shown of those that are out of the operator's reach altogether, as they may well answer their clients.
    Of those for which it has no credentials it is shown when their certificates expire, and nothing else.

    Args:
        server_of: the last known state of a pod's server, None where none is known.
    """
    health = [
        ({"namespace": pod.namespace, "memcached": pod.memcached, "pod": pod.name}, server)
        for pod in pods
        if is_queried(pod)
        and (server := server_of(pod)) is not None
        and server.verdict is not AnswerVerdict.OUT_OF_REACH
    ]
    rows = [(labels, server.answer) for labels, server in health if server.up and server.answer is not None]
    up = [
        Sample(f"{_PREFIX}up", labels, float(server.up))
        for labels, server in health
        if server.verdict is not AnswerVerdict.DENIED
    ]
    yield _family("up", "Whether the server answered the last request for its statistics.", up)
    versions = [
        Sample(f"{_PREFIX}version", {**labels, "version": answer.version}, 1.0)
        for labels, answer in rows
        if answer.version
    ]
    yield _family("version", "The server's version; always 1.", versions)
    expiries = [
        Sample(f"{_PREFIX}{_EXPIRY}", labels, server.shown.certificate.not_after)
        for labels, server in health
        if server.shown is not None
    ]
    yield _family(_EXPIRY, "When the server's certificate expires, in seconds since 1970.", expiries)
    name = f"{_PREFIX}commands_total"
    commands = _Samples(len(rows) * len(_BY_COMMAND), partial(_commands, name, rows))
    yield _family("commands_total", "Requests by command and result.", commands)
    with_disk = [(labels, answer) for labels, answer in rows if answer.has_extstore]
    for figures, there in ((SHOWN, rows), (SHOWN_OF_DISKS, with_disk)):
        for each in figures:
            name = f"{_PREFIX}{each.name}"
            samples = _Samples(len(there), partial(_read, name, there, _stat(each.stat)))
            yield _family(each.name, each.help, samples)
    classes = sum(answer.class_count for _, answer in rows)
    for each in SHOWN_BY_CLASS:
        samples = _Samples(classes, partial(_by_class, f"{_PREFIX}{each.name}", rows, each.stat))
        yield _family(each.name, each.help, samples)


def _family(name: str, help: str, samples: Sequence[Sample] | _Samples) -> Metric:
    is_counter = name.endswith("_total")
    # prometheus-client puts the suffix back.
    family = Metric(f"{_PREFIX}{name.removesuffix('_total')}", help, "counter" if is_counter else "gauge")
    family.samples = samples  # type: ignore[assignment] # it only reads them
    return family
