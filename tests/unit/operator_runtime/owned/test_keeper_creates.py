"""Owned objects whose differences are told by rules of the author's own: made by a POST, put right by a patch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from operator_runtime import Client, Difference, Invalid, PlainObject, Rules
from operator_runtime.owned.compare import differences
from operator_runtime.testing.cluster import SimulatedCluster
from tests.unit.operator_runtime.owned.keeper_support import CONFIG_MAPS, WORDS, Keeping


def differ(wanted: Mapping[str, Any], live: PlainObject) -> Iterable[Difference]:
    """What is wanted of the data and is otherwise, and what of ours is no longer wanted."""
    held = live.body.get("data", {})
    yield from differences(wanted["data"], held, ("data",))
    for name in held:
        if name not in wanted["data"] and not name.startswith("their"):
            yield Difference(("data", name), None, held[name])


@pytest.fixture
async def at(client: Client) -> Keeping:
    owner = await client.create(CONFIG_MAPS, {"metadata": {"namespace": "default", "name": "owner"}})
    rules: Rules[Any, PlainObject] = Rules(differ, lambda _: WORDS, lambda wanted: wanted)
    return Keeping(client, owner, rules=rules)


async def managers(at: Keeping) -> set[str]:
    writers = await at.client.writers(CONFIG_MAPS, WORDS)
    return {each.manager for each in writers.latest("data")}


async def test_what_is_left_out_later_vanishes_and_what_others_wrote_stays(
    at: Keeping, simulator: SimulatedCluster
) -> None:
    made = await at.keep(at.words(a="1", b="2"))
    async with simulator.client(name="stranger") as stranger:
        at.cached(await stranger.patch(CONFIG_MAPS, made, {"data": {"theirs": "3"}}))
    kept = await at.keep(at.words(a="1"), seen=True)
    assert kept.body["data"] == {"a": "1", "theirs": "3"}
    assert len(await managers(at)) == 2
    at.cached(kept)
    assert await at.keep(at.words(a="1"), seen=True) is kept


async def test_what_was_made_in_the_same_moment_is_judged_as_it_is(at: Keeping) -> None:
    theirs = await at.client.create(CONFIG_MAPS, at.words(a="1"))
    kept = await at.keep(at.words(a="2"))
    assert (kept.uid, kept.body["data"]) == (theirs.uid, {"a": "2"})
    assert [change.before is None for change in at.changes] == [False]


async def test_a_field_that_the_kind_has_not_is_refused_and_not_dropped(at: Keeping) -> None:
    with pytest.raises(Invalid, match='unknown field "dat"'):
        await at.keep(at.words(a="1") | {"dat": {}})
    assert await at.client.list(CONFIG_MAPS, "default", labels="app=words") == []
