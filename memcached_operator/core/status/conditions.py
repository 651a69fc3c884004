"""Pure: conversion of an observation to the status of a Memcached.

The table of conditions is in docs/conditions.md; here is what decides each. Everything derives from the pods, the
workload's record and the last status, never from the order of events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from memcached_operator.api.status import (
    DISCOURAGED,
    OCCASIONAL_CONDITIONS,
    SERVING,
    Drain,
    Problem,
    Reason,
    Status,
    first_names,
    sizes_of,
)
from memcached_operator.core.objects.labels import selector_text
from memcached_operator.core.objects.refusal_reasons import pods_refused
from memcached_operator.core.observed.pod_status import AUTHORITY_REMOVED
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.plan.plan import ListedServers, drained_at
from memcached_operator.core.rollout.workload_decision import Hold
from memcached_operator.core.status.observation import Observation
from memcached_operator.features.memory_scaling.retaining_condition import retaining
from memcached_operator.servers.serving_condition import NOT_QUERIED, certificates, serving_condition, versions
from memcached_operator.servers.stats_cache import ServerHealth
from operator_runtime import Condition, rfc3339, set_conditions

# Of a rollout, whose reason stays until its end. Any client may have written another.
_ROLLING_OUT: Final = (Reason.DEPLOYING, Reason.SCALING, Reason.UPDATING, Reason.MOVING)
_UNREADABLE: Final = "The specification cannot be read."
# When servers come to the operator's own defaults.
_HELD_UNTIL: Final = {
    Hold.PAUSED: "once spec.rollout.paused is false",
    Hold.QUEUED: "after the servers of other Memcacheds",
}


def status_of(observed: Observation, last: Status, now: str) -> Status:
    """The status that `observed` calls for.

    Args:
        last: the live status: foreign conditions and the times of transitions come from it.
        now: RFC 3339 time for transitions that happen now.
    """
    nodes = tuple(sorted(pod.name for pod in observed.pods))
    ready = sum(pod.ready for pod in observed.pods)
    servers = observed.servers
    draining = _draining(servers, last, now) if servers and servers.draining else None
    progressing = _progressing(observed, last, _until(observed, draining) if draining else "")
    available, degraded = _available(observed), _degraded(observed)
    health = observed.health
    serving = _serving(observed, health, last, now) if health is not None else NOT_QUERIED
    more = [observed.handover.condition] if observed.handover.condition is not None else []
    if (decided := observed.scaling) is not None:
        is_queried = health is not None and any(pod.ready for pod in observed.pods)
        more.insert(0, retaining(decided, serving, last, observed.generation, is_queried=is_queried))
    owned = (
        available,
        progressing,
        degraded,
        _ready(observed, progressing, degraded),
        serving,
        _discouraged(observed),
        *more,
    )
    over, memory, sizes = set[str](), last.memory, last.effectiveSizes
    if observed.spec is not None and not observed.terminating:
        over = {*OCCASIONAL_CONDITIONS} - {each.type for each in owned}
        memory, sizes = decided.memory if decided is not None else observed.spec.memory, sizes_of(observed.spec)
    kept = [each for each in last.conditions or () if each.type not in over]
    return Status(
        workload=servers.workload if servers else None,
        service=observed.service or None,
        serverList=servers.listed if servers else None,
        draining=draining,
        handover=observed.handover.state,
        nodes=nodes,
        replicas=len(nodes),
        readyReplicas=ready,
        selector=selector_text(observed.name),
        image=_image(observed, progressing, last),
        version=versions(health, last.version) if health is not None and observed.size != 0 else None,
        memory=memory,
        effectiveSizes=sizes,
        recommendedMemory=decided.recommended if decided is not None else None,
        pendingWrites=tuple(observed.pending_writes) or None,
        observedGeneration=observed.generation,
        conditions=set_conditions(kept, owned, generation=observed.generation, now=now),
    )


def _serving(observed: Observation, health: Sequence[ServerHealth], last: Status, now: str) -> Condition:
    now_s = datetime.fromisoformat(now).timestamp() if certificates(health) else 0.0
    rolling = observed.done.rollout.is_underway
    return serving_condition(health, last.condition(SERVING), now_s, observed.names, rolling=rolling)


def _discouraged(observed: Observation) -> Condition:
    """Report what works as specified and should be specified otherwise: the first reason, and all messages."""
    if advice := observed.advice:
        return Condition(DISCOURAGED, "True", advice[0].reason, " ".join(each.message for each in advice))
    if observed.size is None:
        return Condition(DISCOURAGED, "Unknown", Reason.INVALID_SPEC, _UNREADABLE)
    return Condition(DISCOURAGED, "False", Reason.AS_EXPECTED, "Nothing is specified that is not recommended.")


def _draining(servers: ListedServers, last: Status, now: str) -> tuple[Drain, ...]:
    """Return the servers that drain. Their start is the time of this write, and not of the plan, some writes ago."""
    written = last.draining or ()
    return tuple(
        each if each in written else msgspec.structs.replace(each, startTime=max(each.startTime, now))
        for each in servers.draining
    )


def _until(observed: Observation, draining: Sequence[Drain]) -> str:
    """Describe how many servers drain, and until when the last of them do; "" where none does."""
    number = sum(
        any(pod.workload == each.workload and each.firstOrdinal <= max(pod.ordinal, 0) for each in draining)
        for pod in observed.pods
    )
    drain_s = observed.spec.drainPeriodSeconds if observed.spec is not None else 0
    ends = [at for each in draining if (at := drained_at(each, drain_s)) is not None]
    if not number or not ends:
        return ""
    what = "1 server is" if number == 1 else f"{number} servers are"
    return f" {what} draining until {rfc3339(max(ends)).partition('T')[2]}."


def _image(observed: Observation, progressing: Condition, last: Status) -> str | None:
    """Return the image that all servers run: while another is rolled out it is the one before.

    It changes with the end of a rollout, whose write it shares. Until its controller has seen a Deployment's present
    template, pods run the former, whatever the Deployment has.
    """
    if _is_foreign(observed):
        return None
    workload = observed.done.workload
    if workload is None or not workload.is_observed or progressing.reason != Reason.COMPLETE:
        return last.image
    return workload.image or None


def _is_foreign(observed: Observation) -> bool:
    """Report whether the workload of the Memcached's name has another owner."""
    problem = observed.problem
    return problem is not None and problem.blocking and problem.reason is Reason.NOT_CONTROLLED


