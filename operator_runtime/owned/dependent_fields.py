"""Pure: fields of Kubernetes' own kinds that may not stay as they are where another one is written.

Of some fields one alone may be there, such as the handlers of a probe: the API server refuses a second one, whichever
client wrote the first. Others the API server fills in by the value of a field, and keeps when that changes: what is
there would depend on what was there before, and not on what is desired.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from operator_runtime.owned.compare import Entry, Steps, last_field

_HOOKS: Final = ("exec", "httpGet", "sleep", "tcpSocket")
_PROBES: Final = ("exec", "grpc", "httpGet", "tcpSocket")
# Fields of which one alone may be there, by the field that has them; k8s.io/kubernetes/pkg/apis/*/validation.
_ALTERNATIVES: Final = {
    **dict.fromkeys(("livenessProbe", "readinessProbe", "startupProbe"), _PROBES),
    **dict.fromkeys(("postStart", "preStop"), _HOOKS),
    "env": ("value", "valueFrom"),
    "valueFrom": ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"),
    "clientConfig": ("service", "url"),
    "defaultBackend": ("resource", "service"),
}
_OF_BUDGETS: Final = ("maxUnavailable", "minAvailable")
# Fields that one value of `type` alone allows next to it; of a strategy it is the default.
_OF_A_TYPE: Final = {
    **dict.fromkeys(("strategy", "updateStrategy"), ("RollingUpdate", "rollingUpdate")),
    **dict.fromkeys(("appArmorProfile", "seccompProfile"), ("Localhost", "localhostProfile")),
}
# What the API server fills in by another field; k8s.io/kubernetes/pkg/apis/*/*/defaults.go and conversion.go. An
# account has two names, of which the older one counts where the other is missing.
_FILLED_IN: Final = {
    **{(each, "image"): "imagePullPolicy" for each in ("containers", "initContainers", "ephemeralContainers")},
    ("spec", "egress"): "policyTypes",
    ("spec", "serviceAccountName"): "serviceAccount",
}
_VOLUMES: Final = "volumes"


def companions(steps: Steps, value: object, *, new: bool) -> Iterator[Steps]:
    """The paths to what must go, or be filled in anew, where something is written, unless it is desired as well.

    The sources of volumes, of which there are some thirty, are left to `retained`.

    Args:
        steps: the path to what is written.
        value: what is written; None: it goes.
        new: an entry of a list that is not there yet.
    """
    for at, step in enumerate(steps):
        if isinstance(step, str):
            yield from _of_field(steps[:at], step, value if value is None or at == len(steps) - 1 else ...)
    yield from _within(steps, value, new=new)


def retained(steps: Steps, *, new: bool) -> Steps | None:
    """The path to the volume that is to have no source but the one which is written on that path; None without one."""
    for at, step in enumerate(steps[:-1] if new else steps):
        if isinstance(step, Entry) and last_field(steps[:at]) == _VOLUMES:
            return steps[: at + 1]
    return None


def _within(steps: Steps, value: object, *, new: bool) -> Iterator[Steps]:
    for name, inner in value.items() if isinstance(value, Mapping) else ():
        if not new or last_field(steps) in _ALTERNATIVES:
            yield from _of_field(steps, name, inner)
        if not new:
            yield from _within((*steps, name), inner, new=False)


def _of_field(above: Steps, field: str, value: object) -> Iterator[Steps]:
    part = last_field(above)
    if value is not None:
        alternatives = _OF_BUDGETS if above == ("spec",) else _ALTERNATIVES.get(part, ())
        if field in alternatives:
            yield from ((*above, each) for each in alternatives if each != field)
        type_, of_that = _OF_A_TYPE.get(part, ("", ""))
        if field == of_that:
            yield (*above, "type")
        elif field == "type" and of_that and value != type_:
            yield (*above, of_that)
    if (filled_in := _FILLED_IN.get((part, field))) is not None:
        yield (*above, filled_in)
