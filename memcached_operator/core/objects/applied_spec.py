"""Pure: the specification from which an object was made, as its annotation keeps it.

By it is seen what was taken out of a specification again: a field that the operator does not set is not its own to
compare, so that one which it set before would seem another client's. It has what its object depends on, and no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
from pydantic import ValidationError

from memcached_operator.api.reading import read_fields
from memcached_operator.api.v1alpha1 import HANDOVER_SECONDS, OF_NO_SERVER, Spec
from memcached_operator.core.objects.labels import APPLIED_ANNOTATION

OF_SERVERS: Final = tuple(name for name, field in Spec.model_fields.items() if OF_NO_SERVER not in field.metadata)
"""The fields by which a workload's pods are made, but for the image, which stands in them as it is here."""
_ANY_DURATION: Final = {"periodSeconds": HANDOVER_SECONDS}  # it is no matter of the pods
_DEFAULTS: Final = Spec()


def json_of(spec: Spec, fields: set[str] | None = None) -> dict[str, Any]:
    """A specification, or these fields of it, as JSON has it, with its defaults and without what it does not name."""
    found: dict[str, Any] = _without_nulls(spec.model_dump(include=fields))
    return found


def spec_of(found: Mapping[str, Any]) -> Spec:
    """The specification of what `json_of` made, and of changes of that."""
    return Spec.model_validate(found)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [*map(_without_nulls, value)]
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(each) for name, each in value.items() if each is not None}


def applied_text(spec: Spec, fields: tuple[str, ...] = OF_SERVERS) -> str:
    """The annotation of an object that depends on these fields; those that have their defaults are left out."""
    given = {field for field in fields if getattr(spec, field) != getattr(_DEFAULTS, field)}
    if spec.handover is not None:
        spec = spec.model_copy(update={"handover": spec.handover.model_copy(update=_ANY_DURATION)})
    return msgspec.json.encode(json_of(spec, given), order="sorted").decode()


def applied_spec(annotations: Mapping[str, str] | None) -> Spec | None:
    """Read the specification from which an object was made, in part; None where another client changed that."""
    return _applied_spec((annotations or {}).get(APPLIED_ANNOTATION, ""))


@lru_cache(maxsize=64)  # most specifications are alike
def _applied_spec(text: str) -> Spec | None:
    try:
        return read_fields(text.encode()) if text else None
    except ValidationError:
        return None
