"""`Operator.owned`: an owned object is made, put right and left alone, also where the cache does not have it."""

from __future__ import annotations

from typing import Any
from unittest.mock import AsyncMock

import msgspec
import pytest

from operator_runtime import (
    Client,
    Conditions,
    Conflict,
    Difference,
    Forbidden,
    Invalid,
    Kind,
    NotOwned,
    ObjectKey,
    PlainObject,
    Result,
    Reverted,
    Rules,
    StaleCache,
    Store,
    plain,
    typed,
)
from operator_runtime.cache.store import Selection
from operator_runtime.owned.contention import REPAIRS
from operator_runtime.owned.owners import REFUSED_S
from tests.unit.operator_runtime.owned.ensure_support import CONFIG_MAPS, WORDS, Keeping


async def test_it_is_made_and_then_left_as_it_is_also_before_the_cache_has_it(at: Keeping) -> None:
    made = await at.ensure(at.words(a="1"))
    assert made.body["data"] == {"a": "1"}
    assert (await at.ensure(at.words(a="1"))).resource_version == made.resource_version
    at.cached(made)
    assert await at.ensure(at.words(a="1"), seen=True) is made
    assert [(change.before, change.desired_changed) for change in at.changes] == [(None, True)]


def of_data(desired: dict[str, Any], live: PlainObject) -> list[Difference]:
    assert live.controller is not None, "a type may have nothing of what is a stranger's"
    data = live.body["data"]
    return [] if data == desired["data"] else [Difference(("data",), desired["data"], data)]


async def test_what_differs_is_put_right_and_told_and_what_is_left_out_vanishes(at: Keeping) -> None:
    made = await at.ensure(at.words(a="1", b="2"))
    at.cached(made)
    kept = await at.ensure(at.words(a="3"))
    assert (kept.uid, kept.body["data"]) == (made.uid, {"a": "3"})
    assert [str(each) for each in at.changes[-1].fields] == ['data[a]: "1" → "3"', 'data[b]: "2" → absent']
    at.cached(kept)
    assert await at.ensure(at.words(a="3")) is kept


async def test_a_field_that_the_kind_has_not_is_refused_and_not_dropped(at: Keeping) -> None:
    made = await at.ensure(at.words(a="1"))
    at.cached(made)
    with pytest.raises(Invalid, match='unknown field "dat"'):
        await at.ensure(at.words(a="2") | {"dat": {"a": "1"}}, seen=True)
    assert await at.client.get(CONFIG_MAPS, WORDS) == made


async def test_a_label_that_was_taken_off_comes_back(at: Keeping) -> None:
    made = await at.ensure(at.words(a="1"))
    await at.client.patch(CONFIG_MAPS, made, {"metadata": {"labels": None}})
    # A cache of that label has it no more.
    kept = await at.ensure(at.words(a="1"))
    assert (kept.uid, kept.labels) == (made.uid, {"app": "words"})


@pytest.mark.parametrize("seen", [True, False])
async def test_a_foreign_object_that_no_cache_shows_is_not_read_again_for_a_while(
    client: Client, at: Keeping, monkeypatch: pytest.MonkeyPatch, *, seen: bool
) -> None:
    at = Keeping(client, at.owner, store=Store(selection=Selection(labels="app=words")))
    foreign_object = await at.foreign_object()
    get = AsyncMock(wraps=at.client.get)
    monkeypatch.setattr(at.client, "get", get)
    for _ in range(3):
        with pytest.raises(NotOwned, match="has no owner: it is not changed"):
            await at.ensure(at.words(a="1"), seen=seen)
    desired_changed = get.await_count
    assert desired_changed == 1 + seen, "for the object, and for the owner where one was made before"
    await at.client.delete(CONFIG_MAPS, foreign_object)
    with pytest.raises(NotOwned):
        await at.ensure(at.words(a="1"), seen=seen)
    assert get.await_count == desired_changed
    at.clock.advance(REFUSED_S)
    await at.client.delete(CONFIG_MAPS, await at.ensure(at.words(a="1"), seen=seen))
    shown = await at.foreign_object(labels={"app": "words"})
    with pytest.raises(NotOwned):
        await at.ensure(at.words(a="1"))
    await at.client.delete(CONFIG_MAPS, shown)
    assert (await at.ensure(at.words(a="1"))).body["data"] == {"a": "1"}, "the watch is to show that one"


@pytest.mark.parametrize("takes", ["create", "patch"])
async def test_what_is_taken_from_us_within_our_write_is_left_alone_and_neither_compared_nor_told_of(
    at: Keeping, monkeypatch: pytest.MonkeyPatch, takes: str
) -> None:
    rules = Rules(differences=of_data, key=lambda _: WORDS, body=lambda desired: desired)
    at = Keeping(at.client, at.owner, rules=rules)
    write = getattr(at.client, takes)

    async def taken(kind: Kind[PlainObject], *args: Any, **options: Any) -> PlainObject:
        made = await write(kind, *args, **options)
        return await strip(kind, made, {"metadata": {"ownerReferences": None}})

    strip = at.client.patch
    if takes == "patch":
        at.cached(await at.ensure(at.words(a="1")))
    reported = len(at.changes)
    monkeypatch.setattr(at.client, takes, taken)
    with pytest.raises(NotOwned, match=r"^A ConfigMap named words exists and has no owner: it is not changed\. "):
        await at.ensure(at.words(a="2"))
    assert [change.before for change in at.changes[reported:]] == ([None] if takes == "create" else [])


