"""Other memory for servers that run: their pods are resized in place, and memcached gets its new limit.

That costs no key. What cannot be changed so is left to a rollout, and an event says why.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from memcached_operator.memcached.events import RecordEvent
from memcached_operator.memcached.observed.caches import RESIZABLE_PODS
from memcached_operator.memcached.observed.memcacheds import MemcachedRecord
from memcached_operator.memcached.observed.pod_resize import (
    Memory,
    Step,
    memory_of,
    next_step,
    resize_patch,
)
from memcached_operator.memcached.observed.pods import PodRecord
from memcached_operator.memcached.observed.workloads import WorkloadRecord
from memcached_operator.memcached.rollout.live_requirements import NO_RESIZE, Means, why_not_live
from memcached_operator.memcached.server_stats.endpoints import EndpointResolver
from memcached_operator.memcached.server_stats.server_connection import ErrorKind, Failure
from memcached_operator.memcached.server_stats.stats_cache import StatsCache
from memcached_operator.memcached.server_stats.text_protocol import memlimit
from operator_runtime import (
    Client,
    Conflict,
    Forbidden,
    Invalid,
    KeyedStates,
    KubeError,
    NotFound,
    ObjectKey,
    ServerError,
)

logger = logging.getLogger(__name__)

# A node resizes a pod within seconds, or when another pod there has gone.
LOOK_AGAIN_S: Final = 1.0
# No event says that a quota has room again, or that a busy server answers again.
REFUSED_RETRY_S: Final = 10.0
BUSY_RETRY_S: Final = 10.0
PATIENCE_S: Final = 60.0
# Of one server, the connection included; a worker waits for as long.
LIMIT_TIMEOUT_S: Final = 1.0
# Of a refusal by RBAC, to resize pods or to patch them.
NO_RIGHT: Final = "cannot patch resource"
# Of a refusal of what the node could never carry out: another one may.
_NODE_TOO_SMALL: Final = "NodeCapacity"

SetLimit: TypeAlias = Callable[[PodRecord, Memory], Awaitable[Failure | None]]
"""Sets how much the memcached of a pod may use for items, and which of them it moves to its disk. The result is the
failure, None for none."""


def limit_setter(endpoints: EndpointResolver) -> SetLimit:
    """`SetLimit` by memcached's commands `cache_memlimit` and `extstore`."""

    async def set_limit(pod: PodRecord, memory: Memory) -> Failure | None:
        resolved = await endpoints.to(pod)
        failure = await memlimit(resolved.endpoint, memory.mib, LIMIT_TIMEOUT_S, disk_from=memory.disk_from)
        return resolved.explained(failure) if failure is not None else None

    return set_limit


class Resizing(NamedTuple):
    """How far the servers of one Memcached are on their way to other memory.

    Attributes:
        pending: names of servers that do not have it yet, and what each waits for, "" where that is not known.
        impossible: uids of the pods that cannot get it while they run, and why.
        refused: what keeps a server from its memory that would keep a new one from it, too, "" for nothing.
        next_s: seconds until more is to be done, None for never.
        failure: what the API server failed in, to be tried again once all else is done; None for nothing.
    """

    pending: Mapping[str, str] = {}
    impossible: Mapping[str, str] = {}
    refused: str = ""
    next_s: float | None = None
    failure: ServerError | None = None


NOTHING: Final = Resizing()


@dataclass(slots=True)
class _Server:
    """What was done about one server.

    Attributes:
        desired: what was desired then.
        restarts: how often its memcached has started again. It then has the limit of its command line.
        since_s: since when it is waited for, by the clock; None while it cannot be seen how far it is: for that it is
            not given up and replaced.
        news: it is a change. What a former leader has seen to already, by all that can be seen, is tried once more, and
            no server is replaced for it.
        limit_set: memcached uses it.
        done: nothing is left to do.
        waits: what keeps it from being done now, "" for nothing that is known.
        busy: it has connections and no time for ours. It would lose its keys for that if it was replaced.
        why: it cannot be done, "" while it can.
        refused: an admission plugin allows it to no pod, in its words, "" while none does.
    """

    desired: str
    restarts: int
    since_s: float | None
    news: bool
    limit_set: bool = False
    done: bool = False
    waits: str = ""
    busy: bool = False
    why: str = ""
    refused: str = ""


