from __future__ import annotations

import json

import msgspec

from memcached_operator.core.objects.owned_object import OwnerRef, comparable, controller_of, encode
from tests.unit.memcached_operator.support import desired_deployment


def test_what_is_compared_has_neither_kind_nor_name_nor_preconditions() -> None:
    desired = desired_deployment()
    guarded = msgspec.structs.replace(
        desired, metadata=msgspec.structs.replace(desired.metadata, uid="u", generation=3)
    )
    compared = json.loads(comparable(guarded))
    assert set(compared) == {"metadata", "spec"}
    assert set(compared["metadata"]) == {"labels", "annotations", "ownerReferences"}
    assert compared["spec"] == json.loads(encode(desired))["spec"]


def test_the_controller_is_the_owner_that_says_so() -> None:
    helper = OwnerRef("v1", "ConfigMap", "helper", "1")
    declined = OwnerRef("v1", "Secret", "declined", "2", controller=False)
    boss = OwnerRef("apps/v1", "Boss", "boss", "3", controller=True)
    assert controller_of((helper, declined, boss)) is boss
    assert controller_of((helper, declined)) is None
    assert controller_of(None) is None
