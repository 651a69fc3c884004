"""What a kubelet would report: on a control plane without nodes, somebody must say that the pods are ready."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Any

import orjson

from memcached_operator.demo.cluster_state import NAMESPACE, ready, terminating
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import KubeError
from operator_runtime.client.resources import PODS

_LOOK_EVERY_S = 0.2
_FIELD_MANAGER = "demo-kubelet"
# For documentation: nobody has these, and nothing listens on them.
_ADDRESSES = IPv4Network("198.51.100.0/24")


async def play_the_kubelet(client: ApiClient, ready_after_s: float) -> None:
    """Make each new pod ready after a while, until cancelled."""
    seen: set[str] = set()
    addresses = _addresses()
    while True:
        try:
            pods = orjson.loads(await client.request("GET", PODS.path(NAMESPACE)))["items"]
            new = [each["metadata"]["name"] for each in pods if not ready(each) and not terminating(each)]
            for name in new:
                if name in seen:
                    await client.merge_patch(
                        PODS,
                        NAMESPACE,
                        name,
                        _ready_at(next(addresses)),
                        field_manager=_FIELD_MANAGER,
                        subresource="status",
                    )
            seen = set(new)
        except KubeError:
            pass  # it went meanwhile, or the server is away: the next look tells
        await asyncio.sleep(max(_LOOK_EVERY_S, ready_after_s))


def _addresses() -> Iterator[str]:
    """One after the other, and again from the first: the pods that had those have long gone."""
    while True:
        yield from map(str, _ADDRESSES.hosts())


def _ready_at(address: str) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True"}]
    return {"status": {"phase": "Running", "conditions": conditions, "podIP": address, "podIPs": [{"ip": address}]}}