class _Servers(dict[str, _Server]):
    """By uid of the pod."""


class LiveMemory:
    """Changes the memory of servers of one Memcached at a time; see `resize`."""

    def __init__(
        self,
        client: Client,
        states: KeyedStates,
        set_limit: SetLimit,
        record_event: RecordEvent,
        *,
        credentials: bool,
        stats_cache: StatsCache | None,
        clock: Callable[[], float],
    ) -> None:
        """
        Args:
            client: reads and resizes pods.
            states: what is known of each Memcached; a successor asks once more.
            set_limit: has a memcached use other memory.
            record_event: records an event.
            credentials: the operator may read the Secrets that servers ask for.
            stats_cache: what servers say that are asked; None where none is.
            clock: monotonic seconds.
        """
        self._client = client
        self._servers = states.keyed(_Servers)
        self._set_limit = set_limit
        self._record_event = record_event
        self._credentials = credentials
        self._stats_cache = stats_cache
        self._clock = clock
        self._resizes: bool | None = None

    async def why_not(self, pods: Sequence[PodRecord]) -> str:
        """Why these servers cannot be given other memory while they run, by what is known; "" where nothing is.

        What is announced of a change: `resize` has the same reason for each of them.
        """
        means = await self._means() if pods else Means()
        return next(filter(None, (self._why_not(each, means) for each in pods)), "")

    def _why_not(self, pod: PodRecord, means: Means) -> str:
        unreachable = self._stats_cache.out_of_reach(pod) if self._stats_cache is not None else ""
        return why_not_live(pod.transport, means, unreachable)

    async def _means(self) -> Means:
        """What it takes; a cluster that cannot resize is asked again, as it may have been upgraded."""
        if not self._resizes:
            try:
                self._resizes = await self._client.serves(RESIZABLE_PODS, "resize")
            except (KubeError, ValueError) as error:
                logger.debug("whether pods can be resized is not known: %s", error)
        return Means(self._credentials, self._resizes)

    async def resize(
        self,
        memcached: MemcachedRecord,
        workload: WorkloadRecord,
        desired: str,
        pods: Sequence[PodRecord],
    ) -> Resizing:
        """Take the next step for each ready server whose memory is another, or was changed since its pod was made.

        Args:
            workload: what runs the servers.
            desired: as `labels.MEMORY_ANNOTATION` has it.
            pods: the servers' pods; those that are to be replaced anyway are left alone.

        Raises:
            KubeError: the API server could not be reached; to be tried again.
        """
        known = self._servers.find(memcached.key) or _Servers()
        # What was done about a server that is not ready for a while is kept.
        for uid in known.keys() - {each.uid for each in pods}:
            del known[uid]
        # While the template has other memory, any server may have been given another limit, even by a former leader.
        others = [
            each
            for each in pods
            if each.ready
            and each.rolls == workload.rolls
            and (each.memory != desired or workload.memory != desired or each.uid in known)
        ]
        if not others or (memory := memory_of(desired)) is None:
            if not known:
                self._servers.drop(memcached.key)
            return NOTHING
        servers = self._servers.of(memcached.key)
        begun = [each for each in others if not _is_known(servers.get(each.uid), desired, each)]
        means = await self._means() if begun else Means()
        for each in begun:
            news = each.uid in servers or workload.memory != desired
            why = self._why_not(each, means) if news else ""
            servers[each.uid] = _Server(desired, each.restarts, self._clock(), news, why=why)
        undone = [each for each in others if not _is_over(servers[each.uid])]
        failures = await asyncio.gather(*(self._go_on(each, memory, servers[each.uid]) for each in undone))
        done = [each for each in undone if servers[each.uid].done and servers[each.uid].news]
        self._say_what_came(memcached, memory, done)
        for each in [*undone, *(each for each in begun if each not in undone)]:
            if why := servers[each.uid].why:
                note = f"{each.name} is replaced to get its memory of {memory.mib} MiB: {why}"
                logger.warning("%s", note)
                self._record_event(memcached, "Warning", "NotResized", "Resize", note)
        failed = [each for each in failures if each is not None]
        if failure := next((each for each in failed if not isinstance(each, ServerError)), None):
            raise failure
        impossible = {each.uid: servers[each.uid].why for each in others if servers[each.uid].why}
        left = {each.name: servers[each.uid] for each in undone if not _is_over(servers[each.uid])}
        pending = {name: server.waits for name, server in left.items() if server.news}
        # As of a webhook for pods that does not answer: nothing else is to wait for it.
        ours = next((each for each in failed if isinstance(each, ServerError)), None)
        refused = {each.name: text for each in others if (text := servers[each.uid].refused)}
        if refused and len(refused) == len(pending):
            name = min(refused)
            message = f"{name} keeps its memory, as it cannot get {memory.mib} MiB: {refused[name]}"
            return Resizing(pending, impossible, message, REFUSED_RETRY_S, ours)
        next_s = min((_look_again_s(each) for each in left.values()), default=None)
        return Resizing(pending, impossible, "", next_s, ours)

    async def _go_on(self, pod: PodRecord, memory: Memory, server: _Server) -> KubeError | None:
        """As many steps as can be done now; the failure that is to be raised, None for none."""
        live, resized = None, False
        server.refused, server.waits, server.busy = "", "", False
        try:
            live = await self._client.get(RESIZABLE_PODS, ObjectKey(pod.namespace, pod.name))
            if server.since_s is None:
                server.since_s = self._clock()
            while (step := next_step(live, memory, limit_set=server.limit_set)) is not Step.DONE:
                if step is Step.SET_LIMIT:
                    if failure := await self._set_limit(pod, memory):
                        server.waits = failure.why
                        server.busy = failure.trouble in (ErrorKind.SATURATED, ErrorKind.SILENT)
                        break
                    server.limit_set = True
                elif step is Step.RESIZE:
                    if resized:
                        server.waits = "another client reverts its resources, such as a mutating admission policy"
                        break
                    resized = server.news = True
                    live = await self._client.strategic_patch(
                        RESIZABLE_PODS, live, resize_patch(memory), subresource="resize"
                    )
                else:
                    server.waits, server.news = live.waits, True
                    if live.hopeless and not resized:  # else it may speak of what was asked for before
                        server.why = live.waits
                    break
            else:
                server.done = True
        except Conflict:
            pass  # it has changed, or is gone
        except NotFound as error:
            # Else the pod is gone.
            if live is not None and f'"{pod.name}" not found' not in error.message:
                server.why = NO_RESIZE
        except Forbidden as error:
            message = error.message or str(error)
            if live is None and not server.news:
                server.waits = message
            elif live is None or NO_RIGHT in message or any(cause.reason == _NODE_TOO_SMALL for cause in error.causes):
                server.why = message
            else:
                # Such as a quota. The server that is replaced would be lost, and none made in its place.
                server.refused, server.since_s = message, None
        except Invalid as error:
            server.why = error.message or str(error)
        except KubeError as error:
            server.since_s = None
            return error
        late = server.since_s is not None and self._clock() - server.since_s >= PATIENCE_S
        if late and server.news and not (server.busy or _is_over(server)):
            server.why = server.waits or "the resize did not finish in time"
        return None

    def _say_what_came(self, memcached: MemcachedRecord, memory: Memory, done: Sequence[PodRecord]) -> None:
        if done:
            names = ", ".join(each.name for each in done)
            fields = {"action": "resize", "memory_mib": memory.mib}
            logger.info(
                "changed the memory of %s to %d MiB without a restart", names, memory.mib, extra={"fields": fields}
            )
            note = f"Changed the memory of {names} to {memory} without a restart"
            self._record_event(memcached, "Normal", "Resized", "Resize", note)


def _is_known(server: _Server | None, desired: str, pod: PodRecord) -> bool:
    """Whether it was begun with a server, as it is now."""
    return server is not None and (server.desired, server.restarts) == (desired, pod.restarts)


def _look_again_s(server: _Server) -> float:
    if not server.news:
        return PATIENCE_S
    return BUSY_RETRY_S if server.busy else LOOK_AGAIN_S


def _is_over(server: _Server) -> bool:
    return server.done or bool(server.why)
