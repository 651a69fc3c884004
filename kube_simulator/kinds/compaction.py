"""Compaction of an object of one of Kubernetes' own kinds: nulls, empty lists and a few more are left out."""

from __future__ import annotations

from typing import Any, Final

from kube_simulator.values import Json, mapped, shared

# Maps and flags that Go leaves out where they are empty; other empty values say something (`emptyDir`, `replicas`).
_OMITTED: Final = frozenset(
    {"annotations", "labels", "limits", "matchLabels", "nodeSelector", "overhead", "requests"}
    | {"hostIPC", "hostNetwork", "hostPID", "paused", "publishNotReadyAddresses", "readOnly"}
)


def compact(value: Json | None) -> Json:
    """The value without nulls, empty lists and what else is omitted, at any depth; itself where it has none."""
    value = value or {}
    kept = {
        name: _compacted(each)
        for name, each in value.items()
        if each is not None and each != [] and (each or name not in _OMITTED)
    }
    return shared(kept, value)


def compact_object(new: Json) -> Json:
    """The same of a whole object, with its metadata as it is."""
    return {**compact({key: value for key, value in new.items() if key != "metadata"}), "metadata": new["metadata"]}


def _compacted(value: Any) -> Any:
    if isinstance(value, list):
        return mapped(_compacted, value)
    return compact(value) if isinstance(value, dict) else value
