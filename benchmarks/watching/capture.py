"""What a Memcached and all that belongs to it look like, as the operator and the simulator make them of one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from benchmarks.endpoint import MEMCACHEDS, NAMESPACE, Endpoint, memcached
from benchmarks.process import OperatorProcess
from kube_simulator import Options, Simulator
from memcached_operator.api.crd import memcached_crd
from operator_runtime.client.resources import DEPLOYMENTS, PODS, Resource

NAME = "qqcaptured"
"""The Memcached's; nothing else has it in its text."""
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# What they say of themselves is in the status, and nobody is asked later.
_FLAGS = ("--log-level=warning", "--server-stats-interval-s=0")
_DEADLINE_S = 120.0
_POLL_S = 0.1
_TRIES = 100


@dataclass(frozen=True, slots=True)
class Captured:
    """One Memcached whose servers are all ready, and whose status says so."""

    memcached: Mapping[str, Any]
    deployment: Mapping[str, Any]
    pods: list[Mapping[str, Any]]


async def captured(size: int) -> Captured:
    """Make one of this size in a simulator.

    Raises:
        TimeoutError: it does not come to its end.
        OperatorDied: the operator ended.
    """
    options = Options(pods_ready_after_s=0.0, memcached=False)
    async with Simulator(options) as simulator, AsyncExitStack() as ends, asyncio.timeout(_DEADLINE_S):
        endpoint = Endpoint.from_kubeconfig(simulator.kubeconfig_path, simulator.ca_path)
        session = await ends.enter_async_context(endpoint.session(connections=2))
        await _create(session, _CRDS, memcached_crd())
        # A pause between two servers would have to be waited for.
        body = {**memcached(NAME, size, extras=False)}
        body["spec"] = {**body["spec"], "rollout": {"minReadySeconds": 0}}  # type: ignore[dict-item]
        await _create(session, MEMCACHEDS.path(NAMESPACE), body)
        operator = OperatorProcess(
            [sys.executable, "-m", "memcached_operator", "run", "-A", *_FLAGS],
            {"KUBECONFIG": str(simulator.kubeconfig_path), "HOME": str(simulator.directory)},
            simulator.directory / "operator.log",
        )
        try:
            while not _settled(found := await _list(session, MEMCACHEDS), size):
                operator.check()
                await asyncio.sleep(_POLL_S)
            await operator.rests()
            found = await _list(session, MEMCACHEDS)
            return Captured(found[0], (await _list(session, DEPLOYMENTS))[0], await _list(session, PODS))
        finally:
            operator.kill()


def _settled(memcacheds: list[Mapping[str, Any]], size: int) -> bool:
    status = memcacheds[0].get("status", {}) if memcacheds else {}
    conditions = {each["type"]: each["status"] for each in status.get("conditions", ())}
    return status.get("readyReplicas") == size and conditions.get("Progressing") == "False"


async def _create(session: aiohttp.ClientSession, path: str, body: Mapping[str, object]) -> None:
    """A CRD is served some time after it is there."""
    headers = {"Content-Type": "application/json"}
    for _ in range(_TRIES):
        async with session.post(path, data=orjson.dumps(body), headers=headers) as answer:
            if answer.status != 404:
                answer.raise_for_status()
                return
        await asyncio.sleep(_POLL_S)
    raise TimeoutError(f"{path} is not served")


async def _list(session: aiohttp.ClientSession, resource: Resource) -> list[Mapping[str, Any]]:
    async with session.get(resource.path(NAMESPACE), raise_for_status=True) as answer:
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        return [kind | each for each in orjson.loads(await answer.read())["items"]]
