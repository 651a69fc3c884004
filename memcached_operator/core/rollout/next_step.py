"""Pure: order and pace in which the servers of a Memcached come to a new template.

A server that is replaced loses its keys; one whose container starts again in its pod keeps its items, and is away for a
moment. So one is updated after the other, from the highest ordinal, and the next only when all have been ready for
`spec.rollout.minReadySeconds`, but for servers of another template that have not been ready for long. Of a StatefulSet
the operator does this: it evicts pods, so that disruption budgets hold, or patches them, which no budget limits. A
Deployment's own controller does the like where the template changed. Where a Secret did, which shows in no template,
the operator does it for both.

The gates are evaluated in their order (`GATES`), and the first that returns a step decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.rollout.in_place_restart import has_ended, restart_left_s
from memcached_operator.core.rollout.server_states import (
    STUCK_AFTER_S,
    RollingServer,
    RolloutState,
    ServerState,
    is_stale,
)


class WaitReason(Enum):
    CONTROLLER = "the Deployment's controller replaces pods"
    UNPAUSED = "spec.rollout.paused is true"
    OBSERVED = "the workload's controller has yet to observe the template"
    PODS = "a server's pod is being created"
    HANDOVER = "servers fill themselves from each other; one that is replaced would not know of the others' writes"
    READY = "a server is not ready"
    PAUSE = "all servers must have been ready for spec.rollout.minReadySeconds"


@dataclass(frozen=True, slots=True)
class RolloutDone:
    """Completion: all servers are as desired."""


@dataclass(frozen=True, slots=True)
class RolloutWait:
    """Wait for something that comes first."""

    why: WaitReason
    requeue_s: float | None = None


@dataclass(frozen=True, slots=True)
class Evict:
    """Eviction of a server's pod, to replace the server."""

    pod: PodRecord


@dataclass(frozen=True, slots=True)
class Move:
    """Move of a server's items, before the server is replaced: see `objects.holder`."""

    pod: PodRecord


@dataclass(frozen=True, slots=True)
class RestartInPlace:
    """Restart of a server's container in its pod."""

    pod: PodRecord


@dataclass(frozen=True, slots=True)
class MarkUpdated:
    """Mark of a server that was restarted in place, and counts as one of the present template."""

    pod: PodRecord


@dataclass(frozen=True, slots=True)
class Stuck:
    """Rollout that does not go on by itself."""

    server: str
    why: str
    requeue_s: float | None = None


Step: TypeAlias = RolloutDone | RolloutWait | Evict | Move | RestartInPlace | MarkUpdated | Stuck


class RolloutProgress(NamedTuple):
    """The next step of a rollout, and how far it is.

    Attributes:
        stale: how many servers are of another template, or of a Secret's former content.
        in_place: how many of them are restarted in place, and keep their items.
    """

    step: Step = RolloutDone()
    stale: int = 0
    in_place: int = 0

    @property
    def is_underway(self) -> bool:
        """Report whether servers are yet to be updated, or a new one is yet to get ready.

        No server is stale before the workload's controller has observed its template: see `WorkloadRecord.is_observed`.
        """
        return bool(self.stale) or not isinstance(self.step, RolloutDone)

    @property
    def requeue_s(self) -> float | None:
        """Seconds until more is to be done, None where an event will come."""
        return self.step.requeue_s if isinstance(self.step, RolloutWait | Stuck) else None


DONE: Final = RolloutProgress()


def rollout(state: RolloutState | None) -> RolloutProgress:
    """Choose the next step from the observed state; None while there is no workload."""
    if state is None or state.workload.deleting:
        return DONE
    return RolloutProgress(_next_step(state), len(state.stale), sum(each.can_restart for each in state.servers))


def _next_step(state: RolloutState) -> Step:
    for gate in GATES:
        if (step := gate(state)) is not None:
            return step
    overdue = [each for each in state.due if each.state is ServerState.OVERDUE]
    step, moving = _update(overdue or state.due), state.moving
    if moving is not None and isinstance(step, Evict) and step.pod.ready and step.pod.uid not in moving.released:
        return Move(step.pod)
    return step


def controlled_by_deployment(state: RolloutState) -> Step | None:
    """Wait for a Deployment's controller, which replaces pods of another template and makes missing ones."""
    if state.workload.kind != "Deployment":
        return None
    if not state.stale:
        return RolloutDone()
    others = any(is_stale(each.pod, state.workload, state.impossible) for each in state.servers)
    return RolloutWait(WaitReason.CONTROLLER) if others or len(state.servers) < state.spec.size else None


def nothing_underway(state: RolloutState) -> Step | None:
    """End the rollout where no server is stale; a server that fails by itself does not begin one."""
    return None if state.stale or state.underway else RolloutDone()


def restarted(state: RolloutState) -> Step | None:
    """Mark a server that is back in its pod, also while the rollout is paused."""
    returned = next((each.pod for each in state.stale if each.state is ServerState.RETURNED), None)
    return MarkUpdated(returned) if state.workload.is_observed and returned is not None else None


def paused(state: RolloutState) -> Step | None:
    """Hold while the rollout is paused. Where only the last new server is yet to get ready, nothing is to be held."""
    return RolloutWait(WaitReason.UNPAUSED) if state.spec.rollout.paused and state.stale else None


def unobserved(state: RolloutState) -> Step | None:
    """Wait until the controller has named the new revision: before that, no pod would be created of it."""
    return None if state.workload.is_observed else RolloutWait(WaitReason.OBSERVED)


