"""Finalizers of an author's own, on a custom resource and on the Deployment that it owns, in each order of deletion."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from operator_runtime import (
    Client,
    Condition,
    Finalizer,
    ObjectKey,
    Operator,
    PlainObject,
    Program,
    Result,
    Stage,
    Waiting,
    condition_of,
    owner_reference,
    rfc3339,
    set_conditions,
)
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import NotFound
from operator_runtime.testing.waiting import async_eventually, async_until
from tests.cluster import Cluster
from tests.integration.author_kinds import (
    DEPLOYMENTS,
    FIELD_MANAGER,
    SHELLS,
    Shell,
    api_client,
    deployment,
    install,
    remove,
    shell,
)
from tests.kubectl_in_namespace import Kubectl
from tests.unit.operator_runtime.operator_support import settings

PROGRAM = Program(FIELD_MANAGER, "0.1.0")
ON_SHELLS = "shells.example.com/finalizer"
ON_DEPLOYMENTS = "shells.example.com/deployment"
FOREIGN = "test.example.com/hold"


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
    async with api_client(cluster, f"author-{uuid.uuid4().hex[:8]}/test") as api:
        yield api


@pytest.fixture
def client(api: ApiClient) -> Client:
    return Client(api, field_manager=FIELD_MANAGER)


@pytest.fixture
def kubectl(cluster: Cluster, namespace: str) -> Kubectl:
    return Kubectl(cluster, namespace)


class Shells:
    """A Deployment for each Shell, and a finalizer on both; the cleanups do as the test says.

    Attributes:
        cleaned: kind and name, in order.
        disks: what is in the way of a Shell's cleanup.
        slow: what a Shell's cleanup waits for.
    """

    def __init__(self, operator: Operator) -> None:
        self._client = operator.client
        self._shells = operator.informer(SHELLS)
        self._deployments = operator.informer(DEPLOYMENTS)
        self.cleaned: list[str] = []
        self.disks = ""
        self.slow = ""
        self._of_shells = Finalizer(
            ON_SHELLS, operator.client, SHELLS, self._clean_shell, events=operator.events, report=self._report
        )
        self._of_deployments = Finalizer(
            ON_DEPLOYMENTS, operator.client, DEPLOYMENTS, self._clean_deployment, events=operator.events
        )
        operator.controller("shells", SHELLS, self.reconcile).owns(DEPLOYMENTS)

    async def reconcile(self, key: ObjectKey) -> Result:
        # The Deployment first: its Shell may be gone already.
        owned = self._deployments.get(key)
        if owned is not None:
            await self._of_deployments.finalize(owned)
        shell = self._shells.get(key)
        if shell is None:
            return Result()
        stage, shell = await self._of_shells.finalize(shell)
        if stage is Stage.WAITING:
            return Result(requeue_after_s=0.05)
        if stage is Stage.LIVE and owned is None:
            body = deployment(*key, ownerReferences=[owner_reference(SHELLS, shell)], finalizers=[ON_DEPLOYMENTS])
            await self._client.apply(DEPLOYMENTS, body)
        return Result()

    async def _clean_shell(self, shell: Shell) -> Waiting | None:
        if self.disks:
            raise OSError(self.disks)
        if self.slow:
            return Waiting(self.slow)
        self.cleaned.append(f"Shell {shell.name}")
        return None

    async def _clean_deployment(self, owned: PlainObject) -> None:
        self.cleaned.append(f"Deployment {owned.name}")

    async def _report(self, shell: Shell, condition: Condition) -> None:
        conditions = set_conditions(shell.status.conditions, [condition], generation=shell.generation, now=rfc3339())
        await self._client.patch_status(SHELLS, shell, msgspec.structs.replace(shell.status, conditions=conditions))


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


async def up(client: Client, namespace: str, **metadata: Any) -> ObjectKey:
    """A Shell with its Deployment, both with their finalizers."""
    made = await client.create(SHELLS, shell(namespace, "a", **metadata))

    async def finalizers() -> tuple[str, ...]:
        found = (await client.get(SHELLS, made.key)).finalizers
        return found + (await client.get(DEPLOYMENTS, made.key)).finalizers

    await async_eventually(finalizers, lambda each: {ON_SHELLS, ON_DEPLOYMENTS} <= set(each), ignoring=(NotFound,))
    return made.key


async def gone(client: Client, key: ObjectKey) -> None:
    """Wait until neither the Shell nor its Deployment is there."""

    async def none() -> bool:
        return not await client.list(SHELLS, key.namespace) and not await client.list(DEPLOYMENTS, key.namespace)

    await async_until("the Shell or its Deployment is still there", none)


async def test_a_deployment_whose_shell_is_gone_already_still_gets_its_cleanup(
    api: ApiClient, client: Client, namespace: str
) -> None:
    async with running(api, namespace) as shells:
        key = await up(client, namespace)
        await client.delete(SHELLS, key, propagation="Background")
        await gone(client, key)
    assert shells.cleaned == ["Shell a", "Deployment a"]


async def test_a_deployment_that_goes_before_its_shell_gets_its_cleanup(
    api: ApiClient, client: Client, namespace: str
) -> None:
    async with running(api, namespace) as shells:
        key = await up(client, namespace)
        await client.delete(SHELLS, key, propagation="Foreground")
        await gone(client, key)
    assert sorted(shells.cleaned) == ["Deployment a", "Shell a"]


async def test_a_deployment_that_alone_is_deleted_is_cleaned_up_after_and_made_again(
    api: ApiClient, client: Client, namespace: str
) -> None:
    async with running(api, namespace) as shells:
        key = await up(client, namespace)
        first = await client.get(DEPLOYMENTS, key)
        await client.delete(DEPLOYMENTS, key)

        async def made_again() -> bool:
            return (await client.get(DEPLOYMENTS, key)).uid != first.uid

        await async_eventually(made_again, bool, ignoring=(NotFound,))
        assert shells.cleaned == ["Deployment a"]
        await client.delete(SHELLS, key)
        await gone(client, key)


async def test_a_cleanup_that_fails_is_seen_and_tried_until_it_works(
    api: ApiClient, client: Client, kubectl: Kubectl, namespace: str
) -> None:
    async with running(api, namespace) as shells:
        key = await up(client, namespace)
        shells.disks = "disk 7 is in use"
        await client.delete(SHELLS, key)

        async def condition() -> Condition | None:
            return condition_of((await client.get(SHELLS, key)).status.conditions, "Finalized")

        seen = await async_eventually(condition, lambda each: each is not None)
        assert seen is not None
        assert (seen.status, seen.reason) == ("False", "CleanupFailed")
        message = f"Shell a cannot go, as the cleanup of its finalizer {ON_SHELLS} failed; it is tried again after a"
        assert seen.message.startswith(message)
        assert seen.message.endswith("OSError: disk 7 is in use")

        def events() -> list[tuple[str, str, str]]:
            items = kubectl.get("events", "--field-selector=involvedObject.name=a,reason=CleanupFailed")["items"]
            return [(each["type"], each["involvedObject"]["kind"], each["message"]) for each in items]

        told = await async_eventually(lambda: asyncio.to_thread(events), bool)
        assert told[0] == ("Warning", "Shell", seen.message)
        assert (await client.get(SHELLS, key)).deleting
        shells.disks, shells.slow = "", "Disk 7 is being released."
        waits = await async_eventually(condition, lambda each: each is not None and each.reason != "CleanupFailed")
        assert waits is not None
        assert (waits.reason, waits.message) == ("CleanupPending", "Disk 7 is being released.")
        assert waits.lastTransitionTime == seen.lastTransitionTime
        shells.slow = ""
        await gone(client, key)
    assert shells.cleaned == ["Shell a", "Deployment a"]


async def test_a_finalizer_of_somebody_else_stays_and_holds_the_object_up(
    api: ApiClient, client: Client, namespace: str
) -> None:
    async with running(api, namespace) as shells:
        key = await up(client, namespace, finalizers=[FOREIGN])
        await client.delete(SHELLS, key)

        async def left() -> tuple[str, ...]:
            return (await client.get(SHELLS, key)).finalizers

        await async_eventually(left, lambda each: each == (FOREIGN,))
        assert "Shell a" in shells.cleaned
        await client.patch(SHELLS, key, {"metadata": {"finalizers": None}})
        await gone(client, key)
    assert shells.cleaned.count("Shell a") == 1


async def test_what_a_gone_operator_left_is_released_by_hand(
    api: ApiClient, client: Client, kubectl: Kubectl, namespace: str
) -> None:
    async with running(api, namespace):
        key = await up(client, namespace)
    await client.delete(SHELLS, key)
    assert (await client.get(SHELLS, key)).deleting
    for what in ("shells", "deployments"):
        patch = ("patch", what, "a", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        await asyncio.to_thread(kubectl, *patch)
    await gone(client, key)
