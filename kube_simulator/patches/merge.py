"""JSON merge patch (RFC 7386): objects are merged, null removes a field, anything else replaces.

Nothing is changed in place: what the patch does not touch, the result shares with the target.
"""

from __future__ import annotations

from typing import Any

from kube_simulator.values import Json, same


def merge_patch(target: Json, patch: Json) -> Json:
    """The target with the patch merged into it; the target itself if that changes nothing."""
    merged = target
    for key, desired in patch.items():
        found = merged.get(key)
        if desired is None:
            if key in merged:
                merged = {name: value for name, value in merged.items() if name != key}
            continue
        new: Any = desired
        if isinstance(desired, dict):
            new = merge_patch(found if isinstance(found, dict) else {}, desired)
        if key in merged and same(new, found):
            continue
        if merged is target:
            merged = dict(target)
        merged[key] = new
    return merged
