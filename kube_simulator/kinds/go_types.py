"""The Go types of Kubernetes' own kinds, as far as they say how an object is written: the table behind `compaction`.

It stands in `go_types.json.gz`, made by `./dev simulator-schemas` from Kubernetes' Go types (see NOTICE).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources as files
from typing import Literal, cast

from kube_simulator.values import Json


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a type. Without a name it is embedded: what it holds stands beside the other fields."""

    name: str
    type: str
    """Another type, or one of string, bytes, raw, bool, int32, int64, double."""
    shape: Literal["", "pointer", "list", "map"]
    """Only a pointer tells an absent value from a zero one; maps are from strings to the type."""
    omit: bool
    """Left out of JSON when empty."""


def type_of(api_version: str, kind: str) -> str:
    """The name of a kind's type, such as `k8s.io/api/core/v1.Pod`."""
    return cast(str, _table()["kinds"][f"{api_version}/{kind}"])


@cache
def fields_of(name: str) -> Sequence[Field]:
    """The fields of a type, in the order of Go."""
    rows = cast(list[Json], _table()["messages"][name])
    return [Field(each.get("name", ""), each["type"], each.get("shape", ""), "omit" in each) for each in rows]


@cache
def _table() -> Mapping[str, Json]:
    packed = files.files(__package__).joinpath("go_types.json.gz").read_bytes()
    return cast(Mapping[str, Json], json.loads(gzip.decompress(packed)))
