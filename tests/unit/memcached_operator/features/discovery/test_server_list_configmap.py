"""When the published list of servers changes."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest

from operator_runtime import Forbidden, Result
from tests.unit.memcached_operator.support import NAME, NAMESPACE, NO_RIGHT, live_pod
from tests.unit.memcached_operator.world import DONE, WRITE_STATUS, World

SIZE = 3
WRITE_LIST = ["strategic_merge_patch ConfigMap"]
LIST = ("ConfigMap", NAMESPACE, f"{NAME}-servers")


@pytest.fixture
async def named() -> World:
    """Servers of a StatefulSet, whose list is published."""
    world = World()
    _set_size(world, SIZE)
    await world.reconcile_shown()
    for ordinal in range(SIZE):
        make_server(world, ordinal)
    await world.settle()
    assert _published(world) == world.status["serverList"] == _names(SIZE)
    return world


async def test_servers_leave_the_published_list_before_the_time_begins_after_which_they_are_gone(named: World) -> None:
    _set_size(named, SIZE - 1)
    assert await named.writes() == [*WRITE_LIST, WRITE_STATUS]
    assert _published(named) == named.status["serverList"] == _names(SIZE - 1)
    assert named.status["draining"][0]["firstOrdinal"] == SIZE - 1


async def test_one_reconcile_writes_the_status_and_the_list_that_follows_it(named: World) -> None:
    _set_size(named, SIZE + 1)
    await named.writes()
    make_server(named, SIZE)
    assert await named.reconcile_shown() == DONE
    assert named.api.verbs() == [WRITE_STATUS, *WRITE_LIST]


async def test_what_keeps_the_list_from_following_is_reported_by_the_next_reconcile(named: World) -> None:
    _set_size(named, SIZE + 1)
    await named.writes()
    make_server(named, SIZE)
    named.api.refuse("strategic_merge_patch", "ConfigMap", Forbidden(403, "Forbidden", NO_RIGHT))
    assert await named.reconcile_shown() == Result(requeue_after_s=0.0)
    await named.writes()
    assert named.condition("Degraded") == ("True", "Forbidden")


async def test_a_growing_list_is_no_event_each_time_or_none_would_be_left_for_what_goes_wrong(named: World) -> None:
    _set_size(named, SIZE + 2)
    await named.writes()
    named.recorder.events.clear()
    for ordinal in (SIZE, SIZE + 1):
        make_server(named, ordinal)
        assert WRITE_LIST[-1] in await named.writes()
    assert named.recorder.events == []


async def test_a_list_that_nobody_can_change_stays_while_it_is_right_and_is_replaced_by_the_next(named: World) -> None:
    live = deepcopy(named.api.objects[LIST])
    named.api.put(live | {"immutable": True})
    assert await named.writes() == []
    _set_size(named, SIZE - 1)
    assert [each for each in await named.writes() if "ConfigMap" in each] == ["delete ConfigMap", "create ConfigMap"]
    assert _published(named) == named.status["serverList"] == _names(SIZE - 1)
    assert "immutable" not in named.api.objects[LIST]
    replaced = next(each.note for each in named.recorder.events if each.reason == "Replaced")
    assert replaced == f"Replaced ConfigMap {NAME}-servers: immutable: true → absent"


def _set_size(world: World, size: int) -> None:
    world.memcached(size=size, workload="StatefulSet", discovery={"configMap": {}})


def make_server(world: World, ordinal: int, address: str = "") -> None:
    pod = live_pod()
    (owner,) = pod["metadata"]["ownerReferences"]
    owner |= {"kind": "StatefulSet", "name": NAME}
    pod["metadata"] |= {"name": f"{NAME}-{ordinal}", "uid": f"uid-of-server-{ordinal}"}
    if address:
        pod["status"]["podIP"] = address
    world.api.put(pod)


def _names(size: int) -> list[str]:
    return [f"{NAME}-{ordinal}.{NAME}.{NAMESPACE}.svc:11211" for ordinal in range(size)]


def _published(world: World) -> list[str]:
    found: list[str] = json.loads(world.api.objects[LIST]["data"]["servers.json"])
    return found
