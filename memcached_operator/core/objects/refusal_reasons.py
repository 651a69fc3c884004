"""Pure: classification of refused writes and pods: the reason that a condition bears.

A code shows little of that. A policy answers with the code that its author chose, and every admission plugin with 403,
as missing permissions are. So the reason follows from the API server's words, which a workload's controller repeats of
the pods that it cannot create. Admission has as many words as it has plugins and policies, authorization has one form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memcached_operator.api.names import CONTAINER, RELOADER
from memcached_operator.api.status import Problem, Reason, sentence
from operator_runtime import Forbidden, Invalid, Refused, Reverted, Unwatched

# The first that is found decides; anything else is a refusal by admission. Each names its source, of k8s.io/kubernetes
# 1.36.
_WORDS: Final = (
    # Authorization (`forbiddenMessage` of responsewriters/errors.go), also of the controller that creates the pods, and
    # the plugin that asks for permissions of owners and what they own. Not as a webhook may quote it.
    (
        Reason.FORBIDDEN,
        r"^((Failed to create new replica set \S+|[Cc]reate Pod \S+ in StatefulSet \S+ failed error): )?"
        r"\S+( \"[^\"]*\")? is forbidden: "
        r"(User \".*?\" cannot \S+ (resource|path) \"|cannot set (an ownerRef|blockOwnerDeletion) )",
    ),
    # The admission plugin of ResourceQuotas: of too much, of a container that does not specify how much it takes, of a
    # quota that is not counted yet, and of what may be had under a quota alone.
    (
        Reason.QUOTA_EXCEEDED,
        r"\b(exceeded|failed|status unknown for) quota: |\binsufficient quota to |\bquota usage is negative ",
    ),
    # Webhooks, also those that are to answer and do not; admission policies.
    (Reason.DENIED_BY_POLICY, r"\bdenied (the )?request\b|\bfailed calling webhook "),
    # The API server's own judgement, and plugins that miss what a pod names.
    (
        Reason.INVALID_SPEC,
        r" is invalid: |\bno PriorityClass with name |\bRuntimeClass \S+ not found|\berror looking up service account ",
    ),
)
_REASONS: Final = tuple((reason, re.compile(words)) for reason, words in _WORDS)
# What a ResourceQuota misses, as `limits.cpu for: memcached,reloader; requests.cpu for: …`; of older releases `cpu`.
_UNSPECIFIED: Final = re.compile(r"\bmust specify (.*)")
_OF_CONTAINERS: Final = re.compile(r"(?:(limits|requests)\.)?([\w./-]+) for: ([\w,-]+)")
# What a LimitRange finds.
_OUT_OF_RANGE: Final = re.compile(
    r"\b(?:minimum|maximum) (\S+) usage per Container is [^,]*?(?:, but |No )(limit|request) is "
)
_OUT_OF_RATIO: Final = re.compile(r"\b(\S+) max limit to request ratio per Container is ")
_RESOURCES: Final = "spec.resources"
_OF_SIDECAR: Final = f"spec.podTemplate.spec.initContainers[{RELOADER}].resources"


def is_permission_missing(error: Forbidden) -> bool:
    """Report whether a permission is missing, and no policy or quota refused, which others may satisfy."""
    return refusal_reason(error.message) is Reason.FORBIDDEN


def refusal_reason(message: str) -> Reason:
    """Classify a refusal by the API server's words."""
    return next((reason for reason, words in _REASONS if words.search(message)), Reason.DENIED_BY_POLICY)


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
    # A webhook's words do not name what was refused.
    return reason, f"A policy denied the {kind}: {message}" if reason is Reason.DENIED_BY_POLICY else message


def pods_refused(message: str, *, sidecar: bool) -> Problem:
    """Describe why a workload's controller creates no pods, with the fields that mend it where they are known.

    Args:
        sidecar: the pods have the operator's own next to memcached.
    """
    fields = list(dict.fromkeys(_fields_in(message, sidecar=sidecar)))
    remedy = f" Set {', '.join(fields)}." if fields else ""
    return Problem(refusal_reason(message), f"{sentence(message)}{remedy}" if remedy else message, blocking=False)


def _fields_in(message: str, *, sidecar: bool) -> Iterator[str]:
    if unspecified := _UNSPECIFIED.search(message):
        for kind, resource, containers in _OF_CONTAINERS.findall(unspecified[1]):
            for name in containers.split(","):
                # What bounds memcached bounds the sidecar.
                is_own = name in (CONTAINER, RELOADER)
                whose = _RESOURCES if is_own else f"spec.podTemplate.spec.containers[{name}].resources"
                yield f"{whose}.{kind or 'requests'}.{resource}"
    # It does not name the container.
    ranges = [(f"{kind}s", resource) for resource, kind in _OUT_OF_RANGE.findall(message)]
    ratios = [(kind, resource) for resource in _OUT_OF_RATIO.findall(message) for kind in ("limits", "requests")]
    for kind, resource in (*ranges, *ratios):
        yield from (f"{whose}.{kind}.{resource}" for whose in (_RESOURCES, *([_OF_SIDECAR] if sidecar else [])))
