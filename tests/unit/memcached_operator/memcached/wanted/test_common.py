from __future__ import annotations

import json

import msgspec

from memcached_operator.memcached.wanted.common import Manifest, ObjectMeta, OwnerRef, comparable, controller_of, encode
from memcached_operator.memcached.wanted.workload_types import Container, PodSpec
from tests.unit.memcached_operator.memcached.support import wanted_deployment


def test_equal_deployments_have_equal_bytes_whatever_the_order_of_their_labels() -> None:
    there = Manifest(metadata=ObjectMeta(labels={"app": "memcached", "team": "web"}))
    back = Manifest(metadata=ObjectMeta(labels={"team": "web", "app": "memcached"}))
    assert encode(there) == encode(back)


def test_fields_that_are_not_ours_are_left_out_and_empty_lists_stay() -> None:
    container = Container(name="memcached", args=())
    assert json.loads(msgspec.json.encode(PodSpec(containers=(container,)))) == {
        "containers": [{"name": "memcached", "args": []}]
    }


def test_what_is_compared_has_neither_kind_nor_name_nor_preconditions() -> None:
    wanted = wanted_deployment()
    guarded = msgspec.structs.replace(wanted, metadata=msgspec.structs.replace(wanted.metadata, uid="u", generation=3))
    compared = json.loads(comparable(guarded))
    assert set(compared) == {"metadata", "spec"}
    assert set(compared["metadata"]) == {"labels", "annotations", "ownerReferences"}
    assert compared["spec"] == json.loads(encode(wanted))["spec"]


def test_the_controller_is_the_owner_that_says_so() -> None:
    helper = OwnerRef("v1", "ConfigMap", "helper", "1")
    declined = OwnerRef("v1", "Secret", "declined", "2", controller=False)
    boss = OwnerRef("apps/v1", "Boss", "boss", "3", controller=True)
    assert controller_of((helper, declined, boss)) is boss
    assert controller_of((helper, declined)) is None
    assert controller_of(None) is None
