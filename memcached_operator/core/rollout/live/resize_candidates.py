"""Pure: servers that a resize of their pods, or another limit of their memcached, may be about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memcached_operator.api.quantities import value
from memcached_operator.core.objects.memory_annotation import memory_of
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.rollout.live.resize_state import Resized, ServerResize

# A node may round a limit to a page of memory.
_LEAST_BYTES: Final = 65_536


def may_differ(pod: PodRecord, workload: WorkloadRecord, desired: str, servers: Mapping[str, ServerResize]) -> bool:
    """Report whether a ready server may have other memory, or another limit.

    While the template has other memory, any server may have been given another limit, even by a former leader.
    """
    if not pod.ready or pod.template_hash != workload.template_hash or workload.kind == "Deployment":
        return False
    return pod.memory != desired or workload.memory != desired or pod.uid in servers


def is_limited(pod: PodRecord, workload: WorkloadRecord, desired: str, server: ServerResize | None) -> bool:
    """Report whether a server's memory limit is lower than what it was given, while that is not to change.

    One that is not ready may have been ended for that. Where it was given its memory while it ran, it is to answer.
    """
    if pod.template_hash != workload.template_hash or workload.memory != desired:
        return False
    is_made_so = pod.memory == desired
    has_it = is_made_so or (server is not None and server.desired == desired and isinstance(server.state, Resized))
    # Of one that is yet to be given it, or was by a former leader, the less of both is known.
    memories = [memory_of(desired), *(() if has_it else (memory_of(pod.memory),))]
    limits = [value(each.limit) for each in memories if each is not None and each.limit]
    is_lower = bool(limits and pod.memory_limit) and min(limits) - value(pod.memory_limit) >= _LEAST_BYTES
    return is_lower and (is_made_so or (pod.ready and workload.kind == "StatefulSet"))


def has_limit(before: ServerResize | None, desired: str, pod: PodRecord) -> bool:
    """Report whether a memcached that was started with that memory uses it."""
    return before is None or (before.desired == desired and (before.limit_set or before.restarts != pod.restarts))


def is_known(server: ServerResize | None, desired: str, pod: PodRecord) -> bool:
    """Report whether the resize was begun with a server, as it is now."""
    return server is not None and (server.desired, server.restarts) == (desired, pod.restarts)
