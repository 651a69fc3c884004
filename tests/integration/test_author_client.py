"""The client for reconcilers at an API server: kinds with types, of Kubernetes' own, and a third party's real one."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from lab.audit import Mark
from lab.cache import BuildError
from lab.programs import prometheus_operator
from operator_runtime import Client, ObjectKey, Operator, PlainObject, Program, Result, owner_reference
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import Conflict, Invalid, NotFound
from operator_runtime.testing.waiting import async_eventually, async_until
from tests.cluster import Cluster
from tests.integration.author_kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    FARMS,
    FIELD_MANAGER,
    SERVICE_MONITORS,
    SHELLS,
    ShellStatus,
    api_client,
    await_kind,
    deployment,
    install,
    remove,
    shell,
)
from tests.integration.requests import writes_of, written
from tests.unit.operator_runtime.operator_support import settings
from tests.unit.operator_runtime.owned.bodies_kept import CHANGES_NOTHING, CHANGES_SOMETHING, otherwise

PROGRAM = Program(FIELD_MANAGER, "0.1.0")
MONITOR = {"selector": {"matchLabels": {"app": "shop"}}, "endpoints": [{"port": "metrics", "interval": "30s"}]}


@pytest.fixture(scope="module", autouse=True)
def kinds(cluster: Cluster) -> Iterator[None]:
    """The author's kinds, and ServiceMonitor as prometheus-operator defines it."""
    install(cluster)
    yield
    remove(cluster)


@pytest.fixture(scope="module")
def service_monitors(cluster: Cluster) -> Iterator[None]:
    """ServiceMonitor as prometheus-operator defines it."""
    try:
        (file,) = [each for each in prometheus_operator.definitions() if each.name.endswith("servicemonitors.yaml")]
    except BuildError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"cannot be had here: {error}")
    cluster.kubectl("apply", "--server-side", "-f", str(file))
    await_kind(cluster, SERVICE_MONITORS)
    yield
    cluster.kubectl("delete", "crd/servicemonitors.monitoring.coreos.com")


@pytest.fixture
async def api(cluster: Cluster) -> AsyncIterator[ApiClient]:
    async with api_client(cluster, f"author-{uuid.uuid4().hex[:8]}/test") as api:
        yield api


@pytest.fixture
def client(api: ApiClient) -> Client:
    return Client(api, field_manager=FIELD_MANAGER)


def managers(obj: dict[str, Any]) -> set[tuple[str, str]]:
    return {(each["manager"], each["operation"]) for each in obj["metadata"]["managedFields"]}


async def test_an_object_is_made_read_changed_and_deleted(client: Client, cluster: Cluster, namespace: str) -> None:
    key = ObjectKey(namespace, "a")
    made = await client.create(SHELLS, shell(namespace, "a", 3, labels={"tier": "x"}))
    assert (made.spec.size, made.generation, made.key, dict(made.labels)) == (3, 1, key, {"tier": "x"})
    assert await client.get(SHELLS, key) == made
    await client.create(SHELLS, shell(namespace, "b", labels={"tier": "y"}))
    assert [each.name for each in await client.list(SHELLS, namespace)] == ["a", "b"]
    assert [each.name for each in await client.list(SHELLS, namespace, "tier=y")] == ["b"]
    assert {("a", namespace), ("b", namespace)} <= {(each.name, each.namespace) for each in await client.list(SHELLS)}
    changed = await client.patch(SHELLS, key, {"spec": {"size": 5}, "metadata": {"labels": {"tier": None}}})
    assert (changed.spec.size, dict(changed.labels)) == (5, {})
    await client.delete(SHELLS, key, uid=made.uid)
    await client.delete(SHELLS, key, uid=made.uid)
    await client.delete(SHELLS, key)
    with pytest.raises(NotFound):
        await client.get(SHELLS, key)
    with pytest.raises(Conflict):
        await client.create(SHELLS, shell(namespace, "b"))
    kept = json.loads(cluster.kubectl("get", "shells/b", "-n", namespace, "-o", "json", "--show-managed-fields").stdout)
    assert managers(kept) == {(FIELD_MANAGER, "Update")}


async def test_a_successor_of_the_name_is_not_deleted(client: Client, namespace: str) -> None:
    first = await client.create(SHELLS, shell(namespace, "a"))
    await client.delete(SHELLS, first.key)
    second = await client.create(SHELLS, shell(namespace, "a"))
    await client.delete(SHELLS, first.key, uid=first.uid)
    assert (await client.get(SHELLS, first.key)).uid == second.uid


