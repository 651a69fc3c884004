"""Compaction of an object as Kubernetes writes its own kinds: empty fields are left out, or there, by their Go type.

Whether a field is a pointer, by which an absent value can be told from an empty one, and whether it is left out where
it is empty, stands in the table of Go types (`go_types`).

Differs from Kubernetes: lists, maps and pointers that are null and not to be left out are left out all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from typing import Any, Final, Literal, NamedTuple

from kube_simulator.kinds import go_types
from kube_simulator.kinds.quantities import canonical
from kube_simulator.kinds.sharing import mapped, shared
from kube_simulator.values import Json

APPS_V1: Final = "k8s.io/api/apps/v1."
COORDINATION_V1: Final = "k8s.io/api/coordination/v1."
CORE_V1: Final = "k8s.io/api/core/v1."
EVENTS_V1: Final = "k8s.io/api/events/v1."
NETWORKING_V1: Final = "k8s.io/api/networking/v1."
RBAC_V1: Final = "k8s.io/api/rbac/v1."
"""What the names of Go types begin with."""

_META = "k8s.io/apimachinery/pkg/apis/meta/v1."
_QUANTITY = "k8s.io/apimachinery/pkg/api/resource.Quantity"
# Of types that are structs in Go and something else in JSON.
_ZEROS: dict[str, object] = {
    f"{_META}Time": None,
    f"{_META}MicroTime": None,
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": 0,
    _QUANTITY: "0",
    "bool": False,
    "bytes": "",
    "double": 0,
    "int32": 0,
    "int64": 0,
    "string": "",
}


class _Field(NamedTuple):
    shape: Literal["", "pointer", "list", "map"]
    omitted: bool
    """Left out where it is empty."""
    write: Callable[[Any], Any] | None
    """What is written of a value, or of each that a list or a map holds; None: the value."""


class _Type(NamedTuple):
    fields: dict[str, _Field]
    always: Json
    """What is there without being given."""


def compact(value: Json, type: str) -> Json:
    """Write a value as Go does.

    Args:
        type: the name of its type in Go, such as `k8s.io/api/core/v1.PodSpec`.

    Returns:
        The value itself where it is written so already. Fields that the type has not stay.
    """
    fields, always = _type(type)
    new: Json = {}
    for name, given in value.items():
        field = fields.get(name)
        if field is None:
            new[name] = given
        elif given is not None:
            written = _field(given, field)
            if written or not field.omitted:
                new[name] = written
    if not new.keys() >= always.keys():
        new = {**always, **new}
    return shared(new, value)


def compact_object(new: Json, type: str) -> Json:
    """The same of a whole object, with its metadata as it is."""
    rest = {key: value for key, value in new.items() if key != "metadata"}
    return {**compact(rest, type), "metadata": new["metadata"]}


def _field(value: Any, field: _Field) -> Any:
    if field.write is None:
        return value
    if field.shape == "list":
        return mapped(field.write, value)
    if field.shape == "map":
        return shared({key: field.write(each) for key, each in value.items()}, value)
    return field.write(value)


@cache
def _type(name: str) -> _Type:
    fields, always = {}, {}
    for field in _fields(name):
        # A pointer to something empty says something.
        omitted = field.omit and field.shape != "pointer"
        fields[field.name] = _Field(field.shape, omitted, _writer(field.type))
        if not field.shape and not field.omit:
            always[field.name] = _ZEROS[field.type] if field.type in _ZEROS else compact({}, field.type)
    return _Type(fields, always)


def _fields(name: str) -> Iterator[go_types.Field]:
    """The fields of a type, with those of the structs that are embedded in it."""
    for field in go_types.fields_of(name):
        if field.name:
            yield field
        else:
            yield from _fields(field.type)


def _writer(type: str) -> Callable[[Any], Any] | None:
    if type == _QUANTITY:
        return _quantity
    return None if type in _ZEROS else partial(compact, type=type)


# Few amounts are written often, and each takes longer to bring into form than the rest of a container.
_of_text = lru_cache(1024)(canonical)


def _quantity(given: object) -> object:
    written = _of_text(given) if isinstance(given, str) else canonical(given)
    return given if written == given else written
