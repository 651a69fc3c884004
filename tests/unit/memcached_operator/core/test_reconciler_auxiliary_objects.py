"""What stands beside the servers comes, is kept, and goes, and whatever is in the way of one stops no other."""

from __future__ import annotations

import json
import logging
from copy import deepcopy

import pytest

from memcached_operator.core.objects.labels import OWNER_UID_ANNOTATION, labels
from memcached_operator.features.disruption_budget.budget import BUDGETS
from operator_runtime import UnreadableObject
from operator_runtime.client.errors import Forbidden, ServerError
from tests.unit.fake_server import Json
from tests.unit.memcached_operator import live
from tests.unit.memcached_operator.fake_api import FakeApi
from tests.unit.memcached_operator.support import NAME, NAMESPACE, NO_RIGHT, UID
from tests.unit.memcached_operator.world import DELAY_S, SLOWLY, WRITE_STATUS, World

AUXILIARY = ("Service", "PodDisruptionBudget", "NetworkPolicy", "ConfigMap")
# By kind, what it takes to want none.
NONE: dict[str, Json] = {
    "Service": {"service": {"type": "Disabled"}},
    "PodDisruptionBudget": {"disruptionBudget": {"maxUnavailable": "100%"}},
    "ConfigMap": {"discovery": None},
}
DEFAULTS: Json = {"size": 2, "service": {}, "disruptionBudget": {"maxUnavailable": 1}}


def full_spec() -> Json:
    return live.full_spec() | {"disruptionBudget": {"maxUnavailable": 1}}


def named(kind: str) -> str:
    return f"{NAME}-servers" if kind == "ConfigMap" else NAME


def held(world: World, kind: str) -> Json | None:
    return world.api.objects.get((kind, NAMESPACE, named(kind)))


def object_of(world: World, kind: str) -> Json:
    found = held(world, kind)
    assert found is not None
    return found


async def writes(world: World) -> list[str]:
    """What is sent besides the status until nothing more is."""
    return [each for each in await world.writes() if each != WRITE_STATUS]


@pytest.fixture
async def full(world: World) -> World:
    """A Memcached that asks for everything, and has it."""
    world.memcached(**full_spec())
    await world.settle()
    return world


async def test_everything_is_made_by_one_create_each_and_a_second_reconcile_sends_nothing(world: World) -> None:
    world.memcached(**full_spec())
    assert sorted(await writes(world)) == sorted(["create StatefulSet", *(f"create {kind}" for kind in AUXILIARY)])
    await world.reconcile_shown()
    assert world.api.calls == []
    assert world.status["service"] == NAME
    for kind in ("StatefulSet", *AUXILIARY):
        meta = object_of(world, kind)["metadata"]
        assert meta["annotations"][OWNER_UID_ANNOTATION] == UID
        assert meta["ownerReferences"][0]["uid"] == UID


async def test_by_default_there_are_a_service_and_from_two_servers_on_a_budget(world: World) -> None:
    world.memcached(**DEFAULTS | {"disruptionBudget": None})
    assert sorted(await writes(world)) == ["create Deployment", "create PodDisruptionBudget", "create Service"]
    world.memcached(**DEFAULTS | {"disruptionBudget": None, "size": 1})
    assert "delete PodDisruptionBudget" in await writes(world)
    assert held(world, "PodDisruptionBudget") is None


@pytest.mark.parametrize("kind", AUXILIARY)
async def test_what_somebody_deletes_is_made_again(full: World, kind: str) -> None:
    del full.api.objects[kind, NAMESPACE, named(kind)]
    assert await writes(full) == [f"create {kind}"]


@pytest.mark.parametrize(
    ("kind", "path", "theirs"),
    [
        ("Service", ("spec", "selector"), {"app": "another"}),
        ("PodDisruptionBudget", ("spec", "maxUnavailable"), 0),
        ("NetworkPolicy", ("spec", "ingress"), [{}]),
        ("ConfigMap", ("data", "servers"), "evil:11211\n"),
    ],
)
async def test_drift_is_put_right_by_one_write(full: World, kind: str, path: tuple[str, str], theirs: object) -> None:
    part, field = path
    desired = object_of(full, kind)[part][field]
    for _ in range(2):
        changed = deepcopy(object_of(full, kind))
        changed[part][field] = deepcopy(theirs)
        full.api.put(changed)
        assert await writes(full) == [f"strategic_merge_patch {kind}"]
        assert object_of(full, kind)[part][field] == desired


