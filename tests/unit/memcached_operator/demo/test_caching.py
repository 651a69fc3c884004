"""Keys set and read, against servers that do and do not keep them."""

from __future__ import annotations

import pytest

from memcached_operator.demo import caching
from tests.unit.memcached_operator.demo.support import memcached_server, running

KEYS = [f"session-{number}" for number in range(60)]
SERVERS = [f"shop-{number}.shop.default.svc:11211" for number in range(3)]


async def test_a_server_that_keeps_another_value_is_told_of_with_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with memcached_server(monkeypatch, forgets=frozenset({"demo-shop-1"})) as address:
        state = running("shop", 2, address=address, named=True)
        with pytest.raises(caching.StepFailedError, match=r"127.0.0.1:\d+ has lost demo-shop-1"):
            await caching.through_each_pod(state, "shop")
        with pytest.raises(caching.StepFailedError, match=r"127.0.0.1:\d+ answered b'VALUE demo-shop-0 0 6"):
            await caching.look_up(state, {SERVERS[0]: ["demo-shop-0"]})


async def test_keys_set_through_the_list_are_hits_and_lost_ones_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    keys_of = caching.spread(KEYS, SERVERS)
    gone = frozenset(keys_of[SERVERS[1]])
    async with memcached_server(monkeypatch, forgets=gone) as address:
        state = running("shop", 3, address=address, named=True)
        await caching.set_all(state, keys_of)
        assert await caching.look_up(state, keys_of) == set(KEYS) - gone


def test_keys_keep_their_servers_in_whatever_order_these_are_listed_and_only_those_of_one_that_leaves_move() -> None:
    before, fewer = caching.spread(KEYS, SERVERS), caching.spread(KEYS, SERVERS[:2])
    assert before == caching.spread(KEYS, SERVERS[::-1])
    assert all(set(before[server]) <= set(fewer[server]) for server in SERVERS[:2])
