"""Owned objects of custom kinds, of which a list is written as a whole, with what others have in it."""

from __future__ import annotations

from typing import Any

import pytest

from operator_runtime import Client, PlainObject, StaleCache
from operator_runtime.testing.cluster import SimulatedCluster
from tests.unit.operator_runtime.owned.ensure_support import CONFIG_MAPS, WORDS, Keeping
from tests.unit.operator_runtime.testing.greetings import CRD, GREETINGS

# Of a kind that nobody serves: the garbage collector looks for the owners of all others.
OTHER = {"apiVersion": "example.com/v1", "kind": "Lost", "name": "other", "uid": "22222222-2222-4222-8222-222222222222"}


@pytest.fixture
async def at(client: Client, simulator: SimulatedCluster) -> Keeping:
    await simulator.apply(CRD)
    owner = await client.create(CONFIG_MAPS, {"metadata": {"namespace": "default", "name": "owner"}})
    return Keeping(client, owner, GREETINGS)


def greeting(at: Keeping, name: str, **labels: str) -> dict[str, Any]:
    body = at.words()
    return {"metadata": body["metadata"] | {"labels": labels}, "spec": {"name": name}}


async def shared(at: Keeping) -> PlainObject:
    """One whose owner somebody has made one that does not control it, beside another."""
    made = await at.ensure(greeting(at, "Ada"))
    (own_reference,) = made.body["metadata"]["ownerReferences"]
    owners = [OTHER, {**own_reference, "blockOwnerDeletion": False}]
    live = await at.client.patch(GREETINGS, made, {"metadata": {"ownerReferences": owners}})
    at.cached(live)
    return live


async def test_what_differs_is_put_right_and_what_is_left_out_goes(at: Keeping) -> None:
    at.cached(await at.ensure(greeting(at, "Ada", a="1", b="2")))
    kept = await at.ensure(greeting(at, "Grace", a="1"), seen=True)
    assert (kept.body["spec"], kept.labels) == ({"name": "Grace"}, {"a": "1"})
    at.cached(kept)
    assert await at.ensure(greeting(at, "Grace", a="1"), seen=True) is kept


async def test_another_owner_stays_in_the_list(at: Keeping) -> None:
    await shared(at)
    kept = await at.ensure(greeting(at, "Ada"), seen=True)
    assert [(each.name, each.block_owner_deletion) for each in kept.owners] == [("other", None), ("owner", True)]


async def test_who_writes_the_list_in_the_same_moment_is_heard_first(
    at: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = await shared(at)
    get = at.client._api.get

    async def then_written(*args: Any) -> bytes:
        answer = await get(*args)
        if args[0] == GREETINGS.resource:
            monkeypatch.undo()
            await at.client.patch(GREETINGS, live, {"metadata": {"labels": {"theirs": "1"}}})
        return answer

    monkeypatch.setattr(at.client._api, "get", then_written)
    with pytest.raises(StaleCache):
        await at.ensure(greeting(at, "Ada"), seen=True)
    left = await at.client.get(GREETINGS, WORDS)
    assert (left.labels, left.owners) == ({"theirs": "1"}, live.owners)
