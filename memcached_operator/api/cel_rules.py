"""The rules over several fields that the API server itself holds a specification to, in CEL.

They are those of `spec_validation` that are cheap in CEL; a unit test holds the two together. A field that the
schema has a default for is always there.
"""

from __future__ import annotations

from typing import Any, Final

from memcached_operator.api.names import (
    EXTSTORE_MODES,
    EXTSTORE_VOLUME,
    EXTSTORE_WARM,
    FILE_CONNECTIONS,
    HANDOVER_AUTH,
    HANDOVER_EXTSTORE,
    HANDOVER_TLS,
    HANDOVER_WARM,
    HANDOVER_WORKLOAD,
    MAX_CONNECTIONS,
    MEMORY,
    ONE_POD_MODE,
    OWN_CONNECTIONS,
    OWN_CONNECTIONS_OF_A_THREAD,
    PEER_CONNECTIONS_OF_A_THREAD,
    PROXY_CONNECTIONS,
    PROXY_CONNECTIONS_OF_A_THREAD,
    SCALING_WARM,
    SCALING_WORKLOAD,
    THREADS,
    WARM_WORKLOAD,
)
from memcached_operator.api.quantities import mebibytes

_NO_STATEFUL_SET: Final = "self.workload != 'StatefulSet'"
_ONE_AT_A_TIME: Final = "must be omitted when spec.workload is StatefulSet, whose servers are replaced one at a time"
_NO_SCALING: Final = "!has(self.memoryScaling) || self.memoryScaling == null"
_NO_EXTSTORE: Final = "!has(self.extstore) || self.extstore == null"
_NO_HANDOVER: Final = "!has(self.handover) || self.handover == null"
_THREADS: Final = f"(has(self.threads) ? self.threads : {THREADS})"

_CONNECTIONS: Final = f"(has(self.maxConnections) ? self.maxConnections : {MAX_CONNECTIONS})"
_FILES: Final = (
    f"({_NO_EXTSTORE} ? 0 : {FILE_CONNECTIONS}) + (has(self.warmRestart) && self.warmRestart ? {FILE_CONNECTIONS} : 0)"
)
_OWN: Final = f"{OWN_CONNECTIONS} + {OWN_CONNECTIONS_OF_A_THREAD} * {_THREADS} + {_FILES}"
_PEERS: Final = "(has(self.size) && self.size > 1 ? self.size - 1 : 0)"
_OF_PROXY: Final = (
    f"{PROXY_CONNECTIONS} + {_THREADS} * ({PROXY_CONNECTIONS_OF_A_THREAD} + {PEER_CONNECTIONS_OF_A_THREAD} * {_PEERS})"
)


def _mebibytes(memory: str) -> str:
    """The number of a memory in whole Mi or Gi."""
    return f"({memory}.endsWith('Gi') ? 1024 : 1) * int({memory}.substring(0, {memory}.size() - 2))"


def _malformed(memory: str) -> str:
    """Report whether the schema refuses a memory, of which a rule could make no number: one error is enough."""
    return f"!{memory}.matches('^[0-9]{{1,7}}[MG]i$')"


_MEMORY: Final = f"(has(self.memory) ? {_mebibytes('self.memory')} : {mebibytes(MEMORY)})"


def _rule(field: str, message: str, *holds: str, reason: str = "FieldValueInvalid") -> dict[str, str]:
    """A rule that one of several conditions satisfies, about a field of the specification."""
    return {"rule": " || ".join(holds), "message": message, "fieldPath": f".{field}", "reason": reason}


def _omitted(field: str) -> str:
    """Write the CEL rule that a field of `rollout`, which may be null, is left out."""
    return f"!has(self.rollout) || self.rollout == null || !has(self.rollout.{field})"


def _given(field: str) -> str:
    """Write the CEL rule that a field of `extstore.volume`, which may be null, is set."""
    return f"(has(self.extstore.volume.{field}) && self.extstore.volume.{field} != null)"


