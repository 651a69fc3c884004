"""What an author's objects own, at an API server: replaced where nobody can change it, deleted, and unseen at first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from operator_runtime import (
    Client,
    Kind,
    ObjectKey,
    Operator,
    PlainObject,
    Program,
    Result,
    Unwatched,
    owner_reference,
    plain,
)
from operator_runtime.client.access.auth import load_access
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import NotFound
from operator_runtime.testing.waiting import async_eventually, async_until
from tests.cluster import Cluster
from tests.integration.accounts import account_with_role, grant
from tests.integration.author_kinds import FIELD_MANAGER, SHELLS, Shell, api_client, install, remove, shell
from tests.kubectl_in_namespace import Kubectl
from tests.unit.operator_runtime.operator_support import settings

PROGRAM = Program(FIELD_MANAGER, "0.1.0")
STATEFUL_SETS = plain("apps/v1", "StatefulSet", "statefulsets")
SERVICES = plain("v1", "Service", "services")
PODS = plain("v1", "Pod", "pods")
EVENTS = plain("events.k8s.io/v1", "Event", "events")


@pytest.fixture(scope="module", autouse=True)
def kinds(cluster: Cluster) -> Iterator[None]:
    """The author's kinds."""
    install(cluster)
    # The garbage collector learns of a new kind when it starts, and every 30 s.
    cluster.stop_controller_manager()
    cluster.start_controller_manager()
    yield
    remove(cluster)


@pytest.fixture
async def api(cluster: Cluster) -> AsyncIterator[ApiClient]:
    async with api_client(cluster, f"{FIELD_MANAGER}/test") as api:
        yield api


@pytest.fixture
def client(api: ApiClient) -> Client:
    return Client(api, field_manager="user")


class Shells:
    """A StatefulSet of one pod and a Service for each Shell; the Service is headless from size 2 on, none is at 0."""

    def __init__(self, operator: Operator) -> None:
        self._shells = operator.informer(SHELLS)
        self._sets = operator.owned(SHELLS, STATEFUL_SETS, fixed=("spec.serviceName",), replace="Orphan")
        self._services = operator.owned(
            SHELLS, SERVICES, fixed=("spec.clusterIP",), replace="Background", optional=True
        )
        self.unseen: list[str] = []
        operator.controller("shells", SHELLS, self.reconcile).owns(STATEFUL_SETS).owns(SERVICES, optional=True)

    async def reconcile(self, key: ObjectKey) -> Result:
        shell = self._shells.get(key)
        if shell is None:
            return Result()
        size, metadata = shell.spec.size, _metadata(shell)
        await self._sets.keep(shell, {"metadata": metadata, "spec": _stateful_set(key.name, f"{key.name}-{size}")})
        try:
            if size:
                await self._services.keep(shell, {"metadata": metadata, "spec": _service(key.name, headless=size > 1)})
            else:
                await self._services.remove(shell, key)
        except Unwatched as error:
            self.unseen.append(str(error))
        return Result()


def _metadata(shell: Shell) -> dict[str, Any]:
    return {"namespace": shell.namespace, "name": shell.name, "ownerReferences": [owner_reference(SHELLS, shell)]}


def _stateful_set(name: str, service: str) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    return {"replicas": 1, "serviceName": service, "selector": {"matchLabels": labels}, "template": template}


def _service(name: str, *, headless: bool) -> dict[str, Any]:
    port = {"name": "http", "port": 80, "protocol": "TCP", "targetPort": 80}
    return {"selector": {"app": name}, "ports": [port]} | ({"clusterIP": "None"} if headless else {})


@asynccontextmanager
async def running(api: ApiClient, namespace: str) -> AsyncIterator[Shells]:
    operator = Operator(settings(), PROGRAM, api, namespaces=(namespace,))
    shells = Shells(operator)
    stop = asyncio.Event()
    work = asyncio.create_task(operator.finish().run(stop))
    try:
        yield shells
    finally:
        stop.set()
        await work


async def there(
    client: Client, kind: Kind[PlainObject], key: ObjectKey, *, successor_of: PlainObject | None = None
) -> PlainObject:
    """An object, once it is there, and is another one than its predecessor."""
    return await async_eventually(
        lambda: client.get(kind, key),
        lambda found: successor_of is None or found.uid != successor_of.uid,
        ignoring=(NotFound,),
    )


