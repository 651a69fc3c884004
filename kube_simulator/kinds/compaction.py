"""Compaction of an object as Kubernetes writes its own kinds: empty fields are left out, or there, by their Go type.

Whether a field is a pointer, by which an absent value can be told from an empty one, and whether it is left out where
it is empty, stands in the table of Go types, `go_types.json.gz`, made by `./dev simulator-schemas` from Kubernetes' Go
types (see NOTICE).

Differs from Kubernetes: lists, maps and pointers that are null and not to be left out are left out all the same.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from importlib import resources as files
from typing import Any, Final, NamedTuple

from kube_simulator.kinds.quantities import canonical
from kube_simulator.values import Json, mapped, shared

APPS_V1: Final = "k8s.io/api/apps/v1."
CORE_V1: Final = "k8s.io/api/core/v1."
"""What the names of Go types begin with."""

_QUANTITY: Final = "k8s.io/apimachinery/pkg/api/resource.Quantity"
# Of types that are structs in Go and something else in JSON.
_ZEROS: Final[dict[str, object]] = {
    "k8s.io/apimachinery/pkg/apis/meta/v1.Time": None,
    "k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime": None,
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": 0,
    _QUANTITY: "0",
    **{"bool": False, "bytes": "", "double": 0, "int32": 0, "int64": 0, "string": ""},
}


class _Type(NamedTuple):
    fields: dict[str, tuple[bool, Callable[[Any], Any]]]
    """Whether a field is left out where it is empty, and what is written of a value."""
    always: Json
    """What is there without being given."""


def type_of(api_version: str, kind: str) -> str:
    """The name of a kind's type, such as `k8s.io/api/core/v1.Pod`."""
    return str(_table()["kinds"][f"{api_version}/{kind}"])


def compact(value: Json | None, type: str) -> Json:
    """Write a value as Go does; of none, what an empty one is.

    Args:
        type: the name of its type in Go, such as `k8s.io/api/core/v1.PodSpec`.

    Returns:
        The value itself where it is written so already. Fields that the type has not stay.
    """
    value = value or {}
    fields, always = _type(type)
    new: Json = {}
    for name, given in value.items():
        omitted, write = fields.get(name, (False, _as_it_is))
        if given is not None or name not in fields:
            written = write(given)
            if written or not omitted:
                new[name] = written
    return shared({**always, **new}, value)


def compact_object(new: Json, type: str = "") -> Json:
    """The same of a whole object, with its metadata as it is; of the type of its kind, if nothing is said."""
    rest = {key: value for key, value in new.items() if key != "metadata"}
    return {**compact(rest, type or type_of(new["apiVersion"], new["kind"])), "metadata": new["metadata"]}


@cache
def _table() -> Json:
    packed = files.files(__package__).joinpath("go_types.json.gz").read_bytes()
    table: Json = json.loads(gzip.decompress(packed))
    return table


@cache
def _type(name: str) -> _Type:
    fields: dict[str, tuple[bool, Callable[[Any], Any]]] = {}
    always: Json = {}
    for row in _rows(name):
        shape, type = row.get("shape", ""), row["type"]
        write: Callable[[Any], Any] = _as_it_is
        if type == _QUANTITY:
            write = _quantity
        elif type not in _ZEROS:
            write = partial(compact, type=type)
        if write is not _as_it_is and shape in ("list", "map"):
            write = partial(mapped if shape == "list" else _mapped_values, write)
        # A pointer to something empty says something.
        fields[row["name"]] = "omit" in row and shape != "pointer", write
        if not shape and "omit" not in row:
            always[row["name"]] = _ZEROS[type] if type in _ZEROS else compact({}, type)
    return _Type(fields, always)


def _rows(name: str) -> Iterator[Json]:
    """The fields of a type, with those of the structs that are embedded in it."""
    for row in _table()["messages"][name]:
        if row.get("name"):
            yield row
        else:
            yield from _rows(row["type"])


def _as_it_is(value: Any) -> Any:
    return value


def _mapped_values(write: Callable[[Any], Any], value: Json) -> Json:
    return shared({key: write(each) for key, each in value.items()}, value)


# Few amounts are written often, and each takes longer to bring into form than the rest of a container.
_of_text = lru_cache(1024)(canonical)


def _quantity(given: object) -> object:
    written = _of_text(given) if isinstance(given, str) else canonical(given)
    return given if written == given else written