def _available(observed: Observation) -> Condition:
    if observed.size is None:
        return Condition("Available", "Unknown", Reason.INVALID_SPEC, _UNREADABLE)
    ready = sum(pod.ready for pod in observed.serving)
    if _is_foreign(observed) and not observed.pods:
        message = f"No server runs: another {observed.kind} has the same name."
        return Condition("Available", "False", Reason.MINIMUM_REPLICAS_UNAVAILABLE, message)
    # While it scales down or replaces pods there may be more than are desired; `readyReplicas` counts these too.
    count = f"{min(ready, observed.size)} of {observed.size} servers are ready"
    if ready >= observed.size - observed.size // 4:  # a quarter, rounded down, may be missing, as of a Deployment
        return Condition("Available", "True", Reason.MINIMUM_REPLICAS_AVAILABLE, f"{count}.")
    why = _commonest_problem(observed)
    message = f"{count}: {why}" if why else f"{count}."
    return Condition("Available", "False", Reason.MINIMUM_REPLICAS_UNAVAILABLE, message)


def _commonest_problem(observed: Observation) -> str:
    if observed.done.workload and observed.done.workload.create_failure:
        return _pods_refused(observed.done.workload).message
    problems = Counter(str(pod.problem) for pod in observed.serving if pod.problem and not pod.ready)
    if not problems:
        if observed.problem and observed.problem.blocking:
            return observed.problem.message
        return _missing_pods(observed) if observed.done.absent or not observed.failure else str(observed.failure)
    # By count, then by name: equal counts must not make the message flap.
    reason, count = min(problems.items(), key=lambda item: (-item[1], item[0]))
    return f"{count} with {reason}" if len(problems) > 1 or count < len(observed.serving) else reason


def _pods_refused(workload: WorkloadRecord) -> Problem:
    return pods_refused(workload.create_failure, sidecar=workload.sidecar)


