"""CustomResourceDefinitions: what is filled in, and what their status begins with.

What a CRD may be is said beside the schemas.
"""

from __future__ import annotations

from kube_simulator.errors import Cause
from kube_simulator.kinds.kind_strategy import Strategy, with_subresource
from kube_simulator.schema import custom
from kube_simulator.values import Json

# The status before anybody has looked at the names.
_FIRST_STATUS = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}}


def _validate(new: Json, old: Json | None) -> list[Cause]:
    return custom.problems_of(new, old)


_BASE = with_subresource(
    custom.defaulted,
    _validate,
    first_status=_FIRST_STATUS,
    kept_on_status=("labels", "annotations", "finalizers", "ownerReferences"),
)


def _prepare_update(new: Json, old: Json, subresource: str) -> Json:
    updated = _BASE.prepare_update(new, old, subresource)
    if subresource == "status":
        return updated
    status = updated.get("status") or {}
    stored = status.get("storedVersions") or []
    storing = [each["name"] for each in updated["spec"].get("versions") or [] if each.get("storage")]
    added = [name for name in storing if name not in stored]
    return {**updated, "status": {**status, "storedVersions": [*stored, *added]}} if added else updated


STRATEGY = Strategy(_BASE.prepare_create, _prepare_update, _BASE.default, _validate)