def not_running(state: RolloutState) -> Step | None:
    """Update a server whose memcached does not run: it has no keys to lose, so it waits for no pause and no old server.

    One that has ended, as for lack of memory, starts again by itself with what it ran before. It is left that until no
    server of the present template is missing or does not serve, as of that template it might not start. One that
    cannot start by itself, or has not for long, waits only where no server has shown yet that the present template
    does.
    """
    down = [each for each in state.due if each.pod.down and each.state is not ServerState.DIVERTED]
    found = [each for each in down if not _is_left(state, each)]
    return _update(found) if found else None


def while_handing_over(state: RolloutState) -> Step | None:
    """Hold servers that have keys while servers hand over."""
    return RolloutWait(WaitReason.HANDOVER) if state.handing_over and state.stale else None


def missing(state: RolloutState) -> Step | None:
    """Hold while a server has no pod."""
    if not state.missing:
        return None
    longest_s = max(state.missing_s.values(), default=0.0)
    if longest_s < STUCK_AFTER_S:
        return RolloutWait(WaitReason.PODS, STUCK_AFTER_S - longest_s)  # the StatefulSet's controller is making one
    server = f"{state.workload.name}-{max(each for each, for_s in state.missing_s.items() if for_s >= STUCK_AFTER_S)}"
    return Stuck(server, _not_made(server, state))


def unready(state: RolloutState) -> Step | None:
    """Hold while another server is not ready.

    Outdated servers that have been unready past the deadline do not count: they are replaced themselves. The rollout is
    stuck where a server of the present template does not get ready by itself.
    """
    if all(each.state is ServerState.OVERDUE for each in state.away):
        return None
    late_s = (restart_left_s(each.pod, state.now_s) or state.left_s(each.pod, STUCK_AFTER_S) for each in state.away)
    requeue_s = min(filter(None, late_s), default=None)
    stuck = next((each.pod for each in state.away if _keeps_from_going_on(state, each)), None)
    if stuck is not None:
        return Stuck(stuck.name, _not_ready(stuck, len(state.due)), requeue_s)
    return RolloutWait(WaitReason.READY, requeue_s)


def complete(state: RolloutState) -> Step | None:
    """End the rollout once the last server is there."""
    return None if state.stale else RolloutDone()


def pausing(state: RolloutState) -> Step | None:
    """Hold until all servers have been ready for a while before the next is replaced.

    A server that is not ready does not lengthen the pause: it may have keys, and is replaced after it.
    """
    pause_s = state.spec.rollout.minReadySeconds
    left_s = max((state.left_s(each.pod, pause_s) for each in state.servers if each.pod.ready), default=0.0)
    return RolloutWait(WaitReason.PAUSE, left_s) if left_s else None


GATES: Final[tuple[Callable[[RolloutState], Step | None], ...]] = (
    *(controlled_by_deployment, nothing_underway, restarted, paused, unobserved),
    *(not_running, while_handing_over, missing, unready, complete, pausing),
)
"""In this order: what is not the operator's, or over; what is done at once; what keeps the next server."""


def _update(servers: Sequence[RollingServer]) -> Step:
    """Update the one with the highest ordinal."""
    highest = max(servers, key=lambda each: (each.pod.ordinal, each.pod.name))
    return RestartInPlace(highest.pod) if highest.can_restart else Evict(highest.pod)


def _is_left(state: RolloutState, server: RollingServer) -> bool:
    """Report whether a server whose memcached does not run is left as it is for now."""
    unproven = any(not each.is_due for each in state.away)  # by the present template, or on the way to it
    if has_ended(server.pod) and server.state is ServerState.OUTDATED:
        return unproven or bool(state.missing)
    return unproven and not any(each.state is ServerState.CURRENT and each.serves for each in state.servers)


def _keeps_from_going_on(state: RolloutState, server: RollingServer) -> bool:
    """Report whether a server that was replaced or restarted will not get ready by itself."""
    pod = server.pod
    if server.is_due or server.state is ServerState.RESTARTING or state.may_yet_start(pod):
        return False
    return bool(pod.problem) or pod.ready or state.is_past_deadline(pod)


def _not_made(server: str, state: RolloutState) -> str:
    gone = state.missing
    more = f", nor have {gone - 1} others" if gone > 2 else ", nor has another" if gone > 1 else ""
    events = f" The events of `kubectl describe statefulset {state.workload.name}` say why."
    return (
        f"The server {server} has no pod{more}{left_of(len(state.stale))}.{'' if state.missing_reported else events} "
        "Correct the cause or the specification, or restore the previous specification."
    )


def _not_ready(pod: PodRecord, stale: int) -> str:
    why = f" ({pod.problem})" if pod.problem else ""
    if pod.in_place and pod.ready:
        return (
            f"The server {pod.name} has not started its container again{why}{left_of(stale, 'changed')}. Correct the "
            "specification, or restore the previous one."
        )
    if pod.in_place:
        return (
            f"The server {pod.name} is not ready after its change in place{why}{left_of(stale, 'changed')}. Correct "
            "the specification, or restore the previous one: then this server is changed first, and has its items as "
            "long as its pod is there."
        )
    return (
        f"The new server {pod.name} is not ready{why}{left_of(stale)}. Correct the specification, or restore the "
        "previous one: then this server is replaced first."
    )


def left_of(stale: int, done: str = "replaced") -> str:
    return f", so the other {stale} are not {done}" if stale else ""
