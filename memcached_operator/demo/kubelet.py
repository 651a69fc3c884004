"""What a kubelet would report: on a control plane without nodes, somebody must say that the pods are ready."""

from __future__ import annotations

import asyncio

import orjson

from memcached_operator.demo.cluster_state import NAMESPACE, ready, terminating
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import KubeError
from operator_runtime.client.resources import PODS

_LOOK_EVERY_S = 0.2
_FIELD_MANAGER = "demo-kubelet"
_READY = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}


async def play_the_kubelet(client: ApiClient, ready_after_s: float) -> None:
    """Make each new pod ready after a while, until cancelled."""
    seen: set[str] = set()
    while True:
        try:
            pods = orjson.loads(await client.request("GET", PODS.path(NAMESPACE)))["items"]
            new = [each["metadata"]["name"] for each in pods if not ready(each) and not terminating(each)]
            for name in new:
                if name in seen:
                    await client.merge_patch(
                        PODS, NAMESPACE, name, _READY, field_manager=_FIELD_MANAGER, subresource="status"
                    )
            seen = set(new)
        except KubeError:
            pass  # it went meanwhile, or the server is away: the next look tells
        await asyncio.sleep(max(_LOOK_EVERY_S, ready_after_s))
