"""What the Deployment of a Memcached is compared with, by which write it is put right, and whose it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memcached_operator.memcached.labels import OWNER_UID_ANNOTATION
from memcached_operator.memcached.objects import encode
from memcached_operator.memcached.owned import is_ours
from memcached_operator.memcached.workloads.rules import DEPLOYMENT_RULES, NOTED, SHAPE, cheapest
from operator_runtime import Difference, NotOwned, Patch
from tests.unit.memcached_operator.memcached.support import (
    DEPLOYMENT_UID,
    IMAGE,
    NAME,
    OTHER_UID,
    UID,
    container_of,
    deployment_of,
    live_deployment,
    wanted_deployment,
)
from tests.unit.memcached_operator.memcached.world import World

CONTROLLING = {"controller": True, "blockOwnerDeletion": True}


def planned(live: dict[str, Any], size: int = 2, image: str = IMAGE) -> tuple[list[Difference], Patch | None]:
    """What differs, and the patch for it."""
    wanted, record = wanted_deployment(size, image), deployment_of(live)
    found = list(SHAPE.differ(wanted, record))
    return found, cheapest(wanted, record, found)


def owned_by(owner: dict[str, Any] | None, *, annotation: str | None = None) -> dict[str, Any]:
    """A Deployment whose specification and labels are just what we want, but whose owner is somebody else."""
    live: dict[str, Any] = json.loads(encode(wanted_deployment()))
    live["metadata"] |= {"uid": DEPLOYMENT_UID, "resourceVersion": "5", "generation": 1}
    live["metadata"]["ownerReferences"] = [] if owner is None else [CONTROLLING | owner]
    live["metadata"]["annotations"] = {} if annotation is None else {OWNER_UID_ANNOTATION: annotation}
    return live


def memcached(uid: str, **changes: str) -> dict[str, Any]:
    return {"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "name": NAME, "uid": uid} | changes


@pytest.mark.parametrize(("size", "live"), [(3, 2), (0, 2), (2, 0)])
def test_another_number_of_replicas_alone_is_patched(size: int, live: int) -> None:
    deployment = live_deployment()
    deployment["spec"]["replicas"] = live
    found, patch = planned(deployment, size)
    assert patch == Patch({"spec": {"replicas": size}}, found)
    assert found == [Difference("spec.replicas", size, live)]


def test_another_image_is_named_and_applied() -> None:
    found, patch = planned(live_deployment(), image="memcached:2")
    assert patch is None
    assert [str(each) for each in found if each.path not in NOTED] == [
        f'spec.template.spec.containers[memcached].image was "{IMAGE}", is to be "memcached:2"'
    ]


def test_replicas_beside_another_field_are_applied_with_it() -> None:
    found, patch = planned(live_deployment(), size=3, image="memcached:2")
    assert [each.path for each in found if each.path not in NOTED] == [
        "spec.replicas",
        "spec.template.spec.containers[memcached].image",
    ]
    assert patch is None


def test_edited_ports_are_a_patch_of_their_own() -> None:
    live = live_deployment()
    container_of(live)["ports"][0]["containerPort"] = 11212
    container_of(live)["args"] = ["-vv"]
    found, patch = planned(live)
    assert len(found) == 2
    assert patch is not None
    (ports,) = patch.repairs
    assert (ports.path, patch.strategic) == ("spec.template.spec.containers[memcached].ports", True)


def test_a_removed_owner_reference_is_put_back_as_the_annotation_says_whose_it_is() -> None:
    live = owned_by(None, annotation=UID)
    assert is_ours(deployment_of(live), UID)
    assert [each.path for each in planned(live)[0]] == [f"metadata.ownerReferences[{UID}]"]


def test_a_removed_annotation_is_put_back_as_the_owner_reference_says_whose_it_is() -> None:
    live = owned_by(memcached(UID))
    assert is_ours(deployment_of(live), UID)
    assert [each.path for each in planned(live)[0]] == [f"metadata.annotations[{OWNER_UID_ANNOTATION}]"]


BOSS = {"apiVersion": "example.com/v1", "kind": "Boss", "name": "boss", "uid": OTHER_UID}
STRANGERS = {
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
@pytest.mark.parametrize("case", STRANGERS)
async def test_a_strangers_deployment_is_left_alone_and_whose_it_is_is_said(
    world: World, case: str, deleting: bool
) -> None:
    live, whose = STRANGERS[case]
    live = json.loads(json.dumps(live))
    if deleting:
        live["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    assert not is_ours(deployment_of(live), UID)
    world.api.put(live)
    world.show()
    with pytest.raises(NotOwned) as refused:
        await world.keep(wanted_deployment())
    message = str(refused.value)
    assert message.startswith(
        f"A Deployment named {NAME} exists and {whose}: it is left alone. Rename this Memcached or"
    )
    assert (f"annotate it with {OWNER_UID_ANNOTATION}=UID" in message) == ("no owner" in whose)
    assert world.api.calls == []


@pytest.mark.parametrize("annotation", [None, OTHER_UID])
async def test_what_a_deleted_memcached_of_the_same_name_left_to_the_garbage_collector_is_waited_for(
    world: World, annotation: str | None
) -> None:
    world.api.put(owned_by(memcached(OTHER_UID), annotation=annotation))
    world.show()
    kept = await world.keep(wanted_deployment())
    assert kept.obj is None
    assert "deleted Memcached of the same name" in kept.waiting
    assert world.api.calls == []


def test_the_body_is_what_a_manifest_has() -> None:
    body = DEPLOYMENT_RULES.body(wanted_deployment())
    assert (body["kind"], body["metadata"]["name"], body["spec"]["replicas"]) == ("Deployment", NAME, 2)
