"""Pure: what was observed -> the status of a Memcached, and the patch that brings the live one there.

The table of conditions is in docs/conditions.md; here is what decides each. Everything derives from the pods, the
Deployment's record and the last status, never from the order of events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from memcached_operator.memcached.desired import selector_text
from memcached_operator.memcached.records import DeploymentRecord, PodRecord
from operator_runtime import UNDECODABLE, Condition, condition_of, decode_nested, set_conditions


class Reason(StrEnum):
    """Every reason that a condition of ours can bear."""

    MINIMUM_REPLICAS_AVAILABLE = "MinimumReplicasAvailable"
    MINIMUM_REPLICAS_UNAVAILABLE = "MinimumReplicasUnavailable"
    DEPLOYING = "Deploying"
    SCALING = "Scaling"
    UPDATING = "Updating"
    TERMINATING = "Terminating"
    COMPLETE = "Complete"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    NOT_CONTROLLED = "NotControlled"
    INVALID_SPEC = "InvalidSpec"
    FORBIDDEN = "Forbidden"
    QUOTA_EXCEEDED = "QuotaExceeded"
    TERMINATION_STALLED = "TerminationStalled"
    AS_EXPECTED = "AsExpected"


class Drain(msgspec.Struct, frozen=True):
    """Servers that left the list and run on for a while.

    Attributes:
        workload: the kind that runs them.
        first: the lowest ordinal of those servers; all from it on are meant.
        since: RFC 3339 time at which they left the list.
    """

    workload: str
    first: int
    since: str


class Status(msgspec.Struct, frozen=True, omit_defaults=True):
    """`status` of a Memcached."""

    nodes: tuple[str, ...] | None = None
    replicas: int | None = None
    readyReplicas: int | None = None
    selector: str | None = None
    image: str | None = None
    workload: str | None = None
    service: str | None = None
    serverList: tuple[str, ...] | None = None
    draining: tuple[Drain, ...] | None = None
    observedGeneration: int | None = None
    conditions: tuple[Condition, ...] | None = None

    def condition(self, type_: str) -> Condition | None:
        """The condition of that type, if there is one."""
        return condition_of(self.conditions, type_)


class Problem(NamedTuple):
    """What makes a Memcached Degraded.

    Attributes:
        blocking: for its sake nothing is changed; False when all else goes on.
    """

    reason: Reason
    message: str
    blocking: bool = True


class Observation(NamedTuple):
    """What one look at the caches found.

    Attributes:
        name: of the Memcached.
        generation: of the Memcached.
        size: pods that are wanted; None when the specification cannot be read.
        deployment: the Deployment that this Memcached controls, None without one.
        pods: the active pods, in any order.
        problem: what keeps the operator from doing its work, None when nothing does.
        waiting: what is being waited for before there can be a Deployment, "" for nothing.
        terminating: what its deletion waits for, "" while it is not being deleted.
    """

    name: str
    generation: int
    size: int | None
    deployment: DeploymentRecord | None
    pods: Sequence[PodRecord]
    problem: Problem | None = None
    waiting: str = ""
    terminating: str = ""


_OUR_CONDITIONS = ("Available", "Progressing", "Degraded")
_decode = msgspec.json.Decoder(Status).decode
_NONE = Status()


def decode_status(body: bytes) -> Status:
    """The live status; an unreadable one (stored under another schema) counts as none and is written anew."""
    try:
        return decode_nested(_decode, body) if body else _NONE
    except UNDECODABLE:
        return _NONE


def status_of(observed: Observation, last: Status, now: str) -> Status:
    """The status that `observed` calls for.

    Args:
        last: the live status: foreign conditions and the times of transitions come from it.
        now: RFC 3339 time for transitions that happen now.
    """
    nodes = tuple(sorted(pod.name for pod in observed.pods))
    ready = sum(pod.ready for pod in observed.pods)
    ours = (
        _available(observed, ready),
        _progressing(observed, ready, last),
        _degraded(observed),
    )
    return Status(
        nodes=nodes,
        replicas=len(nodes),
        readyReplicas=ready,
        selector=selector_text(observed.name),
        image=_image(observed, ours[1], last),
        observedGeneration=observed.generation,
        conditions=set_conditions(last.conditions, ours, generation=observed.generation, now=now),
    )


def status_patch(wanted: Status, last: Status) -> dict[str, object]:
    """The fields of `wanted` that differ from `last`, for a merge patch; empty when there is nothing to write."""
    changed = {
        field: msgspec.to_builtins(getattr(wanted, field))
        for field in Status.__struct_fields__
        if getattr(wanted, field) != getattr(last, field)
    }
    # A status from before there was the image goes with the next write: an upgrade writes nothing.
    return {} if changed.keys() == {"image"} and last.image is None else changed


def our_part(status: Status) -> dict[str, object]:
    """What is ours of a status, by field: no times of conditions, and nobody else's conditions."""
    ours = (each for each in status.conditions or () if each.type in _OUR_CONDITIONS)
    conditions = tuple((each.type, each.status, each.reason, each.message) for each in ours)
    return {field: getattr(status, field) for field in Status.__struct_fields__} | {"conditions": conditions}


def is_settled(wanted: Status, last: Status, size: int | None) -> bool:
    """Whether a change is worth writing at once: its servers are all there, or all ready.

    On the way there each pod would cost a write of its own; those wait a moment for the next one.
    """
    if wanted.nodes != last.nodes:
        return wanted.replicas == size
    return wanted.readyReplicas != last.readyReplicas and wanted.readyReplicas == size


