"""The client for reconcilers at an API server: kinds with types of an author's own, and those of Kubernetes."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest

from operator_runtime import Client, ObjectKey, plain, typed
from operator_runtime.client.access.auth import load_access
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import Conflict, Invalid, NotFound
from operator_runtime.testing.waiting import until
from tests.cluster import Cluster
from tests.conformance.sample_objects import GROUP, custom_resource_definition
from tests.unit.operator_runtime.owned.bodies_kept import CHANGES_NOTHING, CHANGES_SOMETHING, otherwise

FIELD_MANAGER = "shells"


class ShellSpec(msgspec.Struct, frozen=True):
    """What a user writes."""

    size: int = 1


class ShellStatus(msgspec.Struct, frozen=True):
    """What an operator answers."""

    ready: int = 0
    pods: tuple[str, ...] = ()
    note: str | None = None


SHELLS = typed(f"{GROUP}/v1", "Shell", "shells", spec=ShellSpec, status=ShellStatus)
CONFIG_MAPS = plain("v1", "ConfigMap", "configmaps")


def shell(namespace: str, name: str, size: int = 1, **metadata: Any) -> dict[str, Any]:
    """A Shell as an author writes it, without apiVersion and kind."""
    return {"metadata": {"namespace": namespace, "name": name, **metadata}, "spec": {"size": size}}


@pytest.fixture(scope="module", autouse=True)
def kind(cluster: Cluster) -> Iterator[None]:
    """The cluster serves `SHELLS`."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties = {"spec": anything, "status": anything}
    definition = custom_resource_definition("Shell", properties, subresources={"status": {}})
    cluster.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(definition))
    served = ("get", "--raw", SHELLS.resource.path())
    until("Shells are not served", lambda: cluster.kubectl(*served, check=False).returncode == 0)
    yield
    cluster.kubectl("delete", f"crd/{definition['metadata']['name']}")


@pytest.fixture
async def api(cluster: Cluster) -> AsyncIterator[ApiClient]:
    access = load_access(kubeconfig=str(cluster.kubeconfig_path), environ={})
    async with ApiClient(access, user_agent=f"author-{uuid.uuid4().hex[:8]}/test") as api:
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


async def test_what_bodies_want_otherwise_is_put_right_by_one_patch_and_nothing_where_nothing_differs(
    api: ApiClient, namespace: str, client: Client
) -> None:
    somebody = Client(api, field_manager="somebody")
    assert await otherwise(client, somebody, CHANGES_NOTHING, (False, True), namespace) == []
    assert await otherwise(client, somebody, CHANGES_SOMETHING, (True, True), namespace) == []
