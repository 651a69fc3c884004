"""JSON patch (RFC 6902): a list of operations of which all are done or none.

Differs from Kubernetes: it is a library's, which keeps to the RFC: `replace` adds nothing, and no index is negative.
"""

from __future__ import annotations

from typing import Any, cast

import jsonpatch
import jsonpointer

from kube_simulator.errors import ApiError
from kube_simulator.values import Json


def json_patch(target: Json, operations: list[Any]) -> Json:
    """The target after all operations; the target itself stays what it is.

    Raises:
        ApiError: 422 if an operation is unknown or cannot be done: a path is missing, a test fails.
    """
    try:
        patched = jsonpatch.apply_patch(target, operations)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, AttributeError) as error:
        raise ApiError(
            422, "Invalid", f"the server rejected our request due to an error in our request: {error}"
        ) from None
    if not isinstance(patched, dict):
        raise ApiError(422, "Invalid", "the server rejected our request due to an error in our request")
    return cast(Json, patched)