async def events_of(client: Client, namespace: str, kind: str, reasons: set[str]) -> list[str]:
    """The notes on what was done to the kind, once there is one of each of these reasons."""

    async def notes() -> list[tuple[str, str]]:
        events = await client.list(EVENTS, namespace)
        mine = [each for each in events if each.body["reportingController"] == settings().operator_name]
        mine.sort(key=lambda each: str(each.body["eventTime"]))
        return [(each.body["reason"], each.body["note"]) for each in mine if f" {kind} " in each.body["note"]]

    found = await async_eventually(notes, lambda told: {reason for reason, _ in told} >= reasons)
    return [note for _, note in found]


async def test_what_cannot_be_changed_is_made_anew_and_what_is_no_longer_wanted_goes(
    api: ApiClient, client: Client, namespace: str
) -> None:
    key, pod_key = ObjectKey(namespace, "a"), ObjectKey(namespace, "a-0")

    async def adopted(by: PlainObject) -> PlainObject:
        return await async_eventually(
            lambda: client.get(PODS, pod_key),
            lambda pod: pod.controller is not None and pod.controller.uid == by.uid,
            ignoring=(NotFound,),
        )

    async with running(api, namespace):
        await client.create(SHELLS, shell(namespace, "a", 1))
        old_service = await there(client, SERVICES, key)
        old_set = await there(client, STATEFUL_SETS, key)
        pod = await adopted(old_set)
        await client.patch(SHELLS, key, {"spec": {"size": 2}})
        new_set = await there(client, STATEFUL_SETS, key, successor_of=old_set)
        assert new_set.body["spec"]["serviceName"] == "a-2"
        assert (await adopted(new_set)).uid == pod.uid, "the pods of a StatefulSet outlive its replacement"
        new_service = await there(client, SERVICES, key, successor_of=old_service)
        assert new_service.body["spec"]["clusterIP"] == "None"
        await client.patch(SHELLS, key, {"spec": {"size": 0}})

        async def is_gone() -> bool:
            return key not in {each.key for each in await client.list(SERVICES, namespace)}

        await async_until("the Service is still there", is_gone)
        notes = await events_of(client, namespace, "Service", {"Created", "Deleted"})
        assert notes[0] == "Created Service a: new"
        assert notes[1].startswith("Deleted Service a: to be replaced, as spec.clusterIP was ")
        assert notes[2].startswith("Created Service a: replaced, as spec.clusterIP was ")
        assert "Warning" not in {each.body["type"] for each in await client.list(EVENTS, namespace)}


async def test_what_the_account_may_not_see_is_left_alone_and_kept_when_it_may(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    key = ObjectKey(namespace, "a")
    kubectl = Kubectl(cluster, namespace)
    group = SHELLS.resource.group
    rules = [
        _rule(group, "shells", "get", "list", "watch"),
        _rule(group, "shells/finalizers", "update"),
        _rule("apps", "statefulsets", "get", "list", "watch", "create", "patch", "delete"),
        _rule("events.k8s.io", "events", "create", "patch"),
    ]
    folder = await asyncio.to_thread(account_with_role, kubectl, rules)
    await client.create(SHELLS, shell(namespace, "a", 1))
    access = load_access(service_account_dir=folder, environ=cluster.in_cluster_environment)
    async with (
        ApiClient(access, user_agent=f"{FIELD_MANAGER}/limited") as limited,
        running(limited, namespace) as shells,
    ):
        await async_until("nothing is refused", lambda: bool(shells.unseen))
        assert shells.unseen[0].startswith("The Service is left as it is, as services cannot be watched: services is ")
        await there(client, STATEFUL_SETS, key)
        assert key not in {each.key for each in await client.list(SERVICES, namespace)}
        services = _rule("", "services", "get", "list", "watch", "create", "patch", "delete")
        await asyncio.to_thread(grant, kubectl, [*rules, services])
        assert (await there(client, SERVICES, key)).owners[0].name == "a"


def _rule(group: str, resource: str, *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