@pytest.mark.parametrize("kind", AUXILIARY)
async def test_what_is_no_longer_desired_is_deleted_once_and_comes_back(full: World, kind: str) -> None:
    less = full_spec() | NONE.get(kind, {})
    if kind == "NetworkPolicy":
        del less["networkPolicy"]
    if kind == "Service":
        less["workload"] = "StatefulSet"
    full.memcached(**less)
    assert await writes(full) == [f"delete {kind}"]
    assert held(full, kind) is None
    deleted = [each for each in full.recorder.events if each.reason == "Deleted"]
    assert [each.note for each in deleted] == [f"Deleted {kind} {named(kind)}: no longer desired"]
    full.memcached(**full_spec())
    assert await writes(full) == [f"create {kind}"]
    assert "Contested" not in [each.reason for each in full.recorder.events]


def foreign(kind: str) -> Json:
    spec = {"selector": {"matchLabels": {"app": "other"}}} if kind == "PodDisruptionBudget" else {}
    meta = {"name": named(kind), "namespace": NAMESPACE, "labels": labels(NAME)}
    return {"kind": kind, "apiVersion": "v1", "metadata": meta, "spec": spec}


@pytest.mark.parametrize("kind", AUXILIARY)
async def test_a_foreign_one_of_its_name_is_left_alone_and_reported_and_stops_nothing_else(
    world: World, kind: str
) -> None:
    foreign_object = world.api.put(foreign(kind))
    before = json.dumps(foreign_object)
    world.memcached(**full_spec())
    expected = ["create StatefulSet", *(f"create {each}" for each in AUXILIARY if each != kind)]
    assert sorted(await writes(world)) == sorted(expected)
    assert json.dumps(object_of(world, kind)) == before
    assert world.condition("Degraded") == ("True", "NotControlled")
    assert f"A {kind} named {named(kind)} exists" in world.message("Degraded")
    assert world.condition("Progressing")[1] == "Deploying", "it blocks nothing"
    assert world.condition("Ready") == ("False", "NotControlled")
    assert await world.reconcile_shown() == SLOWLY
    assert world.api.calls == []


@pytest.mark.parametrize("kind", AUXILIARY)
async def test_a_kind_that_may_not_be_made_stops_no_other_and_is_made_when_it_may(world: World, kind: str) -> None:
    world.api.refuse("create", kind, Forbidden(403, "Forbidden", NO_RIGHT))
    world.memcached(**full_spec())
    sent = await writes(world)
    assert {f"create {each}" for each in AUXILIARY} | {"create StatefulSet"} == set(sent)
    assert world.condition("Degraded") == ("True", "Forbidden")
    assert NO_RIGHT in world.message("Degraded")
    world.clock.advance(SLOWLY.requeue_after_s or 0.0)
    assert await writes(world) == [f"create {kind}"]
    assert world.condition("Degraded") == ("False", "AsExpected")


@pytest.mark.parametrize("kind", AUXILIARY)
async def test_a_kind_whose_write_fails_is_told_and_tried_again_and_stops_no_other(full: World, kind: str) -> None:
    full.api.refuse("create", kind, *[ServerError(500, "InternalError", "failed calling webhook")] * 2)
    for each in AUXILIARY:
        del full.api.objects[each, NAMESPACE, named(each)]
    for _ in range(2):
        full.show()
        with pytest.raises(ServerError):
            await full.reconcile(after_s=DELAY_S)
    assert [each for each in AUXILIARY if held(full, each) is None] == [kind]
    assert full.condition("Ready")[0] == "False"
    assert f"The API server failed to write the {kind}: failed calling webhook" in full.message("Ready")
    assert full.condition("Degraded") == ("False", "AsExpected")
    assert await writes(full) == [f"create {kind}"]
    assert "webhook" not in full.message("Ready")


# Another budget


SELECTOR: Json = {"matchLabels": {"memcached_cr": NAME}}


def others_budget(api: FakeApi, selector: object = SELECTOR, name: str = "theirs") -> None:
    meta, spec = {"name": name, "namespace": NAMESPACE}, {"minAvailable": 1, "selector": selector}
    api.put({"kind": "PodDisruptionBudget", "metadata": meta, "spec": spec})


