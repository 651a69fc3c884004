from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from memcached_operator.memcached.desired import OWNER_UID_ANNOTATION
from memcached_operator.memcached.objects import encode_deployment
from memcached_operator.memcached.plan import (
    Action,
    Await,
    CannotChange,
    Create,
    LeaveAlone,
    Nothing,
    Repair,
    Scale,
    plan,
)
from memcached_operator.memcached.records import DeploymentRecord
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

CONTROLLING = {"controller": True, "blockOwnerDeletion": True}


def planned(live: DeploymentRecord | dict[str, Any] | None, size: int = 2, image: str = IMAGE) -> Action:
    record = deployment_of(live) if isinstance(live, dict) else live
    return plan(wanted_deployment(size, image), UID, record)


def owned_by(owner: dict[str, Any] | None, *, annotation: str | None = None) -> dict[str, Any]:
    """A Deployment whose specification and labels are just what we want, but whose owner is somebody else."""
    live: dict[str, Any] = json.loads(encode_deployment(wanted_deployment()))
    live["metadata"] |= {"uid": DEPLOYMENT_UID, "resourceVersion": "5", "generation": 1}
    live["metadata"]["ownerReferences"] = [] if owner is None else [CONTROLLING | owner]
    live["metadata"]["annotations"] = {} if annotation is None else {OWNER_UID_ANNOTATION: annotation}
    return live


def memcached(uid: str, **changes: str) -> dict[str, Any]:
    return {"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "name": NAME, "uid": uid} | changes


def test_where_there_is_none_one_is_created() -> None:
    assert planned(None) == Create()


def test_where_all_is_as_wanted_nothing_is_done() -> None:
    assert planned(live_deployment()) == Nothing()


def test_what_others_added_is_no_reason_to_do_anything() -> None:
    live = live_deployment()
    live["metadata"]["labels"]["team"] = "web"
    live["spec"]["template"]["spec"]["containers"].append({"name": "proxy", "image": "proxy:1"})
    assert planned(live) == Nothing()


@pytest.mark.parametrize(("size", "live"), [(3, 2), (0, 2), (2, 0)])
def test_another_number_of_replicas_alone_is_a_scale(size: int, live: int) -> None:
    deployment = live_deployment()
    deployment["spec"]["replicas"] = live
    assert planned(deployment, size) == Scale(DEPLOYMENT_UID, live, size)


def test_another_image_is_a_repair_that_names_it() -> None:
    action = planned(live_deployment(), image="memcached:2")
    assert isinstance(action, Repair)
    assert (action.uid, action.ports) == (DEPLOYMENT_UID, ())
    assert [str(each) for each in action.differences] == [
        f'spec.template.spec.containers[memcached].image was "{IMAGE}", is to be "memcached:2"'
    ]


def test_replicas_beside_another_field_are_one_repair() -> None:
    action = planned(live_deployment(), size=3, image="memcached:2")
    assert isinstance(action, Repair)
    assert len(action.differences) == 2


def test_replicas_that_are_missing_are_a_repair() -> None:
    live = live_deployment()
    del live["spec"]["replicas"]
    assert isinstance(planned(live), Repair)


def test_edited_ports_are_a_repair_of_their_own() -> None:
    live = live_deployment()
    container_of(live)["ports"][0]["containerPort"] = 11212
    container_of(live)["args"] = ["-vv"]
    action = planned(live)
    assert isinstance(action, Repair)
    (ports,) = action.ports
    assert ports.path == "spec.template.spec.containers[memcached].ports"
    assert len(action.differences) == 2


def test_another_selector_cannot_be_changed_and_the_remedy_is_named() -> None:
    live = live_deployment()
    live["spec"]["selector"]["matchLabels"]["memcached_cr"] = "other"
    container_of(live)["image"] = "memcached:2"
    action = planned(live)
    assert action == CannotChange(
        'The Deployment\'s spec.selector.matchLabels[memcached_cr] was "other", is to be "sessions", '
        "which Kubernetes does not allow. Delete the Deployment: a new one follows."
    )


def test_a_deployment_that_is_being_deleted_is_waited_for_even_if_it_differs() -> None:
    live = live_deployment()
    live["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    for size in (2, 3):
        action = planned(live, size)
        assert isinstance(action, Await)
        assert "being deleted" in action.message


def test_a_removed_owner_reference_is_put_back_as_the_annotation_says_whose_it_is() -> None:
    action = planned(owned_by(None, annotation=UID))
    assert isinstance(action, Repair)
    assert [each.path for each in action.differences] == [f"metadata.ownerReferences[{UID}]"]


def test_a_removed_annotation_is_put_back_as_the_owner_reference_says_whose_it_is() -> None:
    action = planned(owned_by(memcached(UID)))
    assert isinstance(action, Repair)
    assert [each.path for each in action.differences] == [f"metadata.annotations[{OWNER_UID_ANNOTATION}]"]


def test_a_strangers_deployment_is_left_alone_also_when_all_but_the_owner_is_as_wanted() -> None:
    action = planned(owned_by(None))
    assert isinstance(action, LeaveAlone)
    assert f"A Deployment named {NAME} exists and has no owner: it is left alone." in action.message


def test_how_to_hand_over_a_deployment_without_an_owner_is_said_and_works() -> None:
    action = planned(owned_by(None))
    assert isinstance(action, LeaveAlone)
    assert f"annotate it with {OWNER_UID_ANNOTATION}=UID" in action.message
    assert isinstance(planned(owned_by(None, annotation=UID)), Repair)


def test_a_deployment_that_another_controller_owns_is_left_alone_and_the_owner_is_named() -> None:
    boss = {"apiVersion": "example.com/v1", "kind": "Boss", "name": "boss", "uid": OTHER_UID}
    for annotation in (None, UID):
        action = planned(owned_by(boss, annotation=annotation))
        assert isinstance(action, LeaveAlone)
        assert "exists and belongs to Boss boss" in action.message
        assert "hand it over" not in action.message


def test_a_strangers_deployment_is_left_alone_also_while_it_is_being_deleted() -> None:
    live = owned_by(None)
    live["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    assert isinstance(planned(live), LeaveAlone)


def test_what_a_deleted_memcached_of_the_same_name_left_to_the_garbage_collector_is_waited_for() -> None:
    for annotation in (None, OTHER_UID):
        action = planned(owned_by(memcached(OTHER_UID), annotation=annotation))
        assert isinstance(action, Await)
        assert "deleted Memcached of the same name" in action.message


@pytest.mark.parametrize("changes", [{"apiVersion": "cache.other.example/v1"}, {"name": "another"}])
def test_what_another_living_memcached_may_own_is_left_alone(changes: dict[str, str]) -> None:
    assert isinstance(planned(owned_by(memcached(OTHER_UID, **changes))), LeaveAlone)


def test_an_owner_reference_with_our_uid_and_another_kind_makes_nothing_ours() -> None:
    assert isinstance(planned(owned_by(memcached(UID, kind="Boss"))), LeaveAlone)


def test_what_a_former_memcached_orphaned_is_left_alone() -> None:
    action = planned(owned_by(None, annotation=OTHER_UID))
    assert isinstance(action, LeaveAlone)
    assert "has no owner" in action.message


def test_the_uid_of_a_change_is_that_of_the_deployment_that_was_judged() -> None:
    record = msgspec.structs.replace(deployment_of(), uid="another")
    assert planned(record, size=5) == Scale("another", 2, 5)
