"""What Kubernetes leaves out when it writes an object of its own kinds: null, and most of what is empty.

A field that can be told from an absent one (a pointer in Go) stays: `replicas: 0`, `securityContext: {}`. Which can is
not in the published schemas, so the others are named here.

Differs from Kubernetes: rarely used fields that are empty may stay as they were sent.
"""

from __future__ import annotations

from typing import Any

from memcached_operator.simulator.errors import Json
from memcached_operator.simulator.kinds.quantities import canonical
from memcached_operator.simulator.kinds.sharing import mapped, shared

# Maps of texts; an empty object elsewhere says something.
_MAPS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector", "limits", "requests", "hard", "used"})
_NUMBERS = frozenset({"minReadySeconds", "initialDelaySeconds", "hostPort", "nodePort"})
# Of a probe, where 0 means the default.
_PROBE_NUMBERS = frozenset({"timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"})
_FLAGS = frozenset(
    {"paused", "hostNetwork", "hostPID", "hostIPC", "stdin", "stdinOnce", "tty", "readOnly"}
    | {"publishNotReadyAddresses", "ready"}
)
_KEPT_TEXTS = frozenset({"holderIdentity", "service", "storageClassName", "type"})
_QUANTITIES = frozenset({"limits", "requests", "hard", "used"})
_QUANTITY = frozenset({"sizeLimit", "divisor"})


def compact(value: Any) -> Any:
    """A value of a built-in kind without what Kubernetes leaves out, and with quantities as it writes them."""
    if isinstance(value, dict):
        return _object(value)
    if isinstance(value, list):
        return mapped(compact, value)
    return value


def _object(value: Json) -> Json:
    fields = ((key, _field(key, each)) for key, each in value.items())
    return shared({key: each for key, each in fields if each or not _left_out(key, each)}, value)


def _field(key: str, value: Any) -> Any:
    if key in _QUANTITIES and isinstance(value, dict):
        written = {name: canonical(quantity) for name, quantity in value.items()}
        return value if written == value else written
    if key in _QUANTITY:
        return canonical(value)
    return value if key in _MAPS else compact(value)


def _left_out(key: str, value: object) -> bool:
    """Whether a value that is null, empty, zero or false goes without saying."""
    match value:
        case None | []:
            return True
        case "":
            return key not in _KEPT_TEXTS
        case bool():
            return not value and key in _FLAGS
        case int():
            return value == 0 and (key in _NUMBERS or key in _PROBE_NUMBERS)
        case dict():
            return not value and key in _MAPS
    return False
