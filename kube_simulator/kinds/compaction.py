"""Compaction of an object of one of Kubernetes' own kinds: what is null or an empty list is left out.

Differs from Kubernetes: whatever else is empty stays as it was sent, where Go leaves most of it out.
"""

from __future__ import annotations

from typing import Any

from kube_simulator.values import Json, mapped, shared


def compact(value: Json | None) -> Json:
    """The value without nulls and empty lists, at any depth; itself where it has none."""
    value = value or {}
    return shared({name: _compacted(each) for name, each in value.items() if each is not None and each != []}, value)


def compact_object(new: Json) -> Json:
    """The same of a whole object, with its metadata as it is."""
    return {**compact({key: value for key, value in new.items() if key != "metadata"}), "metadata": new["metadata"]}


def _compacted(value: Any) -> Any:
    if isinstance(value, list):
        return mapped(_compacted, value)
    return compact(value) if isinstance(value, dict) else value
