"""Owned objects whose differences are told by rules of the author's own: made by a POST, put right by a patch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from operator_runtime import Client, Difference, PlainObject, Rules
from operator_runtime.owned.compare import differences
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


async def test_what_was_made_in_the_same_moment_is_judged_as_it_is(at: Keeping) -> None:
    theirs = await at.client.create(CONFIG_MAPS, at.words(a="1"))
    kept = await at.keep(at.words(a="2"))
    assert (kept.uid, kept.body["data"]) == (theirs.uid, {"a": "2"})
    assert [change.before is None for change in at.changes] == [False]
