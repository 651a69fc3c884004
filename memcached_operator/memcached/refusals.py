"""Pure: whose move it is when a write is refused, or pods are: the reason that a condition bears.

A code says little of that. A policy answers with the code that its author chose, and every admission plugin with 403,
as missing permissions are. So the reason follows from the API server's words, which a workload's controller repeats of
the pods that it cannot make.
"""

from __future__ import annotations

import re
from typing import Final

from memcached_operator.memcached.state import Reason
from operator_runtime import Forbidden, Invalid, Refused, Reverted, Unwatched

# The first that is found decides; anything else is a permission. Each names what says so, of k8s.io/kubernetes 1.36.
_WORDS: Final = (
    # The admission plugin of ResourceQuotas: of too much, of a container that does not say how much it takes, of a
    # quota that is not counted yet, and of what may be had under a quota alone.
    (
        Reason.QUOTA_EXCEEDED,
        r"\b(exceeded|failed|status unknown for) quota: |\binsufficient quota to |\bquota usage is negative ",
    ),
    # Webhooks, also those that are to answer and do not; admission policies.
    (Reason.DENIED_BY_POLICY, r"\bdenied (the )?request\b|\bfailed calling webhook "),
    # Pod Security, LimitRanges, OpenShift's SecurityContextConstraints.
    (
        Reason.DENIED_BY_POLICY,
        r"\bviolates PodSecurity |\b(minimum|maximum) \S+ usage per |\bmax limit to request ratio per |"
        r"\bsecurity context constraint\b",
    ),
    # The API server's own judgement, and plugins that miss what a pod names.
    (
        Reason.INVALID_SPEC,
        r" is invalid: |\bno PriorityClass with name |\bRuntimeClass \S+ not found|\berror looking up service account ",
    ),
)
_REASONS: Final = tuple((reason, re.compile(words)) for reason, words in _WORDS)


def refusal_reason(message: str) -> Reason:
    """Which reason a refusal falls under, by the API server's words."""
    return next((reason for reason, words in _REASONS if words.search(message)), Reason.FORBIDDEN)


def refused(kind: str, error: Forbidden | Invalid | Refused) -> tuple[Reason, str]:
    """The reason and the message of an object of that kind that could not be kept."""
    match error:
        case Unwatched():
            return Reason.FORBIDDEN, str(error)
        case Reverted():
            return Reason.REVERTED, str(error)
        case Refused():
            return Reason.IMMUTABLE, str(error)
        case Invalid():
            return Reason.INVALID_SPEC, f"The API server refused the {kind}: {error.message or error}"
    reason, message = refusal_reason(error.message), error.message or str(error)
    # A webhook's words do not say what was refused.
    return reason, f"A policy denied the {kind}: {message}" if reason is Reason.DENIED_BY_POLICY else message
