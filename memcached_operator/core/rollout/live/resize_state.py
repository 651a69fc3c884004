"""Pure: progress of servers to other memory while they run, which of them it is about, and what an error means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from memcached_operator.api.quantities import value
from memcached_operator.api.status import Problem, Reason, first_names
from memcached_operator.core.objects.memory_annotation import memory_of
from memcached_operator.core.objects.refusal_reasons import is_permission_missing, refusal_reason
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.rollout.change_costs import NO_RESIZE
from operator_runtime import Conflict, Forbidden, Invalid, KubeError, NotFound, ServerError

# A node resizes a pod within seconds, or when another pod there has gone.
REQUEUE_S: Final = 1.0
# No event reports that a quota has room again, or that a busy server answers again.
REFUSED_RETRY_S: Final = 10.0
BUSY_RETRY_S: Final = 10.0
PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Pending:
    """Resize that is not done yet.

    Attributes:
        why: what keeps it from being done now, "" for nothing that is known.
        busy: the server has connections and does not answer in time. A replacement would lose its keys for that.
        held: another server is resized first.
        failure: what kept the API server from it, to be tried again.
    """

    why: str = ""
    busy: bool = False
    held: bool = False
    failure: KubeError | None = None


@dataclass(frozen=True, slots=True)
class Resized:
    """Completion: no change is left to be made."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """Resize that cannot be done while the server runs."""

    why: str


@dataclass(frozen=True, slots=True)
class ResizeRefused:
    """Resize that admission allows to no pod, such as a quota: nor would it allow a new server in the place of one."""

    why: str
    reason: Reason


ResizeState: TypeAlias = Pending | Resized | Impossible | ResizeRefused


def resize_state_of(error: KubeError, pod: str, *, is_read: bool, is_change: bool) -> ResizeState:
    """Classify an error of a pod's resize.

    Args:
        is_read: the pod was read, so that its resize is what failed.
        is_change: its memory is a change, for which a server may be replaced.
    """
    match error:
        case Conflict():
            return Pending()  # it has changed, or is gone
        case NotFound():
            is_gone = not is_read or error.name == pod
            return Pending() if is_gone else Impossible(NO_RESIZE)
        case Forbidden() if not is_read and not is_change:
            return Pending(error.message or str(error))
        case Forbidden() if is_read and not (_is_too_large(error) or is_permission_missing(error)):
            message = error.message or str(error)
            return ResizeRefused(message, refusal_reason(message))
        case Forbidden() | Invalid():
            return Impossible(error.message or str(error))
        case _:
            return Pending(failure=error)


def _is_too_large(error: Forbidden) -> bool:
    """Report whether the node is too small for the resize. Another node may be large enough."""
    return any(cause.reason == "NodeCapacity" for cause in error.causes)


@dataclass(slots=True)
class ServerResize:
    """Progress of one server's resize.

    Attributes:
        restarts: how often its memcached had started again by then. After each start it has the limit of its command
            line.
        since_s: since when it is waited for, by the clock; None while the server is busy, or its resize is held or
            refused, or cannot be observed: that time does not count, and the server is not replaced for it.
        is_change: False for what a former leader has done already, by all that can be seen: it is tried once more, and
            no server is replaced for it.
        limit_set: memcached uses it.
        keeps_room: its pod may stay as large as it was, once memcached uses less.
        begun_s: when it was begun, by the clock.
        limited: its pod's limit alone is set back, which was too low.
        asked: how often its memcached had started again when its node was asked to resize it; None where its node is
            not about to.
    """

    desired: str
    restarts: int
    since_s: float | None
    is_change: bool
    limit_set: bool = False
    keeps_room: bool = False
    begun_s: float = 0.0
    limited: bool = False
    asked: int | None = None
    state: ResizeState = Pending()

    @property
    def is_over(self) -> bool:
        """Report whether nothing more is to be tried."""
        return isinstance(self.state, Resized | Impossible)

    def take(self, state: ResizeState, now_s: float) -> None:
        """Take how a try ended; what takes too long is given up."""
        self.state = state
        match state:
            case ResizeRefused() | Pending(failure=KubeError()) | Pending(busy=True) | Pending(held=True):
                self.since_s = None
            case Pending() if self.is_change and self.since_s is not None:
                if now_s - self.since_s >= PATIENCE_S:
                    self.state = Impossible(state.why or "the resize did not finish in time")
        if isinstance(self.state, Impossible) and self.is_enough:
            self.state = Resized()
        if self.is_over:
            self.asked = None

    def has_started_again(self, restarts: int) -> bool:
        """Report whether its memcached, which has started again so often, did so since its node was asked."""
        return self.asked is not None and restarts > self.asked

    @property
    def is_enough(self) -> bool:
        """Report whether what is left to be done matters to nobody."""
        return self.keeps_room and self.limit_set

    @property
    def requeue_s(self) -> float:
        if not self.is_change:
            return PATIENCE_S
        return BUSY_RETRY_S if isinstance(self.state, Pending) and self.state.busy else REQUEUE_S


@dataclass(slots=True)
class Trial:
    """Trial of a change on one server before the others: only its resize shows that containers run on.

    Attributes:
        uid: the pod that is being resized, "" for none.
        passed: one was resized, and its container ran on.
        emptied: name of the server whose container started again for it, "" for none.
    """

    uid: str = ""
    passed: bool = False
    emptied: str = ""

    def may_begin(self, uid: str) -> bool:
        return not self.emptied and (self.passed or self.uid in ("", uid))

    def stop(self) -> ResizeRefused:
        why = f"the container of {self.emptied} started again when it was resized, and its keys are lost"
        return ResizeRefused(why, Reason.ROLLOUT_STUCK)


class Resizing(NamedTuple):
    """Progress of the servers of one Memcached to other memory.

    Attributes:
        pending: names of servers that do not have it yet, and what each waits for, "" where that is not known.
        impossible: uids of the pods that cannot get it while they run, and why.
        refused: what keeps a server from its memory that would keep a new one from it, too; None for nothing.
        limited: servers whose memory limit is too low for their memory; None for none.
        requeue_s: seconds until more is to be done, None for never.
        failure: what the API server failed in, to be tried again once all else is done; None for nothing.
    """

    pending: Mapping[str, str] = {}
    impossible: Mapping[str, str] = {}
    refused: Problem | None = None
    requeue_s: float | None = None
    failure: ServerError | None = None
    limited: Problem | None = None


NOTHING: Final = Resizing()


def limited(servers: Mapping[str, tuple[str, ServerResize | None]], limit: str) -> Problem | None:
    """Report servers whose memory limit is lower than what was calculated for their memory; None where none is."""
    if not servers:
        return None
    names = first_names([f"{name} ({found})" for name, (found, _) in sorted(servers.items())])
    message = (
        f"The memory limit of {names} is lower than the {limit} that a server needs, as after another client's change "
        "of its pod: the kernel may end it, and its keys are lost. Have that client leave out these pods"
    )
    states = ((name, each.state) for name, (_, each) in sorted(servers.items()) if each is not None)
    whys = (f"{name}: {state.why}" for name, state in states if isinstance(state, Impossible | Pending) and state.why)
    why = next(whys, "")
    return Problem(Reason.MEMORY_LIMITED, f"{message}; it is not set back, {why}" if why else message, blocking=False)


def resizing_of(servers: Mapping[tuple[str, str], ServerResize], mib: int) -> Resizing:
    left = {name: each for (name, _), each in servers.items() if not each.is_over}
    pending = {name: each.state.why if isinstance(each.state, Pending) else "" for name, each in left.items()}
    pending = {name: why for name, why in pending.items() if left[name].is_change and not left[name].is_enough}
    impossible = {uid: each.state.why for (_, uid), each in servers.items() if isinstance(each.state, Impossible)}
    refused = {name: state for name in pending if isinstance(state := left[name].state, ResizeRefused)}
    # As of a webhook for pods that does not answer: nothing else is to wait for it.
    failures = (each.state.failure for each in left.values() if isinstance(each.state, Pending))
    failure = next((each for each in failures if isinstance(each, ServerError)), None)
    if refused and len(refused) == len(pending):
        name = min(refused)
        message = f"{name} keeps its memory, as it cannot get {mib} MiB: {refused[name].why}"
        problem = Problem(refused[name].reason, message, blocking=False)
        return Resizing(pending, impossible, problem, REFUSED_RETRY_S, failure)
    return Resizing(pending, impossible, None, min((each.requeue_s for each in left.values()), default=None), failure)


# A node may round a limit to a page of memory.
_LEAST_BYTES: Final = 65_536


def may_differ(pod: PodRecord, workload: WorkloadRecord, desired: str, servers: Mapping[str, ServerResize]) -> bool:
    """Report whether a ready server may have other memory, or was given another limit, even by a former leader."""
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
