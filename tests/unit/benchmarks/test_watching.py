"""The world of very many objects that bench-watch plays to the operator."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.watching.capture import NAME, Captured
from benchmarks.watching.server import Server
from benchmarks.watching.world import World

DEADLINE_S = 60.0
PODS = "/api/v1/pods"


def found(kind: str, name: str, number: int, **parts: Any) -> dict[str, Any]:
    uid = f"{number:08x}-7e1c-4b0a-9d55-0123456789ab"
    return {"kind": kind, "metadata": {"name": name, "uid": uid, "resourceVersion": "77"}, **parts}


def captured() -> Captured:
    conditions = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "ContainersReady", "Ready")]
    status = {"conditions": conditions, "containerStatuses": [{"name": "memcached", "ready": True}]}
    return Captured(
        found("Memcached", NAME, 1, status={"replicas": 2, "nodes": [f"{NAME}-a", f"{NAME}-b"]}),
        found("Deployment", NAME, 2, spec={"strategy": {"maxUnavailable": "25%"}}),
        [found("Pod", f"{NAME}-{place}", 3, status=status) for place in "ab"],
    )


def names(world: World, plural: str) -> list[str]:
    return [json.loads(each)["metadata"]["name"] for each in world.objects(plural)]


def test_each_memcached_has_a_deployment_and_pods_of_its_own() -> None:
    world = World(captured(), 2)
    assert names(world, "memcacheds") == names(world, "deployments") == ["cache-0", "cache-1"]
    assert names(world, "pods") == ["cache-0-a", "cache-0-b", "cache-1-a", "cache-1-b"]
    assert names(world, "services") == []
    uids = {json.loads(each)["metadata"]["uid"] for each in world.objects("memcacheds")}
    assert len(uids) == 2


def test_a_written_status_is_merged_and_counted() -> None:
    world = World(captured(), 2)
    answer = world.write_status("cache-1", b'{"status":{"readyReplicas":1,"replicas":null}}')
    assert answer is not None
    assert json.loads(answer)["status"] == {"readyReplicas": 1, "nodes": ["cache-1-a", "cache-1-b"]}
    assert json.loads(world.memcached(1)) == json.loads(answer)
    assert world.status_writes == 1


async def test_a_streaming_list_brings_all_pods_and_then_their_changes(tmp_path: Path) -> None:
    server = Server(tmp_path, World(captured(), 3))
    await server.start()
    try:
        async with _client(server) as session, asyncio.timeout(DEADLINE_S):
            query = {"watch": "1", "sendInitialEvents": "true"}
            async with session.get(PODS, params=query, raise_for_status=True) as stream:
                lines = [json.loads(await stream.content.readline()) for _ in range(7)]
                assert [each["type"] for each in lines] == [*["ADDED"] * 6, "BOOKMARK"]
                await server.pods_listed()
                await server.play(3, 1_000.0, ready=True)
                lines = [json.loads(await stream.content.readline()) for _ in range(3)]
            assert [each["object"]["metadata"]["name"] for each in lines] == ["cache-0-a", "cache-1-a", "cache-2-a"]
            assert [each["object"]["status"]["containerStatuses"][0]["ready"] for each in lines] == [False] * 3
    finally:
        await server.stop()


def _client(server: Server) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(f"https://127.0.0.1:{server.port}", connector=aiohttp.TCPConnector(ssl=False, limit=4))
