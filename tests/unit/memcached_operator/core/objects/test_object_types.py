from __future__ import annotations

import json

import msgspec

from memcached_operator.core.objects.owned_object import as_json, comparable
from tests.unit.memcached_operator.support import desired_deployment


def test_what_is_compared_has_neither_kind_nor_name_nor_preconditions() -> None:
    desired = desired_deployment()
    guarded = msgspec.structs.replace(
        desired, metadata=msgspec.structs.replace(desired.metadata, uid="u", generation=3)
    )
    compared = json.loads(comparable(guarded))
    assert set(compared) == {"metadata", "spec"}
    assert set(compared["metadata"]) == {"labels", "annotations", "ownerReferences"}
    assert compared["spec"] == as_json(desired)["spec"]