def minimum_available(size: int) -> int:
    """How many ready pods make a Deployment of that size available: a quarter, rounded down, may be missing.

    It is the Deployment's own rule (maxUnavailable 25 %), which we leave at its default.
    """
    return size - size // 4


def _image(observed: Observation, progressing: Condition, last: Status) -> str | None:
    """What all servers run: while another image is rolled out it is the one before.

    It changes with the end of a rollout, whose write it shares. Until its controller has seen a Deployment's present
    template, pods run the former, whatever the Deployment says.
    """
    if observed.problem and observed.problem.reason is Reason.NOT_CONTROLLED:
        return None
    deployment = observed.deployment
    if deployment is None or not deployment.settled or progressing.reason != Reason.COMPLETE:
        return last.image
    return deployment.image or None


def _available(observed: Observation, ready: int) -> Condition:
    if observed.size is None:
        return Condition("Available", "Unknown", Reason.INVALID_SPEC, "The specification cannot be read.")
    if observed.problem and observed.problem.reason is Reason.NOT_CONTROLLED:
        message = "No server runs: another Deployment bears the name."
        return Condition("Available", "False", Reason.MINIMUM_REPLICAS_UNAVAILABLE, message)
    # While it scales down or replaces pods there may be more than are wanted; `readyReplicas` counts these too.
    count = f"{min(ready, observed.size)} of {observed.size} servers are ready"
    if ready >= minimum_available(observed.size):
        return Condition("Available", "True", Reason.MINIMUM_REPLICAS_AVAILABLE, f"{count}.")
    why = _commonest_problem(observed)
    message = f"{count}: {why}" if why else f"{count}."
    return Condition("Available", "False", Reason.MINIMUM_REPLICAS_UNAVAILABLE, message)


def _commonest_problem(observed: Observation) -> str:
    if observed.deployment and observed.deployment.create_failure:
        return observed.deployment.create_failure
    problems = Counter(pod.problem for pod in observed.pods if pod.problem and not pod.ready)
    if not problems:
        return observed.problem.message if observed.problem and observed.problem.blocking else ""
    # By count, then by name: equal counts must not make the message flap.
    reason, count = min(problems.items(), key=lambda item: (-item[1], item[0]))
    return f"{count} with {reason}" if len(problems) > 1 or count < len(observed.pods) else reason


def _progressing(observed: Observation, ready: int, last: Status) -> Condition:
    deployment, size = observed.deployment, observed.size
    if observed.terminating:
        return Condition("Progressing", "True", Reason.TERMINATING, observed.terminating)
    if observed.problem is not None and observed.problem.blocking:
        # Not Complete: what follows once the problem is over is a rollout, not the loss of a pod.
        message = "Nothing is being changed; see the condition Degraded."
        return Condition("Progressing", "False", observed.problem.reason, message)
    if deployment is None or size is None:
        return Condition("Progressing", "True", Reason.DEPLOYING, observed.waiting or "The Deployment is being made.")
    if deployment.deadline_exceeded:
        return Condition("Progressing", "False", Reason.DEADLINE_EXCEEDED, deployment.deadline_exceeded)
    if len({pod.template_hash for pod in observed.pods}) > 1:
        return Condition("Progressing", "True", Reason.UPDATING, "Pods of the former template are being replaced.")
    before = last.condition("Progressing")
    existing = len(observed.pods)
    # The first template's pods speak for themselves, sooner than the Deployment does. Of a later template there may be
    # none yet, while those of the former are all ready.
    one_template = deployment.rolled_out or not deployment.revised
    complete = existing == ready == size and deployment.settled and one_template
    # A pod that is lost, restarted or replaced in place is no rollout: once complete, stay so.
    stays_complete = (
        before is not None
        and before.reason == Reason.COMPLETE
        and last.observedGeneration == observed.generation
        and deployment.rolled_out
    )
    if complete or stays_complete:
        return Condition("Progressing", "False", Reason.COMPLETE, f"All {size} servers have been rolled out.")
    if before is not None and before.status == "True":
        reason = before.reason
    elif deployment.generation == 1:
        reason = Reason.DEPLOYING
    else:
        # Until the Deployment's controller has told what it made of the change, the last number of pods does. (Not
        # today's: its ReplicaSet may be done with a new size before it says so.)
        scaling = one_template if deployment.settled else last.replicas != size
        reason = Reason.SCALING if scaling else Reason.UPDATING
    return Condition("Progressing", "True", reason, f"{size} servers are wanted, {existing} exist, {ready} are ready.")


def _degraded(observed: Observation) -> Condition:
    if observed.problem is not None:
        return Condition("Degraded", "True", observed.problem.reason, observed.problem.message)
    deployment = observed.deployment
    if deployment is not None and deployment.create_failure:
        reason = refusal_reason(deployment.create_failure)
        return Condition("Degraded", "True", reason, deployment.create_failure)
    return Condition("Degraded", "False", Reason.AS_EXPECTED, "Nothing is in the way.")


def refusal_reason(message: str) -> Reason:
    """Which reason a refusal of the API server falls under; quotas are told apart by their admission plugin's words."""
    return Reason.QUOTA_EXCEEDED if "exceeded quota" in message else Reason.FORBIDDEN
