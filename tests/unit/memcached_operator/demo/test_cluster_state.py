"""What counts as a Memcached that runs, and how the observer hears of it."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping

import orjson
import pytest

from memcached_operator.demo.cluster_state import ClusterState, Observer
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import Unreachable, classify_response
from tests.unit.memcached_operator.demo.support import Json, pod, running


def changed(state: ClusterState, **fields: object) -> ClusterState:
    """The Memcached shop with other fields in its status."""
    shop = state.memcacheds["shop"]
    return dataclasses.replace(state, memcacheds={"shop": shop | {"status": shop["status"] | fields}})


def test_a_memcached_runs_when_all_its_servers_are_there_ready_and_listed() -> None:
    assert running("shop", 3).runs("shop", 3)
    assert running("shop", 3, named=True).runs("shop", 3)
    assert running("shop", 0).runs("shop", 0)
    assert not running("shop", 3).runs("shop", 4)
    assert not ClusterState().runs("shop", 1)


@pytest.mark.parametrize(
    "fields",
    [
        {"nodes": ["shop-0"]},
        {"serverList": ["127.0.0.1:11211"]},
        {"readyReplicas": 1},
        {"conditions": []},
        {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Progressing", "status": "True"}]},
    ],
)
def test_it_does_not_run_while_its_status_says_otherwise(fields: dict[str, object]) -> None:
    assert not changed(running("shop", 2), **fields).runs("shop", 2)


class Lists(ApiClient):
    """Answers lists by the last word of their path."""

    def __init__(self, answers: Mapping[str, list[Json]]) -> None:
        self.answers = dict(answers)
        self.down = False

    async def request(self, method: str, path: str, **_: object) -> bytes:
        assert method == "GET"
        await asyncio.sleep(0)
        if self.down:
            raise Unreachable("down")
        kind = path.rpartition("/")[2]
        if kind not in self.answers:
            raise classify_response(404, b"404 page not found", None)
        return orjson.dumps({"items": self.answers[kind]})


async def test_the_look_out_sees_what_is_there_and_goes_on_after_a_failure() -> None:
    of_memcached, of_pod = {"regarding": {"kind": "Memcached"}}, {"regarding": {"kind": "Pod"}}
    lists = Lists({"deployments": [], "pods": [pod("shop", "0")], "events": [of_memcached, of_pod]})
    observer = Observer(lists)
    task = asyncio.create_task(observer.run())
    try:
        assert await observer.until(lambda state: "shop-0" in state.pods, 10)
        assert observer.state.events == (of_memcached,)
        assert observer.state.memcacheds == {}, "the CRD is not there yet"
        lists.down = True
        assert not await observer.until(lambda state: bool(state.memcacheds), 0.01)
        lists.answers["memcacheds"] = [{"metadata": {"name": "shop"}}]
        lists.down = False
        assert await observer.until(lambda state: "shop" in state.memcacheds, 10)
    finally:
        task.cancel()