RULES: Final[list[Any]] = [
    _rule(
        "service.type",
        "must be Headless when spec.workload is StatefulSet, as the DNS names of its servers come from the headless "
        "Service, or Disabled if you create that Service yourself",
        _NO_STATEFUL_SET,
        "self.service.type != 'ClusterIP'",
    ),
    *(
        _rule(f"rollout.{each}", _ONE_AT_A_TIME, _NO_STATEFUL_SET, _omitted(each), reason="FieldValueForbidden")
        for each in ("maxUnavailable", "maxSurge")
    ),
    _rule(
        "rollout.maxUnavailable",
        "must be 1 or more when spec.rollout.maxSurge is 0 or omitted, as no server could be replaced",
        "self.workload == 'StatefulSet'",
        _omitted("maxUnavailable"),
        "!(self.rollout.maxUnavailable == 0 || self.rollout.maxUnavailable == '0%')",
        "(has(self.rollout.maxSurge) && !(self.rollout.maxSurge == 0 || self.rollout.maxSurge == '0%'))",
    ),
    _rule(
        "warmRestart",
        WARM_WORKLOAD,
        "!has(self.warmRestart)",
        "!self.warmRestart",
        "self.workload == 'StatefulSet'",
    ),
    _rule(
        "memoryScaling",
        SCALING_WORKLOAD,
        _NO_SCALING,
        "self.workload == 'StatefulSet'",
        reason="FieldValueForbidden",
    ),
    _rule(
        "memoryScaling",
        SCALING_WARM,
        _NO_SCALING,
        "!has(self.warmRestart)",
        "!self.warmRestart",
        reason="FieldValueForbidden",
    ),
    _rule(
        "memoryScaling.max",
        "must be at least spec.memory, which is the least",
        _NO_SCALING,
        _malformed("self.memoryScaling.max"),
        f"(has(self.memory) && {_malformed('self.memory')})",
        f"{_mebibytes('self.memoryScaling.max')} >= {_MEMORY}",
    ),
    _rule(
        "extstore.volume",
        EXTSTORE_VOLUME,
        _NO_EXTSTORE,
        f"{_given('ephemeral')} != {_given('emptyDir')}",
    ),
    _rule(
        "extstore.volume.ephemeral.accessModes",
        EXTSTORE_MODES,
        _NO_EXTSTORE,
        f"!{_given('ephemeral')}",
        "!has(self.extstore.volume.ephemeral.accessModes)",
        f"!('{ONE_POD_MODE}' in self.extstore.volume.ephemeral.accessModes)",
        f"self.extstore.volume.ephemeral.accessModes.all(each, each == '{ONE_POD_MODE}')",
    ),
    _rule(
        "extstore",
        EXTSTORE_WARM,
        _NO_EXTSTORE,
        "!has(self.warmRestart)",
        "!self.warmRestart",
        reason="FieldValueForbidden",
    ),
    *(
        _rule("handover", message, _NO_HANDOVER, *holds, reason="FieldValueForbidden")
        for message, *holds in (
            (HANDOVER_WORKLOAD, "self.workload == 'StatefulSet'"),
            (HANDOVER_TLS, "!has(self.tls)", "self.tls == null"),
            (HANDOVER_AUTH, "!has(self.auth)", "self.auth == null"),
            (HANDOVER_WARM, "!has(self.warmRestart)", "!self.warmRestart"),
            (HANDOVER_EXTSTORE, _NO_EXTSTORE),
        )
    ),
    _rule(
        "maxConnections",
        f"must be more than {OWN_CONNECTIONS} and {OWN_CONNECTIONS_OF_A_THREAD} for each of spec.threads, which "
        f"memcached keeps for itself, and {FILE_CONNECTIONS} with spec.extstore or spec.warmRestart; with "
        f"spec.handover more than {PROXY_CONNECTIONS} and {PROXY_CONNECTIONS_OF_A_THREAD} for each of them, and "
        f"{PEER_CONNECTIONS_OF_A_THREAD} for each thread and other server",
        f"{_CONNECTIONS} > ({_NO_HANDOVER} ? {_OWN} : {_OF_PROXY})",
    ),
]
