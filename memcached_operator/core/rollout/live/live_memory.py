"""Other memory for servers that run, which costs no key: their pods are resized, and memcached gets its new limit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from memcached_operator.core.access import Access
from memcached_operator.core.objects.memory_annotation import Memory, memory_of
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.rollout.change_costs import RESTARTS, Means, why_not_live
from memcached_operator.core.rollout.live.pod_resize import (
    RESIZABLE_PODS,
    Resizable,
    ResizeStep,
    is_resized,
    next_resize_step,
    resize_patch,
    shrinks,
)
from memcached_operator.core.rollout.live.resize_state import (
    NOTHING,
    PATIENCE_S,
    Impossible,
    Pending,
    Resized,
    ResizeState,
    Resizing,
    ServerResize,
    Trial,
    has_limit,
    is_known,
    is_limited,
    limited as limited_problem,
    may_differ,
    resize_state_of,
    resizing_of,
)
from memcached_operator.servers.queried_pod import Endpoints
from memcached_operator.servers.server_connection import ErrorKind, Failure
from memcached_operator.servers.text_protocol import memlimit
from operator_runtime import KubeError, ObjectKey, ServerError

logger = logging.getLogger(__name__)

# Of one server, the connection included; a worker waits for as long.
LIMIT_TIMEOUT_S: Final = 1.0

SetLimit: TypeAlias = Callable[[PodRecord, Memory], Awaitable[Failure | None]]
"""Sets how much the memcached of a pod may use for items, and which of them it moves to its disk. The result is the
failure, None for none."""


def limit_setter(endpoints: Endpoints) -> SetLimit:
    """`SetLimit` by memcached's commands `cache_memlimit` and `extstore`."""

    async def set_limit(pod: PodRecord, memory: Memory) -> Failure | None:
        resolved = await endpoints(pod)
        failure = await memlimit(resolved.endpoint, memory.mib, LIMIT_TIMEOUT_S, disk_from=memory.disk_from)
        return resolved.explained(failure) if failure is not None else None

    return set_limit


class Resizes(dict[str, ServerResize]):
    """Resizes of the servers of a Memcached, by uid of the pod.

    Attributes:
        desired: memory that the trial is of.
        emptied: names, by uid, of pods whose container started again when they were resized.
    """

    def __init__(self) -> None:
        super().__init__()
        self.desired = ""
        self.trial = Trial()
        self.emptied: dict[str, str] = {}

    def restarts(self, pod: PodRecord) -> str:
        """Explain why a resize would have the container start again, "" where it would not, as far as is known."""
        if pod.restarts_for_memory:
            return RESTARTS
        emptied = next(iter(self.emptied.values()), "")
        return emptied and f"the container of {emptied} started again when it was resized"


