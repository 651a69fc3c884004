"""What the Deployment of a Memcached is compared with, and whose it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memcached_operator.core.objects.labels import APPLIED_ANNOTATION, OWNER_UID_ANNOTATION
from memcached_operator.core.objects.owned_object import as_json, is_owned
from memcached_operator.core.objects.workload import CODEC
from operator_runtime import Difference, NotOwned
from tests.unit.memcached_operator.support import (
    DEPLOYMENT_UID,
    IMAGE,
    NAME,
    OTHER_UID,
    UID,
    deployment_of,
    desired_deployment,
)
from tests.unit.memcached_operator.world import World

CONTROLLING = {"controller": True, "blockOwnerDeletion": True}


def found(live: dict[str, Any], size: int = 2, image: str = IMAGE) -> list[Difference]:
    """What differs."""
    return list(CODEC.differ(desired_deployment(size, image), deployment_of(live)))


def owned_by(owner: dict[str, Any] | None, *, annotation: str | None = None) -> dict[str, Any]:
    """A Deployment whose specification and labels are just what we want, but whose owner is somebody else."""
    live: dict[str, Any] = as_json(desired_deployment())
    live["metadata"] |= {"uid": DEPLOYMENT_UID, "resourceVersion": "5", "generation": 1}
    live["metadata"]["ownerReferences"] = [] if owner is None else [CONTROLLING | owner]
    live["metadata"]["annotations"] = {APPLIED_ANNOTATION: "{}"}
    if annotation is not None:
        live["metadata"]["annotations"][OWNER_UID_ANNOTATION] = annotation
    return live


def memcached(uid: str, **changes: str) -> dict[str, Any]:
    return {"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "name": NAME, "uid": uid} | changes


def test_a_removed_owner_reference_is_put_back_as_the_annotation_says_whose_it_is() -> None:
    live = owned_by(None, annotation=UID)
    assert is_owned(deployment_of(live), UID)
    assert [each.path for each in found(live)] == [f"metadata.ownerReferences[{UID}]"]


def test_a_removed_annotation_is_put_back_as_the_owner_reference_says_whose_it_is() -> None:
    live = owned_by(memcached(UID))
    assert is_owned(deployment_of(live), UID)
    assert [each.path for each in found(live)] == [f"metadata.annotations[{OWNER_UID_ANNOTATION}]"]


BOSS = {"apiVersion": "example.com/v1", "kind": "Boss", "name": "boss", "uid": OTHER_UID}
FOREIGN = {
    "nobody's": (owned_by(None), "has no owner"),
    "one of a former Memcached, orphaned": (owned_by(None, annotation=OTHER_UID), "has no owner"),
    "another controller's": (owned_by(BOSS), "belongs to Boss boss"),
    "another controller's, with our annotation": (owned_by(BOSS, annotation=UID), "belongs to Boss boss"),
    "a Memcached's of another group": (
        owned_by(memcached(OTHER_UID, apiVersion="cache.other.example/v1")),
        f"belongs to Memcached {NAME}",
    ),
    "another Memcached's": (owned_by(memcached(OTHER_UID, name="another")), "belongs to Memcached another"),
    "one of our uid and another kind": (owned_by(memcached(UID, kind="Boss")), f"belongs to Boss {NAME}"),
}


@pytest.mark.parametrize("deleting", [False, True])
@pytest.mark.parametrize("case", FOREIGN)
async def test_a_foreign_deployment_is_left_alone_and_its_owner_reported(
    world: World, case: str, deleting: bool
) -> None:
    live, whose = FOREIGN[case]
    live = json.loads(json.dumps(live))
    if deleting:
        live["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    assert not is_owned(deployment_of(live), UID)
    world.api.put(live)
    world.show()
    with pytest.raises(NotOwned) as refused:
        await world.keep(desired_deployment())
    message = str(refused.value)
    assert message.startswith(
        f"A Deployment named {NAME} exists and {whose}: it is not changed. Rename this Memcached or"
    )
    assert (f"annotate it with {OWNER_UID_ANNOTATION}=UID" in message) == ("no owner" in whose)
    assert world.api.calls == []


@pytest.mark.parametrize("annotation", [None, OTHER_UID])
async def test_what_a_deleted_memcached_of_the_same_name_left_to_the_garbage_collector_is_waited_for(
    world: World, annotation: str | None
) -> None:
    world.api.put(owned_by(memcached(OTHER_UID), annotation=annotation))
    world.show()
    kept = await world.keep(desired_deployment())
    assert kept.obj is None
    assert "deleted Memcached of the same name" in kept.waiting
    assert world.api.calls == []