async def test_a_deletion_that_a_finalizer_holds_up_is_asked_for_all_the_same(client: Client, namespace: str) -> None:
    held = await client.create(DEPLOYMENTS, deployment(namespace, "a", finalizers=["test.example.com/hold"]))
    await client.delete(DEPLOYMENTS, held.key, propagation="Foreground")
    going = await client.get(DEPLOYMENTS, held.key)
    assert going.deleting
    assert "test.example.com/hold" in going.finalizers
    await client.patch(DEPLOYMENTS, held.key, {"metadata": {"finalizers": None}})


async def test_a_status_is_written_on_the_version_that_it_was_made_for(
    client: Client, api: ApiClient, namespace: str
) -> None:
    first = await client.create(SHELLS, shell(namespace, "a"))
    wanted = ShellStatus(ready=1, pods=("p",), note="starting")
    second = await client.patch_status(SHELLS, first, wanted)
    assert (second.status, second.generation) == (wanted, 1)
    before = api.requests.total()
    assert await client.patch_status(SHELLS, second, wanted) is second
    assert api.requests.total() == before
    with pytest.raises(Conflict):
        await client.patch_status(SHELLS, first, ShellStatus(ready=2))
    third = await client.patch_status(SHELLS, second, ShellStatus(ready=1, pods=("p",)))
    assert third.status.note is None
    again = await client.get(SHELLS, first.key)
    assert again == third


async def test_a_kind_without_a_status_subresource_is_named(client: Client, namespace: str) -> None:
    name = f"farm-{namespace}"
    farm = await client.create(FARMS, {"metadata": {"name": name}, "spec": {"x": 1}})
    assert farm.key == ObjectKey("", name)
    try:
        with pytest.raises(NotFound, match="Farm has no status subresource: write `subresources"):
            await client.patch_status(FARMS, farm, {"ready": 1})
        assert name in [each.name for each in await client.list(FARMS)]
    finally:
        await client.delete(FARMS, farm.key)
    with pytest.raises(NotFound, match="not found"):
        await client.patch_status(FARMS, farm, {"ready": 1})


async def test_an_apply_makes_changes_and_takes_back(client: Client, cluster: Cluster, namespace: str) -> None:
    body = {"metadata": {"namespace": namespace, "name": "a"}, "data": {"x": "1", "y": "2"}}
    made = await client.apply(CONFIG_MAPS, body)
    changed = await client.apply(CONFIG_MAPS, body | {"data": {"x": "1"}})
    assert changed.body["data"] == {"x": "1"}
    assert (await client.apply(CONFIG_MAPS, body | {"data": {"x": "1"}})).resource_version == changed.resource_version
    cluster.kubectl("patch", "cm/a", "-n", namespace, "--type=merge", "-p", '{"data":{"x":"theirs"}}')
    with pytest.raises(Conflict):
        await client.apply(CONFIG_MAPS, body, force=False)
    assert (await client.apply(CONFIG_MAPS, body)).body["data"] == {"x": "1", "y": "2"}
    await client.delete(CONFIG_MAPS, made.key)
    of_that_one = body | {"metadata": {"namespace": namespace, "name": "a", "uid": made.uid}}
    with pytest.raises((Conflict, Invalid)):
        await client.apply(CONFIG_MAPS, of_that_one)
    again = await client.apply(CONFIG_MAPS, body)
    assert again.uid != made.uid


@pytest.mark.slow  # the definitions come with prometheus-operator, which must be built
@pytest.mark.usefixtures("service_monitors")
@pytest.mark.timeout(1800)  # prometheus-operator's source is had on first use
async def test_a_third_partys_kind_needs_no_model(client: Client, namespace: str) -> None:
    key = ObjectKey(namespace, "shop")
    made = await client.apply(SERVICE_MONITORS, {"metadata": {"namespace": namespace, "name": "shop"}, "spec": MONITOR})
    assert made.body["spec"] == MONITOR
    assert (made.body["apiVersion"], made.body["kind"]) == ("monitoring.coreos.com/v1", "ServiceMonitor")
    assert "managedFields" not in made.body["metadata"]
    assert await client.list(SERVICE_MONITORS, namespace) == [made]
    patched = await client.patch(SERVICE_MONITORS, key, {"spec": {"jobLabel": "job"}})
    assert patched.body["spec"] == MONITOR | {"jobLabel": "job"}
    with pytest.raises(Invalid, match="selector"):
        await client.create(SERVICE_MONITORS, {"metadata": {"namespace": namespace, "name": "b"}, "spec": {}})
    await client.delete(SERVICE_MONITORS, key)
    assert await client.list(SERVICE_MONITORS, namespace) == []


