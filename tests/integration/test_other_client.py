"""A user whose program speaks by kubernetes-asyncio: what we make is what that library's models and watches take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from kubernetes_asyncio.client import (
    ApiClient,
    AppsV1Api,
    CoreV1Api,
    CustomObjectsApi,
)
from kubernetes_asyncio.watch import Watch

from operator_runtime.testing.waiting import DEADLINE_S, async_eventually
from tests.integration.conftest import memcached
from tests.integration.other_client import events_of, other_client
from tests.kubectl_in_namespace import Kubectl

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operator")]

# As a dict: the annotations of the library leave it out.
MERGE: dict[str, Any] = {"_content_type": "application/merge-patch+json"}


class Memcacheds:
    """The Memcacheds of one namespace."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self._api = CustomObjectsApi(client)
        self._place = ("cache.example.com", "v1alpha1", namespace, "memcacheds")

    async def create(self, body: dict[str, Any]) -> Any:
        return await self._api.create_namespaced_custom_object(*self._place, body)

    async def get(self, name: str) -> Any:
        return await self._api.get_namespaced_custom_object(*self._place, name)

    async def patch(self, name: str, body: object) -> Any:
        return await self._api.patch_namespaced_custom_object(*self._place, name, body, **MERGE)

    async def scale(self, name: str, size: int) -> Any:
        body = {"spec": {"replicas": size}}
        return await self._api.patch_namespaced_custom_object_scale(*self._place, name, body, **MERGE)

    async def delete(self, name: str) -> Any:
        return await self._api.delete_namespaced_custom_object(*self._place, name)

    async def watched(self, until: Callable[[str, Any], bool], **since: str) -> Any:
        """The first object that a watch of all shows in that way."""
        watch = Watch().stream(self._api.list_namespaced_custom_object, *self._place, **since)
        async with asyncio.timeout(DEADLINE_S), watch as events:
            async for event in events:
                if until(event["type"], event["object"]):
                    return event["object"]
        raise AssertionError("the watch ended")

    async def of_size(self, size: int) -> Any:
        """The one that there is, once it has so many pods."""
        return await self.watched(lambda _, found: found.get("status", {}).get("replicas") == size)


@pytest.fixture
async def client(kubectl: Kubectl) -> AsyncIterator[ApiClient]:
    async with other_client(kubectl.cluster) as client:
        yield client


async def test_a_memcached_is_made_watched_patched_scaled_and_deleted(kubectl: Kubectl, client: ApiClient) -> None:
    memcacheds, namespace = Memcacheds(client, kubectl.namespace), kubectl.namespace
    await memcacheds.create(memcached("shop", 3, image="memcached:1.6.45"))
    shop = await memcacheds.of_size(3)
    assert shop["metadata"]["generation"] == 1
    pods = (await CoreV1Api(client).list_namespaced_pod(namespace, label_selector="memcached_cr=shop")).items
    assert shop["status"]["nodes"] == sorted(pod.metadata.name for pod in pods)

    await memcacheds.patch("shop", {"spec": {"size": 4}})
    await memcacheds.of_size(4)
    scale = await memcacheds.scale("shop", 1)
    assert (scale["kind"], scale["spec"]["replicas"]) == ("Scale", 1)
    await memcacheds.of_size(1)
    shop = await memcacheds.get("shop")
    assert shop["spec"]["size"] == 1

    found = await async_eventually(lambda: events_of(client, namespace, "shop"), lambda found: len(found) >= 6)
    assert {each.type for each in found} == {"Normal"}, [(each.reason, each.note) for each in found]
    assert [each.reason for each in found] == ["Created", "Created", "Created", "Scaled", "Scaled", "Deleted"]
    assert {each.regarding.uid for each in found} == {shop["metadata"]["uid"]}

    await memcacheds.delete("shop")
    gone = await memcacheds.watched(
        lambda kind, _: kind == "DELETED", resource_version=shop["metadata"]["resourceVersion"]
    )
    assert gone["metadata"]["uid"] == shop["metadata"]["uid"]
    apps = AppsV1Api(client)
    await async_eventually(lambda: apps.list_namespaced_deployment(namespace), lambda found: found.items == [])