async def test_where_another_budget_selects_the_pods_the_own_one_goes_until_that_one_does(full: World) -> None:
    others_budget(full.api)
    assert await writes(full) == ["delete PodDisruptionBudget"]
    assert full.condition("Degraded") == ("True", "ConflictingDisruptionBudget")
    assert "The PodDisruptionBudget theirs also selects the pods" in full.message("Degraded")
    assert await writes(full) == []
    del full.api.objects["PodDisruptionBudget", NAMESPACE, "theirs"]
    assert await writes(full) == ["create PodDisruptionBudget"]
    assert full.condition("Degraded") == ("False", "AsExpected")


@pytest.mark.parametrize(
    ("label", "operator", "selects"),
    [
        ("statefulset.kubernetes.io/pod-name", "Exists", True),
        ("apps.kubernetes.io/pod-index", "Exists", True),
        ("controller-revision-hash", "Exists", True),
        ("statefulset.kubernetes.io/pod-name", "DoesNotExist", False),
        ("pod-template-hash", "DoesNotExist", True),
        ("pod-template-hash", "Exists", False),
    ],
)
async def test_a_budget_that_selects_by_what_a_controller_adds_to_pods_is_another_one_too(
    full: World, label: str, operator: str, *, selects: bool
) -> None:
    others_budget(full.api, {"matchExpressions": [{"key": label, "operator": operator}]})
    assert await writes(full) == (["delete PodDisruptionBudget"] if selects else [])
    assert full.condition("Degraded")[0] == str(selects)


@pytest.mark.parametrize(
    "selector",
    [
        "app=cache",
        {"matchLabels": {"memcached_cr": 1}},
        {"matchLabels": ["memcached_cr"]},
        {"matchExpressions": [{"operator": "Exists"}]},
        {"matchExpressions": [{"key": "memcached_cr", "operator": "Like", "values": ["*"]}]},
    ],
)
async def test_a_budget_whose_selector_cannot_be_read_is_named_and_concerns_no_memcached(
    world: World, selector: object
) -> None:
    others_budget(world.api, selector)
    world.memcached(**full_spec())
    assert sorted(await writes(world)) == sorted(["create StatefulSet", *(f"create {kind}" for kind in AUXILIARY)])
    assert world.condition("Degraded") == ("False", "AsExpected")
    with pytest.raises(UnreadableObject, match=rf"PodDisruptionBudget {NAMESPACE}/theirs: spec\.selector: "):
        BUDGETS.kind.decode(json.dumps(world.api.objects["PodDisruptionBudget", NAMESPACE, "theirs"]).encode())


@pytest.mark.parametrize("null", ["matchLabels", "matchExpressions"])
async def test_a_null_in_a_budgets_selector_is_read_as_nothing_there(full: World, null: str) -> None:
    exists: Json = {"key": "memcached_cr", "operator": "Exists", "values": None}
    others_budget(full.api, {"matchLabels": SELECTOR["matchLabels"], "matchExpressions": [exists]} | {null: None})
    others_budget(full.api, None, "of-none")
    assert await writes(full) == ["delete PodDisruptionBudget"]
    assert full.condition("Degraded") == ("True", "ConflictingDisruptionBudget")


# The Service


async def test_a_service_is_replaced_when_it_is_to_have_an_address_or_none(world: World) -> None:
    world.memcached(**DEFAULTS)
    await writes(world)
    for type_, address in (("ClusterIP", None), ("Headless", "None")):
        world.memcached(**DEFAULTS | {"service": {"type": type_}})
        assert await writes(world) == ["delete Service", "create Service"]
        assert object_of(world, "Service")["spec"].get("clusterIP") == address
    reasons = [each.reason for each in world.recorder.events]
    assert reasons.count("Replaced") == 2
    assert "Contested" not in reasons


async def test_load_balanced_servers_are_told_once_and_again_when_they_are_there_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    by_chance = DEFAULTS | {"service": {"type": "ClusterIP"}}
    reported = []
    with caplog.at_level(logging.WARNING):
        for spec in (by_chance, by_chance | {"size": 3}, by_chance | {"size": 1}, by_chance):
            world.memcached(**spec)
            await writes(world)
            reported.append(len([each for each in world.recorder.events if each.reason == "LoadBalancedServers"]))
    assert reported == [1, 1, 1, 2]
    assert len([each for each in caplog.messages if "load-balances connections" in each]) == 2
    assert world.condition("Discouraged") == ("True", "LoadBalancedServers")
