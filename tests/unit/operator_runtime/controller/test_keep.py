"""`Client.keep`: an owned object is made, put right and left alone, also where the cache does not have it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from operator_runtime import Client, Conflict, Invalid, NotOwned, ObjectKey, PlainObject, owner_reference, plain
from operator_runtime.testing.cluster import SimulatedCluster

CONFIG_MAPS = plain("v1", "ConfigMap", "configmaps")
WORDS = ObjectKey("default", "words")


@pytest.fixture
async def client(simulator: SimulatedCluster) -> AsyncIterator[Client]:
    async with simulator.client() as client:
        yield client


@pytest.fixture
async def owner(client: Client) -> PlainObject:
    return await client.create(CONFIG_MAPS, {"metadata": {"namespace": "default", "name": "owner"}})


def words(owner: PlainObject, **data: str) -> dict[str, Any]:
    metadata = {
        "namespace": WORDS.namespace,
        "name": WORDS.name,
        "labels": {"app": "words"},
        "ownerReferences": [owner_reference(CONFIG_MAPS, owner)],
    }
    return {"metadata": metadata, "data": data}


async def test_it_is_made_and_then_left_as_it_is(client: Client, owner: PlainObject) -> None:
    made = await client.keep(CONFIG_MAPS, words(owner, a="1"), None)
    assert made.body["data"] == {"a": "1"}
    assert await client.keep(CONFIG_MAPS, words(owner, a="1"), made) is made


async def test_what_differs_is_put_right_and_what_is_left_out_vanishes(client: Client, owner: PlainObject) -> None:
    made = await client.keep(CONFIG_MAPS, words(owner, a="1", b="2"), None)
    kept = await client.keep(CONFIG_MAPS, words(owner, a="3"), made)
    assert (kept.uid, kept.body["data"]) == (made.uid, {"a": "3"})


async def test_a_label_that_was_taken_off_comes_back(client: Client, owner: PlainObject) -> None:
    made = await client.keep(CONFIG_MAPS, words(owner, a="1"), None)
    await client.patch(CONFIG_MAPS, made, {"metadata": {"labels": None}})
    # A cache of that label has it no more.
    kept = await client.keep(CONFIG_MAPS, words(owner, a="1"), None)
    assert (kept.uid, kept.labels) == (made.uid, {"app": "words"})


async def test_one_that_the_cache_does_not_have_yet_is_left_as_it_is(client: Client, owner: PlainObject) -> None:
    made = await client.keep(CONFIG_MAPS, words(owner, a="1"), None)
    assert (await client.keep(CONFIG_MAPS, words(owner, a="1"), None)).resource_version == made.resource_version


@pytest.mark.parametrize("cached", [True, False])
async def test_a_strangers_is_left_alone(client: Client, owner: PlainObject, *, cached: bool) -> None:
    metadata = {"namespace": WORDS.namespace, "name": WORDS.name}
    theirs = await client.create(CONFIG_MAPS, {"metadata": metadata, "data": {"a": "theirs"}})
    told = "^ConfigMap default/words is there already and is not this ConfigMap's, as it has no controller: rename or"
    with pytest.raises(NotOwned, match=told):
        await client.keep(CONFIG_MAPS, words(owner, a="1"), theirs if cached else None)
    assert await client.get(CONFIG_MAPS, WORDS) == theirs


async def test_another_owners_is_left_alone(client: Client, owner: PlainObject) -> None:
    other = await client.create(CONFIG_MAPS, {"metadata": {"namespace": "default", "name": "other"}})
    theirs = await client.keep(CONFIG_MAPS, words(other, a="theirs"), None)
    with pytest.raises(NotOwned, match="as it is controlled by ConfigMap other: "):
        await client.keep(CONFIG_MAPS, words(owner, a="1"), theirs)
    assert await client.get(CONFIG_MAPS, WORDS) == theirs


async def test_one_that_is_being_deleted_is_left_to_it(client: Client, owner: PlainObject) -> None:
    made = await client.keep(CONFIG_MAPS, words(owner, a="1"), None)
    await client.patch(CONFIG_MAPS, made, {"metadata": {"finalizers": ["example.com/wait"]}})
    await client.delete(CONFIG_MAPS, made)
    going = await client.get(CONFIG_MAPS, WORDS)
    assert await client.keep(CONFIG_MAPS, words(owner, a="2"), going) is going
    # Where the cache does not have it, no watch tells that it is gone: the reconcile must be tried again.
    with pytest.raises(Conflict):
        await client.keep(CONFIG_MAPS, words(owner, a="2"), None)
    assert await client.get(CONFIG_MAPS, WORDS) == going


async def test_a_successor_is_not_taken_for_the_one_that_was_seen(client: Client, owner: PlainObject) -> None:
    seen = await client.keep(CONFIG_MAPS, words(owner, a="1"), None)
    await client.delete(CONFIG_MAPS, seen)
    successor = await client.keep(CONFIG_MAPS, words(owner, a="2"), None)
    with pytest.raises(Invalid, match=r"metadata\.uid"):
        await client.keep(CONFIG_MAPS, words(owner, a="3"), seen)
    assert await client.get(CONFIG_MAPS, WORDS) == successor


async def test_a_body_must_name_its_controller(client: Client, owner: PlainObject) -> None:
    body = words(owner, a="1")
    del body["metadata"]["ownerReferences"]
    with pytest.raises(ValueError, match=r"^metadata.ownerReferences of ConfigMap words names no controller: "):
        await client.keep(CONFIG_MAPS, body, None)
