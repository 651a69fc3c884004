"""Pure: reason that a pod is not ready, and whether its memcached ever ran, as far as its status shows.

That a volume cannot be mounted, as where its Secret is missing, is reported by events alone, which are not watched: the
status of such a pod has what it waits for, and not why; see `diagnosis.mount_failures`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from memcached_operator.api.names import RELOADER
from memcached_operator.api.status import Reason
from memcached_operator.core.objects.labels import CONTAINER
from memcached_operator.core.objects.owned_object import SeenCondition

AUTHORITY_REMOVED = "AuthorityRemoved"
"""A reason in a sidecar's report on a memcached that runs, as `reloader.sh` has it: it trusts a CA that was taken out
of its Secret. The other one, `Reason.RELOAD_FAILED`, is a condition's as well."""


class PodProblem(msgspec.Struct, frozen=True, gc=False):
    """Problem of a pod: why it is not ready, or what is wrong with one that is; false for nothing.

    Attributes:
        reason: one word, "" for nothing.
        container: whose, if it is another than memcached's; else "".
    """

    reason: str = ""
    message: str = ""
    container: str = ""

    def __bool__(self) -> bool:
        return bool(self.reason)

    def __str__(self) -> str:
        """Format for people: `CreateContainerConfigError of the container exporter: secret "a" not found`."""
        what = f"{self.reason} of the container {self.container}" if self.container else self.reason
        return f"{what}: {self.message}" if self.message else what

    @property
    def may_pass(self) -> bool:
        """Report whether it often ends by itself, as the wait for a node does."""
        return self.reason == "Unschedulable"

    def cut(self, chars: int) -> PodProblem:
        """Cut to no more characters than that in all."""
        message = self.message[: max(chars - len(str(self)) + len(self.message), 0)]
        return PodProblem(self.reason[:chars], message.rstrip(": "), self.container)


NO_PROBLEM: Final = PodProblem()


class PodCondition(SeenCondition):
    lastTransitionTime: str | None = None
    observedGeneration: int | None = None