def _missing_pods(observed: Observation) -> str:
    """A StatefulSet does not report in its status what keeps it from creating pods; see `diagnosis.missing_pods`."""
    workload, size = observed.done.workload, observed.size or 0
    if workload is None or workload.kind != "StatefulSet" or not workload.is_observed or len(observed.target) >= size:
        return ""
    exist = f"{len(observed.target)} of {size} pods exist"
    if observed.done.absent:
        return f"{exist}. {observed.done.absent}"
    return f"{exist}; if that persists, the events of `kubectl describe statefulset {observed.name}` say why"


def _progressing(observed: Observation, last: Status, until: str) -> Condition:
    """
    Args:
        until: until when servers drain, in a sentence after a space.
    """
    workload, spec, pods = observed.done.workload, observed.spec, observed.target
    ready = sum(pod.ready for pod in pods)
    if observed.terminating:
        return Condition("Progressing", "True", Reason.TERMINATING, observed.terminating)
    if observed.problem is not None and observed.problem.blocking:
        # Not Complete: what follows once the problem is over is a rollout, not the loss of a pod.
        message = "Nothing is being changed; see the condition Degraded."
        return Condition("Progressing", "False", observed.problem.reason, message)
    if workload is None or spec is None:
        made = f"The {observed.kind} is being created."
        return Condition("Progressing", "True", Reason.DEPLOYING, observed.waiting or made)
    if workload.deadline_exceeded:
        return Condition("Progressing", "False", Reason.DEADLINE_EXCEEDED, workload.deadline_exceeded)
    if observed.leaving is not None:
        return Condition(
            "Progressing", "True", Reason.MIGRATING, _migrating(observed, workload, ready, spec.size, until)
        )
    if observed.moving:
        return Condition("Progressing", "True", Reason.MOVING, observed.moving)
    if observed.done.rollout.stale or (workload.kind == "Deployment" and len({pod.revision for pod in pods}) > 1):
        return _replacing(observed, workload, spec.rollout.minReadySeconds)
    size, pause_s, existing = spec.size, spec.rollout.minReadySeconds, len(pods)
    counted = f"{size} servers are desired, {existing} exist, {ready} are ready."
    if observed.handover.condition is not None and observed.handover.condition.status == "True":
        return Condition("Progressing", "True", Reason.SCALING, f"{counted} {observed.handover.condition.message}")
    if _is_complete(observed, workload, last):
        message = f"All {size} servers have been rolled out."
        if when := _HELD_UNTIL.get(observed.done.hold):
            message += f" The operator's own defaults have changed: the servers are replaced {when}."
        return Condition("Progressing", "False", Reason.COMPLETE, message)
    by_operator = workload.kind != "Deployment" or observed.done.write_failed
    if existing == ready == size and workload.is_observed and not by_operator:
        counted += f" The rollout of the Deployment completes once the last server has been ready for {pause_s} s."
    return Condition("Progressing", "True", _under_way(observed, workload, last), counted + until)


def _is_complete(observed: Observation, workload: WorkloadRecord, last: Status) -> bool:
    if observed.done.write_failed:
        return False
    ready = sum(pod.ready for pod in observed.target)
    if (
        len(observed.target) == ready == observed.size
        and workload.is_observed
        and _has_one_template(observed, workload)
    ):
        return True
    # A pod that is lost, restarted or replaced in place is no rollout: once complete, stay so.
    before = last.condition("Progressing")
    was_complete = before is not None and before.reason == Reason.COMPLETE
    same = was_complete and last.observedGeneration == observed.generation
    return same and (workload.rolled_out or observed.is_paused)


def _has_one_template(observed: Observation, workload: WorkloadRecord) -> bool:
    """Report whether all pods are of the present template, as far as the workload shows.

    The first template's pods speak for themselves, sooner than the workload does. Of a later template there may be none
    yet, while those of the former are all ready. A Deployment that is paused reports that instead, and no pod is
    stale here.
    """
    return workload.rolled_out or not workload.revised or observed.is_paused


def _under_way(observed: Observation, workload: WorkloadRecord, last: Status) -> Reason:
    """Return the reason of a rollout that is underway; it stays until the end."""
    before = last.condition("Progressing")
    if observed.servers is not None and observed.servers.draining:
        return Reason.SCALING
    if before is not None and before.status == "True" and before.reason in _ROLLING_OUT:
        return Reason(before.reason)
    if observed.done.write_failed:
        return Reason.UPDATING if workload.replicas == observed.size else Reason.SCALING
    if workload.generation == 1:
        return Reason.DEPLOYING
    # Until the workload's controller has reported on the change, the last number of pods decides. (Not today's: its
    # ReplicaSet may be done with a new size before it reports it.)
    scaling = _has_one_template(observed, workload) if workload.is_observed else last.replicas != observed.size
    return Reason.SCALING if scaling else Reason.UPDATING


