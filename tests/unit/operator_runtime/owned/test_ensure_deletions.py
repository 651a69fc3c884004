"""`Operator.owned`: what the owner wants no more, or cannot be changed, is deleted; what we deleted is no drift."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any
from unittest.mock import AsyncMock

import msgspec
import pytest

from operator_runtime import Client, Forbidden, Refused, StaleCache, Unwatched, plain
from operator_runtime.client.errors import Unreachable
from operator_runtime.owned.contention import REPAIRS
from operator_runtime.owned.ensure_rules import record_changes, rules_for_bodies
from operator_runtime.owned.owners import REFUSED_S
from tests.unit.operator_runtime.owned.ensure_support import CONFIG_MAPS, WORDS, Keeping

FIXED = 'data[a]: "1" → "2"'
REPLACED = f"The ConfigMap is being replaced, as Kubernetes does not allow this change: {FIXED}."


@pytest.fixture
def replacing(client: Client, at: Keeping) -> Keeping:
    """Of which `data[a]` cannot be changed."""
    rules = rules_for_bodies(client.field_manager, CONFIG_MAPS.resource, fixed=("data[a]",), replace="Background")
    return Keeping(client, at.owner, rules=rules)


async def replaced(at: Keeping, body: Any, *, seen: bool = True) -> None:
    kept = await at.keeper.ensure(at.owner, body, seen=seen)
    assert kept.obj is None
    assert "is being replaced" in kept.waiting
    at.uncached()


class TestReplacing:
    async def test_what_cannot_be_changed_is_deleted_and_made_anew(self, replacing: Keeping) -> None:
        at = replacing
        old = await at.ensure(at.words(a="1"))
        at.cached(old)
        assert await at.keeper.ensure(at.owner, at.words(a="2"), seen=True) == (None, REPLACED)
        assert await at.live() == []
        at.uncached()
        new = await at.ensure(at.words(a="2"), seen=True)
        assert (new.uid != old.uid, new.body["data"]) == (True, {"a": "2"})
        _, deletion, creation = at.changes
        assert (deletion.before, deletion.obj, deletion.deleted, deletion.desired_changed) == (old, old, True, True)
        assert (creation.before, creation.obj, creation.deleted, creation.desired_changed) == (None, new, False, True)
        for change in (deletion, creation):
            assert [str(each) for each in change.fields] == [FIXED]

    @pytest.mark.parametrize(("version", "kind"), [("apps/v1", "StatefulSet"), ("batch/v1", "Job")])
    async def test_the_selector_of_what_makes_pods_is_fixed_without_a_word(
        self, client: Client, at: Keeping, version: str, kind: str
    ) -> None:
        workloads = plain(version, kind, f"{kind.lower()}s")
        at = Keeping(client, at.owner, workloads)
        metadata = at.words()["metadata"]
        held = {"apiVersion": version, "kind": kind, "metadata": metadata | {"uid": "1", "resourceVersion": "1"}}
        spec = {"selector": {"matchLabels": {"app": "a"}}}
        at.cached(workloads.decode(msgspec.json.encode(held | {"spec": spec})))
        with pytest.raises(Refused, match=rf" changes to the {kind}: spec.selector.matchLabels\[app\]: "):
            await at.ensure({"metadata": metadata, "spec": {"selector": {"matchLabels": {"app": "b"}}}})

    @pytest.mark.parametrize("successor", [False, True])
    async def test_another_version_than_the_cached_one_or_a_successor_is_not_deleted(
        self, replacing: Keeping, *, successor: bool
    ) -> None:
        at = replacing
        at.cached(await at.ensure(at.words(a="1")))
        if successor:
            await at.client.delete(CONFIG_MAPS, WORDS)
        other = await at.client.apply(CONFIG_MAPS, at.words(a="3"))
        with nullcontext() if successor else pytest.raises(StaleCache):
            await at.keeper.ensure(at.owner, at.words(a="2"))
        assert await at.live() == [other]

    async def test_for_an_owner_that_is_gone_nothing_is_deleted(self, replacing: Keeping) -> None:
        at = replacing
        made = await at.ensure(at.words(a="1"))
        at.cached(made)
        await at.client.delete(CONFIG_MAPS, at.owner, propagation="Orphan")
        with pytest.raises(StaleCache, match="no longer exists: the cache is stale"):
            await at.ensure(at.words(a="2"))
        assert [each.uid for each in await at.live()] == [made.uid]

    async def test_a_deletion_that_is_forbidden_is_not_asked_for_again_for_a_while(
        self, replacing: Keeping, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        at = replacing
        at.cached(await at.ensure(at.words(a="1")))
        delete = AsyncMock(side_effect=Forbidden(403, "Forbidden", "cannot delete resource"))
        monkeypatch.setattr(at.client, "delete", delete)
        for desired in ("2", "3"):
            with pytest.raises(Forbidden, match="cannot delete resource"):
                await at.ensure(at.words(a=desired))
        assert delete.await_count == 1, "it is the same deletion, whatever is wanted instead"
        at.clock.advance(REFUSED_S)
        with pytest.raises(Forbidden):
            await at.ensure(at.words(a="2"))
        assert delete.await_count == 2
        assert [change.deleted for change in at.changes] == [False]

    async def test_what_is_made_anew_is_nobody_elses_doing_unless_another_deletes_it(self, replacing: Keeping) -> None:
        at = replacing
        at.cached(await at.ensure(at.words(a="0")))
        for turn in range(1, 2 * REPAIRS):
            at.change_specification()
            await replaced(at, at.words(a=str(turn)))
            at.cached(await at.ensure(at.words(a=str(turn)), seen=True))
        assert len(at.owners.contention) == 0
        assert all(change.desired_changed for change in at.changes)
        at.uncached()
        await at.client.delete(CONFIG_MAPS, WORDS)
        await at.ensure(at.words(a=str(turn)), seen=True)
        assert not at.changes[-1].desired_changed

    async def test_whoever_keeps_making_it_wrong_is_named_and_held_back_for(self, replacing: Keeping) -> None:
        at = replacing
        for _ in range(REPAIRS + 1):  # the first may have been asked for
            at.cached(await at.client.apply(CONFIG_MAPS, at.words(a="1")))
            await replaced(at, at.words(a="2"))
        assert len(at.owners.contention) == 1
        (note,) = at.recorder.notes
        assert " keeps changing data[a] of the ConfigMap default/words: corrected 5 times within 60 s" in note
        assert at.owners.wait_s(at.owner.key) > 0.0

    async def test_a_deletion_without_an_answer_is_its_own_all_the_same(
        self, replacing: Keeping, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        at = replacing
        at.cached(await at.ensure(at.words(a="1")))
        delete = at.client.delete

        async def unanswered(*args: Any, **more: Any) -> None:
            await delete(*args, **more)
            raise Unreachable("the connection was reset")

        monkeypatch.setattr(at.client, "delete", unanswered)
        with pytest.raises(Unreachable):
            await at.ensure(at.words(a="2"), seen=True)
        at.uncached()
        await at.ensure(at.words(a="2"), seen=True)
        assert at.changes[-1].desired_changed


class TestRemoving:
    async def test_what_is_the_owners_is_deleted(self, at: Keeping) -> None:
        made = await at.ensure(at.words(a="1"))
        at.cached(made)
        assert await at.keeper.remove(at.owner, WORDS) == (None, "The ConfigMap is being deleted.")
        assert await at.live() == []
        change = at.changes[-1]
        assert (change.before, change.obj, change.fields, change.deleted) == (made, made, (), True)

    async def test_without_one_in_the_cache_nothing_is_sent(self, at: Keeping, monkeypatch: pytest.MonkeyPatch) -> None:
        made = await at.client.apply(CONFIG_MAPS, at.words(a="1"))
        monkeypatch.setattr(at.client, "get", AsyncMock(side_effect=AssertionError))
        assert await at.keeper.remove(at.owner, WORDS) == (None, "")
        assert await at.live() == [made]

    async def test_another_version_than_the_cached_one_is_read_first(self, at: Keeping) -> None:
        at.cached(await at.ensure(at.words(a="1")))
        changed = await at.client.patch(CONFIG_MAPS, WORDS, {"metadata": {"ownerReferences": None}})
        with pytest.raises(StaleCache):
            await at.keeper.remove(at.owner, WORDS)
        assert await at.live() == [changed]

    async def test_whoever_keeps_making_it_is_told_of_and_held_back_for(self, at: Keeping) -> None:
        for _ in range(REPAIRS + 1):
            at.cached(await at.client.apply(CONFIG_MAPS, at.words(a="1")))
            await at.keeper.remove(at.owner, WORDS)
        (note,) = at.recorder.notes
        assert note == (
            "Another client keeps creating the ConfigMap default/words, which the ConfigMap does not specify: deleted "
            "5 times within 60 s. Repairs are now limited to one per second. Stop that client."
        )
        assert at.owners.wait_s(at.owner.key) > 0.0


@pytest.mark.parametrize("seen", [True, False])
async def test_what_cannot_be_watched_is_neither_made_nor_deleted(at: Keeping, *, seen: bool) -> None:
    at.refusal = Forbidden(403, "Forbidden", 'configmaps is forbidden: User "x" cannot list resource "configmaps"')
    message = (
        '^The ConfigMap is left as it is, as configmaps cannot be watched: configmaps is forbidden: User "x" cannot'
    )
    with pytest.raises(Unwatched, match=message):
        await at.ensure(at.words(a="1"), seen=seen)
    assert await at.keeper.remove(at.owner, WORDS) == (None, "")
    assert await at.live() == []
    at.refusal = None
    assert (await at.ensure(at.words(a="1"), seen=seen)).body["data"] == {"a": "1"}


async def test_the_default_words_tell_a_replacement_from_an_end(replacing: Keeping) -> None:
    at = replacing
    on_change = record_changes(at.recorder, CONFIG_MAPS, CONFIG_MAPS)  # type: ignore[arg-type]
    at.cached(await at.ensure(at.words(a="1")))
    await replaced(at, at.words(a="2"))
    at.cached(await at.ensure(at.words(a="2"), seen=True))
    await at.keeper.remove(at.owner, WORDS)
    for change in at.changes:
        on_change(at.owner, change)
    assert at.recorder.notes == [
        "Created ConfigMap words: new",
        f"Deleted ConfigMap words: to be replaced, as {FIXED}",
        f"Created ConfigMap words: replaced, as {FIXED}",
        "Deleted ConfigMap words: no longer desired",
    ]