class _Waiting(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _ContainerState(msgspec.Struct):
    waiting: _Waiting | None = None
    terminated: _Waiting | None = None


class _Quantities(msgspec.Struct):
    memory: str = ""


class SeenResources(msgspec.Struct):
    """`resources` of a container, as far as they are read."""

    limits: _Quantities | None = None
    requests: _Quantities | None = None

    @property
    def memory(self) -> str:
        """Limit of its memory, "" for none."""
        return self.limits.memory if self.limits is not None else ""


class _ContainerStatus(msgspec.Struct):
    name: str = ""
    resources: SeenResources = msgspec.field(default_factory=SeenResources)
    restartCount: int = 0
    started: bool | None = None
    state: _ContainerState = msgspec.field(default_factory=_ContainerState)
    lastState: _ContainerState = msgspec.field(default_factory=_ContainerState)

    @property
    def halt(self) -> str:
        """Reason that it does not run, "" where it does or is about to."""
        state = self.state.waiting or self.state.terminated
        return state.reason if state is not None and state.reason not in _ORDINARY_WAITS else ""

    @property
    def has_completed(self) -> bool:
        """Report whether it has ended well, as an init container is to."""
        return self.state.terminated is not None and self.state.terminated.reason == _COMPLETED


class PodStatus(msgspec.Struct):
    """`status` of a pod, as far as it is read."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    podIP: str = ""
    conditions: list[PodCondition] | None = None
    containerStatuses: list[_ContainerStatus] | None = None
    initContainerStatuses: list[_ContainerStatus] | None = None

    def condition(self, type_: str) -> PodCondition:
        """The condition of that type, an empty one where there is none."""
        return next((each for each in self.conditions or () if each.type == type_), _NEVER)

    @property
    def memcached(self) -> _ContainerStatus | None:
        """Status of memcached's own container, None before its node has reported it."""
        return next((each for each in self.containerStatuses or () if each.name == CONTAINER), None)


_NEVER: Final = PodCondition()
# A scheduler's message lists what was wrong with each kind of node; its beginning is what a person reads.
_PROBLEM_CHARS: Final = 160
_FAILURE_CHARS: Final = 300
# The sidecar's report has two names and memcached's words in it.
_REPORT_CHARS: Final = 512
# Then it reports preemption.
_NEXT_SENTENCE: Final = ". "
_COMPLETED: Final = "Completed"
_CREATING, _INITIALIZING = "ContainerCreating", "PodInitializing"
# What a container waits for in the ordinary course of starting is no problem.
_ORDINARY_WAITS: Final = ("", _CREATING, _INITIALIZING)
# Of a container that needs one.
_NO_SHELL: Final = PodProblem(
    Reason.INVALID_SPEC.value,
    "spec.warmRestart: must be false with an image that contains no sh, as memcached is run by it; use another image, "
    "or set the field to false",
)
# The kubelet goes to and fro between the two, with each try: one name for both, or each turn would be a status write.
_ONE_NAME: Final = {"ErrImagePull": "ImagePullBackOff"}
# Its message names a Secret, a ConfigMap or a key of one, and is the same with each try.
_IN_FULL: Final = "CreateContainerConfigError"
# Of a pod; Kubernetes 1.29 and newer.
_SANDBOX: Final = "PodReadyToStartContainers"
_UNMOUNTED: Final = PodProblem(
    _CREATING,
    "its volumes or its network are not ready, as where a volume's Secret or ConfigMap does not exist; the events of "
    "`kubectl describe pod` say which",
)
_UNPULLED: Final = PodProblem(_CREATING, "its image is being pulled")
_UNKNOWN: Final = PodProblem(
    _CREATING,
    "its volumes or its network are not ready, or its image is being pulled; the events of `kubectl describe pod` say "
    "which",
)


def may_be_unmounted(wait: PodProblem) -> bool:
    """Report whether a pod may wait for its volumes."""
    return wait in (_UNMOUNTED, _UNKNOWN)


def problem_of(status: PodStatus) -> PodProblem:
    """Explain why a pod is not ready, as far as is known."""
    if reported := next(filter(None, map(_waits_for, _reloaders(status))), NO_PROBLEM):
        return reported
    for container in status.initContainerStatuses or ():
        # A sidecar that ended to report something of a memcached that runs is about to be started again.
        reports = container.name == RELOADER and bool(_outdated(container))
        if container.halt and not container.has_completed and not reports:
            return _halted(container)
    for container in status.containerStatuses or ():
        if container.name == CONTAINER and _has_no_shell(container):
            return _NO_SHELL
        if container.halt:
            return _halted(container)
    if (placed := status.condition("PodScheduled")).status == "False":
        message = placed.message.partition(_NEXT_SENTENCE)[0]
        return PodProblem(placed.reason, message).cut(_PROBLEM_CHARS)
    return NO_PROBLEM


def wait_of(status: PodStatus) -> PodProblem:
    """Return what a pod waits for on its node: a problem only where it takes long."""
    own = status.memcached
    if status.condition("PodScheduled").status != "True":
        return NO_PROBLEM
    if own is not None and own.state.waiting is None:
        return _unready(status) if own.state.terminated is None else NO_PROBLEM
    sandbox = status.condition(_SANDBOX).status
    if sandbox == "False":
        return _UNMOUNTED
    if (first := next(_unfinished(status), None)) is not None:
        return PodProblem(_INITIALIZING, f"memcached waits for the container {first.name}")
    return _UNPULLED if sandbox == "True" else _UNKNOWN


def _unready(status: PodStatus) -> PodProblem:
    """Explain why a pod whose memcached runs is not ready: in the words of a readiness gate, or of its node."""
    ready = status.condition("Ready")
    gates = (each for each in status.conditions or () if f'"{each.type}"' in ready.message and each.message)
    found = next(gates, ready)
    return PodProblem(found.reason or ready.reason, found.message).cut(_PROBLEM_CHARS)


def failure_of(status: PodStatus) -> PodProblem:
    """Explain why a pod has failed, as where its node rejected or evicted it; `NO_PROBLEM` of one that has not."""
    if status.phase != "Failed":
        return NO_PROBLEM
    target, ready = status.condition("DisruptionTarget"), status.condition("Ready")
    reasons = ((each.reason, each.message) for each in (status, target, ready) if each.reason)
    return PodProblem(*next(reasons, ("Failed", status.message))).cut(_FAILURE_CHARS)


def is_down(status: PodStatus) -> bool:
    """Report whether memcached is down, and so has no keys: it has no node, never ran, cannot start, or has ended."""
    own = status.memcached
    waits = any(map(_waits_for, _reloaders(status)))
    return bool(own and own.halt) or waits or status.condition("PodScheduled").status == "False" or _never_ran(status)


def _never_ran(status: PodStatus) -> bool:
    own = status.memcached
    if own is None:
        return status.phase == "Pending"
    return own.state.waiting is not None and not own.restartCount and own.lastState.terminated is None


def _unfinished(status: PodStatus) -> Iterator[_ContainerStatus]:
    """The init containers that are yet to end, and the sidecars among them that are yet to start."""
    return (each for each in status.initContainerStatuses or () if not (each.has_completed or each.started))


def _halted(container: _ContainerStatus) -> PodProblem:
    reason, state = container.halt, container.state.waiting
    message = state.message if reason == _IN_FULL and state is not None else ""
    whose = "" if container.name == CONTAINER else container.name
    return PodProblem(_ONE_NAME.get(reason, reason), message, whose).cut(_PROBLEM_CHARS)


def _has_no_shell(container: _ContainerStatus) -> bool:
    """Report whether its node could not start it for lack of a shell. Of one that runs, the last state is over."""
    waits = container.state.waiting is not None
    ended = (container.lastState.terminated if waits else container.state.terminated) or _Waiting()
    return ended.reason == "StartError" and '"sh"' in ended.message


def outdated_of(status: PodStatus) -> PodProblem:
    """Return what memcached has of its Secrets' former content, in its sidecar's words."""
    return next(filter(None, map(_outdated, _reloaders(status))), NO_PROBLEM)


def _reloaders(status: PodStatus) -> list[_ContainerStatus]:
    """The operator's own sidecar, where there is one."""
    return [each for each in status.initContainerStatuses or () if each.name == RELOADER]


def _reported(reloader: _ContainerStatus) -> PodProblem:
    """Return the sidecar's last report: `reloader.sh` ends with a reason and a message."""
    ended = reloader.state.terminated or reloader.lastState.terminated
    text = ended.message[:_REPORT_CHARS].strip() if ended is not None else ""
    reason, _, message = text.partition(": ")
    return PodProblem(reason, message)


def _waits_for(reloader: _ContainerStatus) -> PodProblem:
    """Explain why the sidecar does not let memcached start."""
    return NO_PROBLEM if reloader.started or _outdated(reloader) else _reported(reloader)


def _outdated(reloader: _ContainerStatus) -> PodProblem:
    reported = _reported(reloader)
    return reported if reported.reason in (AUTHORITY_REMOVED, Reason.RELOAD_FAILED) else NO_PROBLEM
