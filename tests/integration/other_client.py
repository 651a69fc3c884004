"""kubernetes-asyncio as somebody's client beside kubectl: made of Kubernetes' OpenAPI, it reads all by its models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from kubernetes_asyncio.client import ApiClient, EventsV1Api
from kubernetes_asyncio.config import new_client_from_config

from tests.cluster import Cluster


@asynccontextmanager
async def other_client(cluster: Cluster) -> AsyncIterator[ApiClient]:
    """The administrator's."""
    async with await new_client_from_config(str(cluster.kubeconfig_path), persist_config=False) as client:
        yield client


async def events_of(client: ApiClient, namespace: str, name: str) -> list[Any]:
    """The operator's events about the object of that name, as EventsV1Event, oldest first.

    Of others' there may be some that this library does not read: it wants an eventTime.
    """
    selector = f"reportingController=memcached-operator,regarding.name={name}"
    found = await EventsV1Api(client).list_namespaced_event(namespace, field_selector=selector)
    return sorted(found.items, key=lambda each: each.event_time)


def called(cluster: Cluster, call: Callable[[ApiClient], Awaitable[Any]]) -> Any:
    """One call's answer, for a test that is no coroutine."""

    async def answer() -> Any:
        async with other_client(cluster) as client:
            return await call(client)

    return asyncio.run(answer())
