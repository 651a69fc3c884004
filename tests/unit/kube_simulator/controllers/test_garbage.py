"""What becomes of objects whose owners go: in the background, in the foreground, as orphans."""

from typing import Any

import pytest

from kube_simulator.values import Json
from tests.unit.kube_simulator.controllers.world import World

KEPT = "example.com/kept"
OTHER_UID = "00000000-0000-0000-0000-000000000000"


def reference(owner: Json, *, block: bool = True, **changed: str) -> Json:
    meta = owner["metadata"]
    named = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    return {**named, **({"blockOwnerDeletion": True} if block else {}), **changed}


async def make(world: World, name: str, *references: Json, **metadata: Any) -> Json:
    owners = {"ownerReferences": list(references)} if references else {}
    created = await world.create("configmaps", {"metadata": {"name": name, **owners, **metadata}})
    await world.settle()
    return created


async def delete(world: World, name: str, propagation: Any = None) -> None:
    await world.delete("configmaps", name, propagation)
    await world.settle()


async def release(world: World, name: str) -> None:
    await world.merge("configmaps", name, {"metadata": {"finalizers": None}})
    await world.settle()


def present(world: World) -> list[str]:
    return [name for name in world.names("configmaps") if name != "kube-root-ca.crt"]


async def test_in_the_background_the_owner_goes_first_and_all_generations_follow(world: World) -> None:
    owner = await make(world, "owner")
    child = await make(world, "child", reference(owner))
    await make(world, "grandchild", reference(child))
    await make(world, "stranger")
    await delete(world, "owner")
    assert present(world) == ["stranger"]


async def test_in_the_foreground_the_owner_waits_for_what_blocks_it(world: World) -> None:
    owner = await make(world, "owner")
    child = await make(world, "child", reference(owner))
    await make(world, "grandchild", reference(child), finalizers=[KEPT])
    await delete(world, "owner", "Foreground")
    assert present(world) == ["child", "grandchild", "owner"]
    assert world.get("configmaps", "child")["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert "deletionTimestamp" in world.get("configmaps", "grandchild")["metadata"]
    await release(world, "grandchild")
    assert present(world) == []


async def test_what_does_not_block_is_deleted_too_and_not_waited_for(world: World) -> None:
    owner = await make(world, "owner")
    await make(world, "child", reference(owner, block=False), finalizers=[KEPT])
    await delete(world, "owner", "Foreground")
    assert present(world) == ["child"]
    assert "deletionTimestamp" in world.get("configmaps", "child")["metadata"]


async def test_one_that_blocks_is_enough_to_wait(world: World) -> None:
    owner = await make(world, "owner")
    for name, block in (("a", True), ("b", False)):
        await make(world, name, reference(owner, block=block), finalizers=[KEPT])
    await delete(world, "owner", "Foreground")
    assert present(world) == ["a", "b", "owner"]


async def test_what_is_made_for_an_owner_that_is_on_its_way_out_is_deleted(world: World) -> None:
    owner = await make(world, "owner")
    await make(world, "child", reference(owner), finalizers=[KEPT])
    await delete(world, "owner", "Foreground")
    await make(world, "late", reference(owner))
    assert present(world) == ["child", "owner"]


async def test_an_owner_is_free_when_a_dependent_blocks_it_no_longer(world: World) -> None:
    owner = await make(world, "owner")
    await make(world, "child", reference(owner), finalizers=[KEPT])
    await delete(world, "owner", "Foreground")
    await world.merge("configmaps", "child", {"metadata": {"ownerReferences": [reference(owner, block=False)]}})
    await world.settle()
    assert present(world) == ["child"]


async def test_orphans_stay_and_lose_the_reference(world: World) -> None:
    owner, other = await make(world, "owner"), await make(world, "other")
    await make(world, "child", reference(owner), reference(other))
    await make(world, "only", reference(owner))
    await delete(world, "owner", "Orphan")
    assert present(world) == ["child", "only", "other"]
    assert world.get("configmaps", "child")["metadata"]["ownerReferences"] == [reference(other)]
    assert "ownerReferences" not in world.get("configmaps", "only")["metadata"]


async def test_one_of_several_owners_that_is_left_keeps_it_and_the_others_are_forgotten(world: World) -> None:
    owners = [await make(world, name) for name in ("first", "second")]
    await make(world, "child", *(reference(owner) for owner in owners))
    await delete(world, "first")
    assert world.get("configmaps", "child")["metadata"]["ownerReferences"] == [reference(owners[1])]
    await delete(world, "second", "Foreground")
    assert present(world) == []


async def test_an_owner_that_waits_is_given_up_where_another_is_left(world: World) -> None:
    owners = [await make(world, name) for name in ("first", "second")]
    await make(world, "child", *(reference(owner) for owner in owners))
    await delete(world, "first", "Foreground")
    assert present(world) == ["child", "second"]


@pytest.mark.parametrize("changed", [{"uid": OTHER_UID}, {"name": "nobody"}])
async def test_what_names_an_owner_that_is_not_there_is_collected(world: World, changed: dict[str, Any]) -> None:
    owner = await make(world, "owner")
    await make(world, "child", reference(owner, **changed))
    assert present(world) == ["owner"]


async def test_an_owner_in_another_namespace_is_no_owner(world: World) -> None:
    await world.create("namespaces", {"metadata": {"name": "elsewhere"}}, namespace="")
    owner = await world.create("configmaps", {"metadata": {"name": "owner"}}, namespace="elsewhere")
    await make(world, "child", reference(owner))
    assert present(world) == []


async def test_an_owner_in_no_namespace_is_one(world: World) -> None:
    owner = world.get("namespaces", "shop")
    await make(world, "child", reference(owner))
    assert present(world) == ["child"]


async def test_what_is_in_no_namespace_is_kept_though_its_owner_is_in_one(world: World) -> None:
    owner = await make(world, "owner")
    metadata = {"name": "child", "ownerReferences": [reference(owner, uid=OTHER_UID)]}
    await world.create("namespaces", {"metadata": metadata}, namespace="")
    await world.settle()
    assert not world.gone("namespaces", "child")


async def test_an_owner_of_an_unknown_kind_counts_as_there(world: World) -> None:
    unknown = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "s", "uid": OTHER_UID}
    await make(world, "child", unknown)
    assert present(world) == ["child"]


async def test_what_belonged_to_a_kind_that_is_gone_with_its_owners_is_collected(world: World) -> None:
    """As when a CustomResourceDefinition is deleted: its objects go, and then nobody serves their kind."""
    owner = await make(world, "owner")
    await world.create("secrets", {"metadata": {"name": "child", "ownerReferences": [reference(owner)]}})
    await world.delete("configmaps", "owner")
    world.registry.remove("", "configmaps")
    await world.settle()
    assert world.names("secrets") == []


async def test_what_began_before_the_collector_is_finished_by_it(world: World) -> None:
    owner = await make(world, "owner")
    await make(world, "child", reference(owner))
    await make(world, "waiting")
    await make(world, "last", reference(world.get("configmaps", "waiting")))
    await world.manager.stop()
    await delete(world, "owner")
    await delete(world, "waiting", "Foreground")
    assert present(world) == ["child", "last", "waiting"]
    world.manager.start()
    await world.settle()
    assert present(world) == []


async def test_an_object_that_has_a_finalizer_for_orphans_lets_its_own_go_when_it_is_collected(world: World) -> None:
    owner = await make(world, "owner")
    child = await make(world, "child", reference(owner), finalizers=["orphan"])
    await make(world, "grandchild", reference(child))
    await delete(world, "owner")
    assert present(world) == ["grandchild"]