async def test_what_was_made_in_the_same_moment_is_judged_as_it_is(at: Keeping) -> None:
    rules = Rules(differences=of_data, key=lambda _: WORDS, body=lambda desired: desired)
    at = Keeping(at.client, at.owner, rules=rules)
    foreign_object = await at.client.create(CONFIG_MAPS, at.words(a="1"))
    kept = await at.ensure(at.words(a="2"))
    assert (kept.uid, kept.body["data"]) == (foreign_object.uid, {"a": "2"})
    assert [change.before is None for change in at.changes] == [False]


@pytest.mark.parametrize("cached", [True, False])
async def test_what_a_predecessor_of_the_owner_left_is_waited_for_or_read_again_where_no_watch_shows_it(
    at: Keeping, monkeypatch: pytest.MonkeyPatch, *, cached: bool
) -> None:
    body = at.words(a="1")
    body["metadata"]["ownerReferences"][0]["uid"] = "00000000-0000-4000-8000-000000000001"
    left = await at.client.apply(CONFIG_MAPS, body)
    if cached:
        at.cached(left)
        message = "The ConfigMap of a deleted ConfigMap of the same name is still there; waiting for it to go."
        assert await at.keeper.ensure(at.owner, at.words(a="1")) == (None, message)
        return
    monkeypatch.setattr(at.client, "create", AsyncMock(side_effect=Conflict(409)))
    monkeypatch.setattr(at.client, "get", AsyncMock(return_value=left))
    with pytest.raises(StaleCache, match="of a deleted ConfigMap of the same name"):
        await at.keeper.ensure(at.owner, at.words(a="1"))


async def test_one_that_is_being_deleted_is_left_to_it(at: Keeping) -> None:
    going = await at.going(await at.ensure(at.words(a="1")))
    # Where the cache does not have it, no watch tells that it is gone: the reconcile must be tried again.
    with pytest.raises(StaleCache):
        await at.ensure(at.words(a="2"))
    at.cached(going)
    kept = await at.keeper.ensure(at.owner, at.words(a="2"))
    assert kept == (None, "The ConfigMap is being deleted, and is recreated then.")
    assert await at.client.get(CONFIG_MAPS, WORDS) == going


async def test_a_successor_is_not_taken_for_the_one_that_was_seen_and_then_put_right(at: Keeping) -> None:
    seen = await at.ensure(at.words(a="1"))
    await at.client.delete(CONFIG_MAPS, seen)
    successor = await at.ensure(at.words(a="1"))
    at.cached(seen)
    with pytest.raises(StaleCache):
        await at.ensure(at.words(a="2"))
    assert await at.client.get(CONFIG_MAPS, WORDS) == successor
    at.cached(successor)
    assert (await at.ensure(at.words(a="2"))).uid == successor.uid


async def test_nothing_is_made_again_for_an_owner_that_is_gone(at: Keeping) -> None:
    made = await at.ensure(at.words(a="1"))
    await at.client.delete(CONFIG_MAPS, made)
    await at.client.delete(CONFIG_MAPS, at.owner)
    for _ in range(2):
        with pytest.raises(StaleCache):
            await at.ensure(at.words(a="1"))
    assert at.owners.wait_s(at.owner.key) > 0.0
    assert await at.live() == []


async def test_a_body_must_name_its_controller(at: Keeping) -> None:
    body = at.words(a="1")
    del body["metadata"]["ownerReferences"]
    with pytest.raises(ValueError, match=r"^metadata.ownerReferences of ConfigMap words names no controller: "):
        await at.ensure(body)


