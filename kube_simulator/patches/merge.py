"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902).

Nothing is changed in place: what a patch does not touch, the result shares with the target.
"""

from __future__ import annotations

from typing import Any

import jsonpatch
import jsonpointer

from kube_simulator.errors import ApiError
from kube_simulator.values import Json, same


def merge_patch(target: Json, patch: Json) -> Json:
    """The target with the patch merged into it: null removes a field; the target itself if that changes nothing."""
    merged = {key: value for key, value in target.items() if key not in patch or patch[key] is not None}
    for key, desired in patch.items():
        found, new = merged.get(key), desired
        if isinstance(desired, dict):
            new = merge_patch(found if isinstance(found, dict) else {}, desired)
        if new is not None and not (key in merged and same(new, found)):
            merged[key] = new
    return target if same(merged, target) else merged


def json_patch(target: Json, operations: list[Any]) -> Json:
    """The target after all operations; the target itself stays what it is.

    Raises:
        ApiError: 422 if an operation is unknown or cannot be done: a path is missing, a test fails.
    """
    why = "the result is no object"
    try:
        patched = jsonpatch.apply_patch(target, operations)
        if isinstance(patched, dict):
            return patched
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, AttributeError) as error:
        why = str(error)
    raise ApiError(422, "Invalid", f"the server rejected our request due to an error in our request: {why}")
