"""Pure: reason that the claim of a server's disk is not bound: its pod shows that it is not, the claim's events why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from memcached_operator.core.objects.labels import EXTSTORE
from memcached_operator.core.observed.pod_status import NO_PROBLEM, PodProblem
from memcached_operator.core.rollout.diagnosis.pod_creation_failures import Creation

# As the scheduler writes it of any claim of a pod, in words of several forms.
_OF_CLAIMS: Final = ("persistentvolumeclaim", "persistent volume")
_UNSCHEDULABLE: Final = "Unschedulable"
# As the controllers of claims write them while all is in order (events.go of pkg/controller/volume).
_ORDINARY: Final = (
    *("WaitForFirstConsumer", "WaitForPodScheduled", "ExternalProvisioning"),
    *("Provisioning", "ProvisioningSucceeded", "Resizing"),
)
_NEXT_LINE: Final = "\n"
_CHARS: Final = 300


def may_be_unbound(problem: PodProblem) -> bool:
    """Report whether a pod has no node because of a claim."""
    return problem.reason == _UNSCHEDULABLE and any(words in problem.message.lower() for words in _OF_CLAIMS)


def about_claim(pod: str) -> str:
    """The field selector of the events about the claim of a pod's disk."""
    return f"involvedObject.kind=PersistentVolumeClaim,involvedObject.name={claim_of(pod)}"


def claim_of(pod: str) -> str:
    """The claim of a pod's disk, which Kubernetes calls like the pod and the volume."""
    return f"{pod}-{EXTSTORE}"


def why_not_bound(events: Iterable[Creation], pod: str) -> PodProblem:
    """Explain why the claim of a pod's disk is not bound, by its latest event; `NO_PROBLEM` where none explains it."""
    newest = max(events, key=lambda each: each.at_s, default=None)
    if newest is None or newest.reason in _ORDINARY:
        return NO_PROBLEM
    message = newest.message.partition(_NEXT_LINE)[0]
    return PodProblem(_UNSCHEDULABLE, f"{newest.reason} of the claim {claim_of(pod)}: {message}").cut(_CHARS)