class LiveMemory:
    """Changes the memory of servers of one Memcached at a time; see `resize`."""

    def __init__(self, access: Access, set_limit: SetLimit) -> None:
        self._access = access
        self._set_limit = set_limit
        self._resizes: bool | None = None

    async def why_not(self, pods: Sequence[PodRecord], known: Resizes | None) -> str:
        """Explain why these servers cannot be given other memory while they run, as far as is known; else ""."""
        means, servers = await self._means() if pods else Means(), known or Resizes()
        return next(filter(None, (self._why_not(each, means, servers.restarts(each)) for each in pods)), "")

    def _why_not(self, pod: PodRecord, means: Means, restarts: str) -> str:
        cache = self._access.stats_cache if pod.ready else None
        unreachable = cache.out_of_reach(pod) if cache is not None else ""
        return why_not_live(pod.transport, means, restarts=restarts, unreachable=unreachable)

    async def _means(self) -> Means:
        """Return the means for a resize; a cluster that cannot resize is queried again: it may have been upgraded."""
        if not self._resizes:
            try:
                self._resizes = await self._access.client.serves(RESIZABLE_PODS, "resize")
            except (KubeError, ValueError) as error:
                logger.debug("whether pods can be resized is not known: %s", error)
        return Means(self._access.settings.server_credentials, self._resizes)

    async def resize(
        self,
        memcached: MemcachedRecord,
        workload: WorkloadRecord,
        desired: str,
        pods: Sequence[PodRecord],
        servers: Resizes,
        *,
        scales: bool = False,
        replaces: bool = True,
    ) -> Resizing:
        """Take the next step for each ready server whose memory is another, or was changed since its pod was made.

        Args:
            desired: as `labels.MEMORY_ANNOTATION` has it.
            pods: the servers' pods; those that are to be replaced anyway do not change.
            scales: the memory grows by itself: a pod that cannot be made smaller keeps its room.
            replaces: servers that cannot be given it are replaced.
        """
        # What was done about a server that is not ready for a while is kept.
        for uid in servers.keys() - {each.uid for each in pods}:
            del servers[uid]
            servers.emptied.pop(uid, None)
        memory = memory_of(desired)
        limited = [each for each in pods if is_limited(each, workload, desired, servers.get(each.uid))]
        others = [each for each in pods if each in limited or may_differ(each, workload, desired, servers)]
        if not others or memory is None:
            return NOTHING
        if servers.desired != desired:
            servers.desired, servers.trial = desired, Trial()
        for each in pods:
            self._observe(memcached, memory, each, each.restarts, servers)
        due = [each for each in limited if each.uid in servers and self._is_due(servers[each.uid])]
        to_begin = [each for each in others if each in due or not is_known(servers.get(each.uid), desired, each)]
        await self._begin(to_begin, workload, desired, servers, scales=scales)
        for each in limited:
            servers[each.uid].limited = True
        undone = sorted((each for each in others if not servers[each.uid].is_over), key=lambda each: each.ordinal)
        await self._go_on_all(memcached, memory, undone, servers, scales=scales)
        news = [each for each in others if each in undone or each in to_begin]
        # Of other servers no new pod would be another one.
        replaced = [each for each in news if replaces and (workload.memory != desired or each.memory != desired)]
        self._report(memcached, memory, news, replaced, servers)
        for each in undone:
            match servers[each.uid].state:
                case Pending(failure=KubeError() as failure) if not isinstance(failure, ServerError):
                    raise failure
        found = resizing_of({(each.name, each.uid): servers[each.uid] for each in others}, memory.mib)
        problem = limited_problem(
            {each.name: (each.memory_limit, servers.get(each.uid)) for each in limited}, memory.limit
        )
        if problem is not None and found.requeue_s is None:
            found = found._replace(requeue_s=PATIENCE_S)
        return found._replace(limited=problem)

    def _is_due(self, server: ServerResize) -> bool:
        """Report whether a server is resized anew that has too little again, or still: not at another client's pace."""
        return server.is_over and self._access.clock() - server.begun_s >= PATIENCE_S

    def _observe(
        self, memcached: MemcachedRecord, memory: Memory, pod: PodRecord, restarts: int, servers: Resizes
    ) -> bool:
        """Report whether a server's container has started again for its resize: then no other is resized."""
        server = servers.get(pod.uid)
        if server is None or not server.has_started_again(restarts):
            return False
        server.asked = None
        servers.emptied[pod.uid] = pod.name
        servers.trial.emptied = servers.trial.emptied or pod.name
        note = f"The container of {pod.name} started again when it was given {memory.mib} MiB, so its keys are lost"
        logger.warning("%s", note)
        self._access.record_event(memcached, "Warning", "Resized", "Resize", note)
        return True

    async def _begin(
        self, pods: Sequence[PodRecord], workload: WorkloadRecord, desired: str, servers: Resizes, *, scales: bool
    ) -> None:
        means = await self._means() if pods else Means()
        for each in pods:
            is_change = each.uid in servers or workload.memory != desired
            # Where the pod may keep its room, memcached is to use less first.
            restarts = RESTARTS if each.restarts_for_memory and not scales else ""
            before, now_s = servers.get(each.uid), self._access.clock()
            server = servers[each.uid] = ServerResize(desired, each.restarts, now_s, is_change, begun_s=now_s)
            # Its command line has the limit, or it was sent: only its pod's may be another.
            server.limit_set = each.memory == desired == workload.memory and has_limit(before, desired, each)
            why = self._why_not(each, means, restarts) if is_change and not server.limit_set else ""
            server.state = Impossible(why) if why else Pending()

    async def _go_on_all(
        self, memcached: MemcachedRecord, memory: Memory, pods: Sequence[PodRecord], servers: Resizes, *, scales: bool
    ) -> None:
        """Take as many steps as can be done now: one server is resized before the others are."""
        go_on = partial(self._go_on, memcached, memory, servers, scales)
        for first in pods[:1]:
            await go_on(first)
        await asyncio.gather(*(go_on(each) for each in pods[1:]))
        for each in pods[1:]:
            match servers[each.uid].state:
                case Pending(held=True) if servers.trial.may_begin(each.uid):
                    await go_on(each)

    async def _go_on(
        self, memcached: MemcachedRecord, memory: Memory, servers: Resizes, scales: bool, pod: PodRecord
    ) -> None:
        is_read, server, trial = False, servers[pod.uid], servers.trial
        try:
            live = await self._access.client.get(RESIZABLE_PODS, ObjectKey(pod.namespace, pod.name))
            is_read = True
            server.keeps_room = server.keeps_room or (scales and shrinks(live, memory))
            if server.since_s is None:
                server.since_s = self._access.clock()
            if self._observe(memcached, memory, pod, live.restarts, servers):
                state: ResizeState = Pending()  # it is begun anew once the cache shows it
            else:
                state = await self._steps(pod, live, memory, servers)
        except KubeError as error:
            state = resize_state_of(error, pod.name, is_read=is_read, is_change=server.is_change)
            if is_read:
                server.asked = None
        server.take(state, self._access.clock())
        if server.asked is not None:
            trial.uid = pod.uid
        elif trial.uid == pod.uid:
            trial.uid = ""

    async def _steps(self, pod: PodRecord, live: Resizable, memory: Memory, servers: Resizes) -> ResizeState:
        server, trial, restarts, resized = servers[pod.uid], servers.trial, servers.restarts(pod), False
        while True:
            if server.asked is not None and is_resized(live, memory):
                server.asked, trial.passed = None, True
            match next_resize_step(live, memory, limit_set=server.limit_set, restarts=bool(restarts)):
                case ResizeStep.DONE:
                    return Resized()
                case ResizeStep.SET_LIMIT:
                    if failure := await self._set_limit(pod, memory):
                        return Pending(failure.why, failure.kind in (ErrorKind.SATURATED, ErrorKind.SILENT))
                    server.limit_set = True
                case ResizeStep.RESIZE | ResizeStep.REPLACE if trial.emptied and pod.uid not in servers.emptied:
                    return trial.stop()
                case ResizeStep.REPLACE:
                    server.is_change = True
                    return Impossible(restarts)
                case ResizeStep.RESIZE if resized:
                    server.asked = None
                    return Pending("another client reverts its resources, such as a mutating admission policy")
                case ResizeStep.RESIZE if not trial.may_begin(pod.uid):
                    return Pending(held=True)
                case ResizeStep.RESIZE:
                    resized = server.is_change = True
                    trial.uid, server.asked = pod.uid, live.restarts
                    patch, client = resize_patch(memory), self._access.client
                    live = await client.patch(RESIZABLE_PODS, live, patch, subresource="resize", strategic=True)
                case ResizeStep.WAIT:
                    server.is_change = True
                    server.asked = (live.restarts if server.asked is None else server.asked) if live.begun else None
                    # Else its node may speak of what was requested before.
                    return Impossible(live.waits) if live.hopeless and not resized else Pending(live.waits)

    def _report(
        self,
        memcached: MemcachedRecord,
        memory: Memory,
        pods: Sequence[PodRecord],
        replaced: Sequence[PodRecord],
        servers: Resizes,
    ) -> None:
        """Report which of these servers have their memory since now, and which of them are replaced for it."""
        ran_on = [each for each in pods if each.uid not in servers.emptied and servers[each.uid].is_change]
        done = [each for each in ran_on if isinstance(servers[each.uid].state, Resized)]
        if restored := ", ".join(each.name for each in done if servers[each.uid].limited):
            note = f"Set the memory limit of {restored} back to {memory.limit}, as another client had lowered it"
            logger.warning("%s", note)
            self._access.record_event(memcached, "Warning", "Resized", "Resize", note)
        done = [each for each in done if not servers[each.uid].limited]
        if done:
            names = ", ".join(each.name for each in done)
            fields = {"action": "resize", "memory_mib": memory.mib}
            logger.info(
                "changed the memory of %s to %d MiB without a restart", names, memory.mib, extra={"fields": fields}
            )
            note = f"Changed the memory of {names} to {memory} without a restart"
            self._access.record_event(memcached, "Normal", "Resized", "Resize", note)
        for each in replaced:
            match servers[each.uid].state:
                case Impossible(why):
                    note = f"{each.name} is replaced to get its memory of {memory.mib} MiB: {why}"
                    logger.warning("%s", note)
                    self._access.record_event(memcached, "Warning", "NotResized", "Resize", note)
