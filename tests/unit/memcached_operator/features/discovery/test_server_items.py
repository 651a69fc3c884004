"""The list as an item in each server, and from which image the pods of an endpoint are made."""

from __future__ import annotations

from typing import Any, cast

import pytest

from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.features.discovery.discovery_reconciler import own_image
from memcached_operator.features.discovery.server_items import ServerItems
from memcached_operator.servers.queried_pod import without_credentials
from operator_runtime import Client, Forbidden, NotFound, ObjectKey
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.features.discovery.test_endpoint_objects import ON, Endpoint
from tests.unit.memcached_operator.features.discovery.test_server_list_configmap import LIST, make_server
from tests.unit.memcached_operator.support import NAMESPACE, NO_RIGHT
from tests.unit.memcached_operator.world import KEY

IN_SERVERS: Json = ON | {"discovery": {"autoDiscovery": {"inServers": True}}}


async def listed(spec: Json) -> Endpoint:
    world = Endpoint()
    world.memcached(size=1, **spec)
    await world.reconcile_shown()
    make_server(world, 0, "10.0.0.1")
    await world.settle()
    return world


async def before_a_query(world: Endpoint) -> bytes:
    world.show()
    (server,) = world.caches.pods_of(KEY)
    return (await ServerItems(world.caches).endpoints(without_credentials)(server)).endpoint.before


async def test_the_item_is_what_the_endpoint_gives() -> None:
    world = await listed(IN_SERVERS)
    text = world.api.objects[LIST]["data"]["cluster"].encode()
    expected = b"set AmazonElastiCache:cluster 0 86400 %d noreply\r\n%b\r\n" % (len(text), text)
    assert await before_a_query(world) == expected


@pytest.mark.parametrize(
    "spec", [ON, ON | {"discovery": {"configMap": {}}}, IN_SERVERS | {"handover": {}}, IN_SERVERS | {"memory": "x"}]
)
async def test_no_item_is_set_without_the_field_nor_by_a_specification_that_cannot_be_read(spec: Json) -> None:
    world = await listed(ON)
    world.memcached(size=1, **spec)
    assert await before_a_query(world) == b""


async def test_what_others_write_into_the_list_is_no_command() -> None:
    world = await listed(IN_SERVERS)
    live: Json = world.api.objects[LIST]
    text = "1\r\nflush_all\r\n²\n"
    world.api.put(live | {"data": live["data"] | {"cluster": text}})
    head, _, body = (await before_a_query(world)).partition(b"\r\n")
    assert body == text.encode() + b"\r\n"
    assert int(head.split()[4]) == len(text.encode())


async def test_a_change_of_the_list_has_the_servers_queried_soon() -> None:
    world, asked = await listed(IN_SERVERS), list[PodRecord]()
    ServerItems(world.caches).watch(asked.append)
    world.show()
    assert asked == []
    make_server(world, 0, "10.0.0.9")
    await world.writes()
    assert [each.name for each in asked] == [each.name for each in world.caches.pods_of(KEY)]


class Pods:
    """The API server, which has one pod, or refuses."""

    def __init__(self, *answers: Any) -> None:
        self.answers = [*answers]

    async def get(self, _: Any, key: ObjectKey) -> Any:
        assert key == ObjectKey(NAMESPACE, "operator-0")
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Pod:
    def __init__(self, **images: str) -> None:
        containers = [{"name": name.replace("_", "-"), "image": image} for name, image in images.items()]
        self.body = {"spec": {"containers": containers}}


@pytest.mark.parametrize(
    ("given", "namespace", "answers", "found"),
    [
        ("given:1", NAMESPACE, [], "given:1"),
        ("", "", [], ""),
        ("", NAMESPACE, [Pod(injected="proxy:1", memcached_operator="operator:1")], "operator:1"),
        ("", NAMESPACE, [Pod(manager="operator:2")], "operator:2"),
        ("", NAMESPACE, [Forbidden(403, "Forbidden", NO_RIGHT)], ""),
        ("", NAMESPACE, [NotFound(404, "NotFound", "none")], ""),
    ],
)
async def test_the_image_is_that_of_the_operators_pod(
    monkeypatch: pytest.MonkeyPatch, given: str, namespace: str, answers: list[Any], found: str
) -> None:
    monkeypatch.setenv("POD_NAME", "operator-0")
    find = own_image(cast(Client, Pods(*answers)), namespace, given)
    assert await find() == found
    if found:
        assert await find() == found  # without another request
