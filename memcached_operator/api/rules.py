"""Pure: the rules over several fields of a specification, each of which is right by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from memcached_operator.api.arguments import CHUNK_KIB, Arguments, judge
from memcached_operator.api.names import (
    MAX_CONNECTIONS,
    MAX_ITEM_SIZE,
    MEMORY,
    QUANTITY_MAX,
    THREADS,
    InvalidSpec,
    shown,
    told,
)
from memcached_operator.api.pod_template import of_pod_template
from memcached_operator.api.quantities import canonical, kibibytes, mebibytes, value
from memcached_operator.api.sizing import memory_needed_mib

# Of the connections that -c allows, memcached 1.6.45 keeps so many for itself (measured with 1, 4 and 8 threads; 1.6.18
# keeps 4 for each thread). With fewer it serves nobody, or ends at once.
OWN_CONNECTIONS: Final = 8
OWN_CONNECTIONS_OF_A_THREAD: Final = 5

_Quantities = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Together:
    """The fields that are judged together, with their defaults where they are left out.

    Attributes:
        max_unavailable, max_surge: of the rollout; None where they are left out.
    """

    workload: str = "Deployment"
    service_type: str = "Headless"
    memory: str = MEMORY
    max_connections: int = MAX_CONNECTIONS
    threads: int = THREADS
    max_item_size: str = MAX_ITEM_SIZE
    extra_args: Sequence[str] = ()
    requests: _Quantities = field(default_factory=dict)
    limits: _Quantities = field(default_factory=dict)
    max_unavailable: int | str | None = None
    max_surge: int | str | None = None
    tls: bool = False
    auth: bool = False
    pod_template: Mapping[str, Any] = field(default_factory=dict)


def refuse_contradictions(spec: Together) -> None:
    """Hold fields that are right by themselves to the rules over several of them.

    Raises:
        InvalidSpec: names each field that breaks one, what it must be, and what it is.
    """
    settings = _of_settings(spec.memory, spec.threads, spec.max_item_size, tuple(spec.extra_args))
    connections = _of_connections(spec.max_connections, spec.threads)
    pods = of_pod_template(spec.pod_template)
    if complaints := [*_of_workload(spec), *settings, *_of_auth(spec), *connections, *_of_resources(spec), *pods]:
        raise InvalidSpec(told(complaints))


def memory_mib(
    memory: str, max_connections: int, threads: int, extra_args: Sequence[str] = (), *, tls: bool = False
) -> int:
    """MiB that a server with these settings takes at most; they are those of a specification that can be acted on."""
    return _memory_mib(memory, max_connections, threads, tuple(extra_args), tls)


@lru_cache(maxsize=64)  # most Memcacheds share their settings
def _memory_mib(memory: str, connections: int, threads: int, extra_args: tuple[str, ...], tls: bool) -> int:
    judged = _judged(extra_args, threads)
    needed = memory_needed_mib(
        mebibytes(memory),
        connections,
        threads,
        tls=tls,
        size_classes=judged.size_classes,
        least_item_bytes=judged.least_item_bytes,
    )
    return needed + judged.table_mib


@lru_cache(maxsize=64)
def _judged(extra_args: tuple[str, ...], threads: int) -> Arguments:
    return judge(extra_args, threads)


def _of_workload(spec: Together) -> Iterator[str]:
    pace = {"maxUnavailable": spec.max_unavailable, "maxSurge": spec.max_surge}
    if spec.workload == "StatefulSet":
        if spec.service_type == "ClusterIP":
            yield (
                "spec.service.type: must be Headless when spec.workload is StatefulSet, as the DNS names of its "
                "servers come from the headless Service, or Disabled if you create that Service yourself, got "
                f"{json.dumps(spec.service_type)}"
            )
        for name, given in pace.items():
            if given is not None:
                yield (
                    f"spec.rollout.{name}: must be omitted when spec.workload is StatefulSet, whose servers are "
                    f"replaced one at a time, got {shown(given)}"
                )
    elif spec.max_unavailable in (0, "0%") and spec.max_surge in (None, 0, "0%"):
        yield (
            "spec.rollout.maxUnavailable: must be 1 or more when spec.rollout.maxSurge is 0 or omitted, as no server "
            f"could be replaced, got {shown(spec.max_unavailable)}"
        )


@lru_cache(maxsize=64)
def _of_settings(memory: str, threads: int, item_size: str, extra_args: tuple[str, ...]) -> tuple[str, ...]:
    item_kib, half_kib = kibibytes(item_size), kibibytes(memory) // 2
    arguments = _judged(extra_args, threads)
    complaints = []
    if item_kib > half_kib:
        complaints.append(
            f"spec.maxItemSize: must be at most {canonical(f'{half_kib}Ki')}, half of spec.memory {memory}; "
            f"lower it or raise the memory, got {shown(item_size)}"
        )
    if item_kib % (step_kib := arguments.item_step_kib(item_kib)):
        chosen = "or of N KiB with -o slab_chunk_max=N in" if step_kib == CHUNK_KIB else "by"
        complaints.append(
            f"spec.maxItemSize: must be a multiple of {step_kib}Ki, {chosen} spec.extraArgs, got {shown(item_size)}"
        )
    return (*complaints, *arguments.complaints)


def _of_auth(spec: Together) -> Iterator[str]:
    if spec.auth and _judged(tuple(spec.extra_args), spec.threads).protocol == "auto":
        yield (
            "spec.extraArgs: must not set -B to auto with spec.auth, whose passwords work with the text protocol "
            'only; omit it, got "auto"'
        )


def _of_connections(connections: int, threads: int) -> Iterator[str]:
    if connections <= (own := OWN_CONNECTIONS + OWN_CONNECTIONS_OF_A_THREAD * threads):
        yield (
            f"spec.maxConnections: must be more than {own}, which memcached keeps for itself with spec.threads "
            f"{threads}, got {connections}"
        )


def _of_resources(spec: Together) -> Iterator[str]:
    for kind, quantities in (("requests", spec.requests), ("limits", spec.limits)):
        for name, quantity in quantities.items():
            if value(quantity) > QUANTITY_MAX:
                yield f"spec.resources.{kind}[{name}]: must be at most {QUANTITY_MAX}, got {shown(quantity)}"
    if (limit := spec.limits.get("memory")) is not None:
        needed = memory_mib(spec.memory, spec.max_connections, spec.threads, spec.extra_args, tls=spec.tls)
        if value(limit) < needed * 2**20:
            yield (
                f"spec.resources.limits.memory: must be at least {needed}Mi, which a server needs with spec.memory "
                f"{spec.memory}, spec.maxConnections {spec.max_connections}{' by TLS' if spec.tls else ''} and "
                f"spec.threads {spec.threads}; raise the limit or lower these fields, got {shown(limit)}"
            )
    for name, most in spec.limits.items():
        asked = spec.requests.get(name)
        if asked is not None and value(asked) > value(most):
            yield (
                f"spec.resources.requests[{name}]: must be at most spec.resources.limits[{name}], {most}, "
                f"got {shown(asked)}"
            )
