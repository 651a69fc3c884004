"""The client that measures its own requests beside the load."""

import asyncio
import json

import aiohttp
import pytest

from benchmarks import bystander
from benchmarks.endpoint import Endpoint
from kube_simulator import Options, Simulator

DEADLINE_S = 60.0


async def make_namespace(session: aiohttp.ClientSession) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bystander.NAMESPACE}}
    headers = {"Content-Type": "application/json"}
    path = "/api/v1/namespaces"
    async with session.post(path, data=json.dumps(body), headers=headers, raise_for_status=True) as answer:
        await answer.read()


async def written(session: aiohttp.ClientSession) -> int:
    path = f"/api/v1/namespaces/{bystander.NAMESPACE}/configmaps"
    async with session.get(path, raise_for_status=True) as answer:
        return sum(each["metadata"]["name"].startswith("written-") for each in (await answer.json())["items"])


async def test_each_request_beside_the_load_has_its_time() -> None:
    async with Simulator(Options(pods_ready_after_s=None, memcached=False)) as simulator:
        endpoint = Endpoint.from_kubeconfig(simulator.kubeconfig_path, simulator.ca_path)
        async with endpoint.session(1) as session, asyncio.timeout(DEADLINE_S):
            await make_namespace(session)
            async with bystander.beside(endpoint) as beside:
                while await written(session) < 2:  # noqa: ASYNC110 - the other process tells by what it writes
                    await asyncio.sleep(0.05)
            waits = beside.waits
            assert len(waits.create_ms) == await written(session)
            assert len(waits.get_ms) >= 2
            assert all(took_ms > 0 for took_ms in [*waits.get_ms, *waits.create_ms])


async def test_a_bystander_that_may_not_ask_says_so() -> None:
    async with Simulator(Options(pods_ready_after_s=None, memcached=False)) as simulator:
        endpoint = Endpoint.from_kubeconfig(simulator.user_kubeconfig("nobody"), simulator.ca_path)
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(bystander.BystanderFailed, match="ended"):
                async with bystander.beside(endpoint):
                    pytest.fail("it did its first request")
