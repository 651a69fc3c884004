"""Migration from `kubectl apply` on the client's side to `kubectl apply --server-side`.

The former records in an annotation what it applied. The first server-side apply by kubectl may take those fields over
without force, as long as they still have the values that were recorded.
"""

from __future__ import annotations

from typing import Final

import orjson

from kube_simulator.patches.compare import compare
from kube_simulator.patches.fieldsets import EMPTY, Fields, difference
from kube_simulator.patches.shapes import Shape
from kube_simulator.patches.typed import owned, problem
from kube_simulator.values import Json

ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER: Final = "kubectl"
"""The field manager for which this is done."""


def taken_over(live: Json, shape: Shape) -> Fields:
    """The fields of an object that still are as kubectl recorded them."""
    text = live["metadata"].get("annotations", {}).get(ANNOTATION)
    if not text:
        return EMPTY
    try:
        applied = orjson.loads(text)
    except orjson.JSONDecodeError:
        return EMPTY
    if not isinstance(applied, dict) or problem(applied, shape):
        return EMPTY
    changed, removed = compare(applied, live, shape)
    return difference(difference(owned(applied, shape), changed), removed)


def recorded(found: Json, applied: Json) -> Json:
    """The object with its record of what is applied to it now, if it has one."""
    annotations = found["metadata"].get("annotations") or {}
    if ANNOTATION not in annotations:
        return found
    metadata = applied.get("metadata") or {}
    others = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != ANNOTATION}
    bare = {**metadata, "annotations": others} if "annotations" in metadata else metadata
    record = orjson.dumps({**applied, "metadata": bare}, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    return {**found, "metadata": {**found["metadata"], "annotations": {**annotations, ANNOTATION: record}}}