async def test_what_was_refused_is_not_asked_for_again_for_a_while(
    at: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = AsyncMock(side_effect=Forbidden(403, "Forbidden", "exceeded quota"))
    monkeypatch.setattr(at.client, "create", create)
    for desired, desired_changed in (("1", 1), ("1", 1), ("2", 2)):
        with pytest.raises(Forbidden, match="exceeded quota"):
            await at.ensure(at.words(a=desired))
        assert create.await_count == desired_changed, "another wish is asked for at once"
    at.clock.advance(REFUSED_S)
    with pytest.raises(Forbidden):
        await at.ensure(at.words(a="2"))
    assert create.await_count == 3


async def test_what_was_refused_is_asked_for_again_once_something_else_was_written(
    at: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    at.cached(await at.ensure(at.words(a="1")))
    with monkeypatch.context() as refusing:
        forbidden = Forbidden(403, "Forbidden", "denied the request")
        refusing.setattr(at.client, "patch", AsyncMock(side_effect=forbidden))
        with pytest.raises(Forbidden):
            await at.ensure(at.words(a="2"))
    assert (await at.ensure(at.words(a="3"))).body["data"] == {"a": "3"}
    assert (await at.ensure(at.words(a="2"))).body["data"] == {"a": "2"}


async def test_what_is_reverted_on_its_way_in_is_said_and_not_sent_again(
    at: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    at.cached(await at.ensure(at.words(a="1")))
    reverted = AsyncMock(return_value=await at.client.get(CONFIG_MAPS, WORDS))
    monkeypatch.setattr(at.client, "patch", reverted)
    for _ in range(2):
        with pytest.raises(Reverted, match=r"^Another client, such as .* policy, reverts .*: data\[a\]: "):
            await at.ensure(at.words(a="2"))
    assert reverted.await_count == 1


@pytest.mark.parametrize("seen", [True, False])
async def test_a_field_that_another_manager_rewrites_in_a_loop_is_left_to_it_and_that_is_told(
    at: Keeping, *, seen: bool
) -> None:
    for turn in range(2 * REPAIRS):  # what the owner wants otherwise again and again is nobody else's doing
        at.cached(await at.ensure(at.words(a=str(turn)), seen=True))
    assert len(at.owners.contention) == 0
    for _ in range(REPAIRS + 2):  # the first may have been asked for
        at.cached(await at.client.patch(CONFIG_MAPS, WORDS, {"data": {"a": "theirs"}}))
        at.cached(await at.ensure(at.words(a="1"), seen=seen))
    assert len(at.owners.contention) == 1
    (note,) = at.recorder.notes
    assert " keeps changing data[a] of the ConfigMap default/words: corrected 5 times within 60 s" in note
    assert at.owners.wait_s(at.owner.key) > 0.0
    assert at.changes[-1].routine


async def test_a_selector_that_kubernetes_lets_change_is_changed(client: Client, at: Keeping) -> None:
    at = Keeping(client, at.owner, plain("v1", "Service", "services"))
    place = {"metadata": at.words()["metadata"]}
    for app in "ab":
        desired = place | {"spec": {"selector": {"app": app}, "ports": [{"port": 80}]}}
        kept = await at.ensure(desired)
        assert kept.body["spec"]["selector"] == {"app": app}
        at.cached(kept)


async def test_a_deletion_in_a_loop_is_told_also_of_an_owner_without_a_status(at: Keeping) -> None:
    for _ in range(REPAIRS + 1):
        made = (await at.keeper.ensure(at.owner, at.words(a="1"))).obj
        assert made is not None
        await at.client.delete(CONFIG_MAPS, made)
    assert len(at.owners.contention) == 1
    (note,) = at.recorder.notes
    assert " keeps deleting the ConfigMap default/words: recreated 5 times within 60 s" in note
    assert [change.desired_changed for change in at.changes] == [True] + [False] * REPAIRS


FILLED_IN = {"type": "Ready", "status": "Unknown", "reason": "Pending", "lastTransitionTime": "1970-01-01T00:00:00Z"}
WRITTEN = FILLED_IN | {"lastTransitionTime": "2026-01-01T00:00:00Z"}


class Status(msgspec.Struct):
    conditions: Conditions = ()
    ready: int = 0


@pytest.mark.parametrize("owners", [CONFIG_MAPS, typed("v1", "ConfigMap", "configmaps", status=Status)])
@pytest.mark.parametrize(
    ("status", "written"),
    [
        (None, False),
        ({}, False),
        ({"conditions": [FILLED_IN]}, False),
        ({"conditions": [FILLED_IN, WRITTEN]}, True),
        ({"conditions": [], "ready": 1}, True),
    ],
)
async def test_an_object_is_made_again_where_a_status_was_written_and_not_where_one_was_filled_in(
    at: Keeping, owners: Kind[Any], status: dict[str, Any] | None, written: bool
) -> None:
    at.owner = owners.decode(msgspec.json.encode(at.owner.body | {"status": status}))
    await at.keeper.ensure(at.owner, at.words(a="1"))
    assert [change.desired_changed for change in at.changes] == [not written]


async def test_an_owner_that_is_contested_and_on_its_way_out_is_not_reconciled_for_that(at: Keeping) -> None:
    for _ in range(REPAIRS):
        await at.client.delete(CONFIG_MAPS, await at.ensure(at.words(a="1"), seen=True))

    async def reconcile(_: ObjectKey) -> Result:
        return Result()

    assert await at.owners.reconcile(at.owner.key, reconcile) != Result()
    await at.client.patch(CONFIG_MAPS, at.owner, {"metadata": {"finalizers": ["example.com/wait"]}})
    await at.client.delete(CONFIG_MAPS, at.owner)
    at.store_of_owners.put(await at.client.get(CONFIG_MAPS, at.owner.key))
    assert await at.owners.reconcile(at.owner.key, reconcile) == Result()