def _replacing(observed: Observation, workload: WorkloadRecord, pause_s: int) -> Condition:
    stale = observed.done.rollout.stale
    in_place = stale == observed.done.rollout.in_place
    done = "changed" if in_place else "replaced"
    there = max(observed.size or 0, len(observed.target))  # some are ending, or above the size of a Deployment
    left = f"{stale} of {there} servers have not been {done} yet"
    if observed.is_paused:
        message = f"{left}; spec.rollout.paused is true.{_trusting(observed)}"
        return Condition("Progressing", "False", Reason.ROLLOUT_PAUSED, message)
    if workload.kind == "Deployment":
        message = "Pods of the previous template are being replaced."
    else:
        how = "Servers restart in their pods and keep their items" if in_place else "Servers are replaced"
        message = f"{left}. {how}, one at a time, once all have been ready for {pause_s} s."
    message += _trusting(observed)
    unready = [pod for pod in observed.target if pod.problem and not pod.ready]
    if (waits_for := min(unready, key=lambda pod: pod.name, default=None)) is not None:
        message += f" {waits_for.name} is not ready: {waits_for.problem}."
    if observed.ahead:
        message += (
            f" The clock of the node of {observed.ahead[0]} is ahead of the operator's, or the operator's is behind: "
            "pauses count from when the operator saw the servers' state. Synchronize the clocks."
        )
    return Condition("Progressing", "True", Reason.UPDATING, message)


def _trusting(observed: Observation) -> str:
    """List the servers that trust a CA that was removed from their Secret, in a sentence after a space."""
    names = sorted(pod.name for pod in observed.target if pod.outdated.reason == AUTHORITY_REMOVED)
    return f" A CA that is no longer in ca.crt is still accepted by {first_names(names)}." if names else ""


def _migrating(observed: Observation, workload: WorkloadRecord, ready: int, size: int, until: str) -> str:
    moved = observed.servers is not None and observed.servers.workload == workload.kind
    if not moved:
        return (
            f"The servers move from a {observed.leaving} to a {workload.kind}, of which {ready} of {size} are ready. "
            "The list does not change until all are ready."
        )
    left = until or f" The {observed.leaving} is being deleted."
    return f"The list contains the servers of the {workload.kind}.{left}"


def _degraded(observed: Observation) -> Condition:
    if observed.problem is not None:
        return Condition("Degraded", "True", observed.problem.reason, observed.problem.message)
    workload = observed.done.workload
    if workload is not None and workload.create_failure:
        refused = _pods_refused(workload)
        return Condition("Degraded", "True", refused.reason, refused.message)
    # Not True: most failures of that sort are over at the next try.
    message = (
        "Requests to the API server are failing; see the condition Ready."
        if observed.done.write_failed
        else "There is no problem."
    )
    return Condition("Degraded", "False", Reason.AS_EXPECTED, message)


def _ready(observed: Observation, progressing: Condition, degraded: Condition) -> Condition:
    """Report whether all that is specified exists and serves."""
    if observed.size is None:
        return Condition("Ready", "Unknown", Reason.INVALID_SPEC, "The specification cannot be read.")
    status, reason, message = "False", progressing.reason, progressing.message
    ready = sum(pod.ready for pod in observed.serving)
    if degraded.status == "True":
        reason, message = degraded.reason, "See the condition Degraded."
    elif progressing.status == "True" or progressing.reason in (Reason.DEADLINE_EXCEEDED, Reason.ROLLOUT_PAUSED):
        if observed.waiting not in ("", message):
            message = f"{message} {observed.waiting}"
    elif ready < observed.size:
        reason, message = Reason.SERVERS_NOT_READY, f"{ready} of {observed.size} servers are ready."
    elif observed.waiting:
        reason, message = Reason.WAITING, observed.waiting
    else:
        status, reason, message = "True", Reason.ALL_SERVERS_READY, f"All {observed.size} servers are ready."
    return Condition("Ready", status, reason, message)
