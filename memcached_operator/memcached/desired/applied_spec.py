"""Pure: the specification from which an object was made, as its annotation keeps it.

By it is seen what was taken out of a specification again: a field that the operator does not set is not its own to
compare, so that one which it set before would seem another client's. It has what its object depends on, and no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from memcached_operator.api.names import InvalidSpec
from memcached_operator.memcached.desired.object_types import Manifest
from memcached_operator.memcached.labels import APPLIED_ANNOTATION
from memcached_operator.memcached.spec import Handover, Spec
from memcached_operator.memcached.spec_validation import read_spec

OF_SERVERS: Final = (
    *("workload", "memory", "maxConnections", "threads", "maxItemSize", "extraArgs", "extstore", "resources"),
    *("warmRestart", "handover", "podTemplate", "tls", "auth"),
)
"""The fields by which a workload's pods are made, but for the image, which stands in them as it is here."""
_HANDS_OVER: Final = Handover()
_DEFAULTS: Final = Spec()


def json_of(spec: Spec) -> dict[str, Any]:
    """A specification as JSON has it, with its defaults and without what it does not name."""
    found: dict[str, Any] = _without_nulls(msgspec.to_builtins(spec))
    return found


def spec_of(found: Mapping[str, Any]) -> Spec:
    """The specification of what `json_of` made, and of changes of that."""
    return msgspec.convert(found, Spec)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [*map(_without_nulls, value)]
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(each) for name, each in value.items() if each is not None}


def applied_text(spec: Spec, fields: tuple[str, ...] = OF_SERVERS) -> str:
    """The annotation of an object that depends on these fields; those that have their defaults are left out."""
    given = {field: value for field in fields if (value := getattr(spec, field)) != getattr(_DEFAULTS, field)}
    if "handover" in given:
        given["handover"] = _HANDS_OVER  # its duration is no matter of the pods
    return msgspec.json.encode(given, order="sorted").decode()


def applied_spec(annotations: Mapping[str, str] | None) -> Spec | None:
    """Read the specification from which an object was made; None where another client wrote that, or removed it."""
    text = (annotations or {}).get(APPLIED_ANNOTATION, "")
    try:
        return read_spec(text.encode()) if text else None
    except InvalidSpec:
        return None


def applied_to(manifest: Manifest) -> Spec | None:
    """Read the specification from which that object was made; None likewise."""
    return applied_spec(manifest.metadata.annotations)