class Monitoring:
    """For each Shell a ServiceMonitor of another name, which its caches know without a model."""

    def __init__(self, operator: Operator) -> None:
        self._client = operator.client
        self._shells = operator.informer(SHELLS)
        self._monitors = operator.informer(SERVICE_MONITORS)
        self.reconciles = 0
        operator.controller("shells", SHELLS, self.reconcile).owns(SERVICE_MONITORS)

    async def reconcile(self, key: ObjectKey) -> Result:
        self.reconciles += 1
        shell = self._shells.get(key)
        if shell is None:
            return Result()
        name = ObjectKey(key.namespace, f"{key.name}-monitor")
        monitor = self._monitors.get(name)
        if shell.spec.size == 0:
            if monitor is not None:
                await self._client.delete(SERVICE_MONITORS, name, uid=monitor.uid)
            return Result()
        interval = f"{shell.spec.size}s"
        if monitor is None or monitor.body["spec"]["endpoints"][0].get("interval") != interval:
            spec = MONITOR | {"endpoints": [{"port": "metrics", "interval": interval}]}
            owners = [owner_reference(SHELLS, shell)]
            metadata = {"namespace": name.namespace, "name": name.name, "ownerReferences": owners}
            await self._client.apply(SERVICE_MONITORS, {"metadata": metadata, "spec": spec})
        await self._client.patch_status(SHELLS, shell, ShellStatus(ready=1))
        return Result()


@pytest.mark.slow  # the definitions come with prometheus-operator, which must be built
@pytest.mark.usefixtures("service_monitors")
@pytest.mark.timeout(1800)
async def test_a_controller_owns_a_third_partys_kind_and_writes_nothing_twice(
    api: ApiClient, client: Client, cluster: Cluster, namespace: str
) -> None:
    agent = f"shells-{namespace}"
    mark = cluster.audit_mark()
    key = ObjectKey(namespace, "a-monitor")

    async def interval() -> str:
        monitor: PlainObject = await client.get(SERVICE_MONITORS, key)
        return str(monitor.body["spec"]["endpoints"][0]["interval"])

    def writes(since: Mark) -> list[str]:
        # The test's own client has another name.
        return written(writes_of(cluster, agent, since=since))

    async with api_client(cluster, f"{agent}/test") as its_api:
        operator = Operator(settings(), PROGRAM, its_api, namespaces=(namespace,))
        monitoring = Monitoring(operator)
        stop = asyncio.Event()
        running = asyncio.create_task(operator.finish().run(stop))
        try:
            await client.create(SHELLS, shell(namespace, "a", 30))
            await async_eventually(interval, lambda each: each == "30s", ignoring=(NotFound,))
            first = await client.get(SERVICE_MONITORS, key)
            assert [(each.kind, each.name, each.controller) for each in first.owners] == [("Shell", "a", True)]
            await client.patch(SERVICE_MONITORS, key, {"spec": {"endpoints": [{"port": "x", "interval": "1s"}]}})
            await async_eventually(interval, lambda each: each == "30s")
            await client.delete(SERVICE_MONITORS, key)
            await async_eventually(interval, lambda each: each == "30s", ignoring=(NotFound,))
            await client.patch(SHELLS, ObjectKey(namespace, "a"), {"spec": {"size": 15}})
            await async_eventually(interval, lambda each: each == "15s")
            at_rest, looks = cluster.audit_mark(), monitoring.reconciles
            await client.patch(SHELLS, ObjectKey(namespace, "a"), {"metadata": {"labels": {"team": "caches"}}})
            await async_eventually(lambda: monitoring.reconciles, lambda each: each > looks)
            await client.patch(SHELLS, ObjectKey(namespace, "a"), {"spec": {"size": 0}})

            async def is_gone() -> bool:
                return await client.list(SERVICE_MONITORS, namespace) == []

            await async_until("the ServiceMonitor is still there", is_gone)
        finally:
            stop.set()
            await running
    apply, delete = "patch servicemonitors a-monitor", "delete servicemonitors a-monitor"
    assert set(writes(mark)) == {apply, "patch shells/status a", delete}
    assert set(writes(at_rest)) == {delete}, "it looked once more, and what was as it should be was not written again"


async def test_what_bodies_want_otherwise_is_put_right_by_one_patch_and_nothing_where_nothing_differs(
    api: ApiClient, namespace: str, client: Client
) -> None:
    somebody = Client(api, field_manager="somebody")
    assert await otherwise(client, somebody, CHANGES_NOTHING, (False, True), namespace) == []
    assert await otherwise(client, somebody, CHANGES_SOMETHING, (True, True), namespace) == []
