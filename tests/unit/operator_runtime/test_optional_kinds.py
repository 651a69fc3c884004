"""Kinds that a cluster may do without: nobody waits for them, and they are seen when they are installed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube_simulator.faults import Refuse
from operator_runtime import (
    ObjectKey,
    Operator,
    PlainObject,
    Result,
    RuntimeSettings,
    Unwatched,
    owner_reference,
    plain,
)
from operator_runtime.testing.cluster import SimulatedCluster
from operator_runtime.testing.waiting import async_eventually, async_until
from tests.unit.operator_runtime.client.client_support import client_of
from tests.unit.operator_runtime.controller.test_builder import PROGRAM_OF_SHELLS, reconcile
from tests.unit.operator_runtime.operator_support import settings
from tests.unit.operator_runtime.testing.greetings import API_VERSION, CONFIG_MAPS, CRD, GREETINGS

PLACE = {"name": "world", "namespace": "default"}
GREETING = {"apiVersion": API_VERSION, "kind": "Greeting", "metadata": PLACE, "spec": {"name": "World"}}


async def test_an_operator_works_without_a_kind_that_is_optional_and_with_it_once_it_is_installed(
    simulator: SimulatedCluster,
) -> None:
    seen: list[ObjectKey] = []

    async def record_key(key: ObjectKey) -> Result:
        seen.append(key)
        return Result()

    def set_up(operator: Operator, settings: RuntimeSettings) -> None:
        builder = operator.controller("maps", CONFIG_MAPS, record_key)
        builder.watches(GREETINGS, lambda greeting: greeting.key, optional=True)

    async with simulator.operator(set_up) as operator:
        await async_until("no ConfigMap is reconciled", lambda: bool(seen))
        assert operator.informer(GREETINGS).values() == []
        await asyncio.to_thread(simulator.install, CRD, GREETING)
        await async_until("the Greeting is not reconciled", lambda: ObjectKey("default", "world") in seen)


SERVICES = plain("v1", "Service", "services")
ACCOUNT = "limited"


def may_do(*rules: dict[str, Any]) -> list[dict[str, Any]]:
    """All that the operator's account may do."""
    rbac, role = "rbac.authorization.k8s.io", {"name": ACCOUNT}
    made = {"apiVersion": f"{rbac}/v1", "metadata": role}
    bound = {
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", **role},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": ACCOUNT}],
    }
    return [made | {"kind": "ClusterRole", "rules": list(rules)}, made | {"kind": "ClusterRoleBinding"} | bound]


def rule(resource: str, *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [""], "resources": [resource], "verbs": list(verbs)}


EVENTS = {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}
MAPS = rule("configmaps", "get", "list", "watch")
OWNED = rule("services", "get", "list", "watch", "create", "patch", "delete")


class Shelves:
    """A Service for each ConfigMap with the label `shelf`, where the account may see Services."""

    def __init__(self, operator: Operator) -> None:
        self.maps = operator.informer(CONFIG_MAPS)
        self.services = operator.owned(CONFIG_MAPS, SERVICES, optional=True)
        self.refusals: list[str] = []
        self.done: list[ObjectKey] = []
        operator.controller("shelves", CONFIG_MAPS, self.reconcile).owns(SERVICES, optional=True)

    async def reconcile(self, key: ObjectKey) -> Result:
        owner = self.maps.get(key)
        if owner is None:
            return Result()
        try:
            if "shelf" in owner.labels:
                await self.services.ensure(owner, service(owner))
            else:
                await self.services.remove(owner, key)
            self.done.append(key)
        except Unwatched as error:
            self.refusals.append(str(error))
        return Result()


def service(owner: PlainObject) -> dict[str, Any]:
    owners = [owner_reference(CONFIG_MAPS, owner)]
    metadata = {"namespace": owner.namespace, "name": owner.name, "ownerReferences": owners}
    return {"metadata": metadata, "spec": {"ports": [{"name": "http", "port": 80}]}}


def config_map(name: str, namespace: str = "default", **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


async def test_what_may_not_be_seen_is_left_alone_and_done_as_soon_as_it_may(
    simulator: SimulatedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "operator_runtime")
    await simulator.apply(*may_do(EVENTS, MAPS), config_map("a", shelf="1"), config_map("b"))
    made: list[Shelves] = []

    def set_up(operator: Operator, settings: RuntimeSettings) -> None:
        made.append(Shelves(operator))

    a, b = ObjectKey("default", "a"), ObjectKey("default", "b")
    async with (
        simulator.operator(set_up, kubeconfig=str(simulator.user_kubeconfig(ACCOUNT))) as operator,
        simulator.client() as client,
    ):
        shelves = made[0]
        await async_until("nobody was refused", lambda: bool(shelves.refusals))
        assert shelves.refusals[0].startswith(
            f'The Service is left as it is, as services cannot be watched: services is forbidden: User "{ACCOUNT}" '
        )
        await async_until("what is not desired is not reconciled", lambda: b in shelves.done)
        assert [each.resource.plural for each in operator.manager.awaited] == ["configmaps"]
        (logged,) = (each for each in caplog.messages if each.startswith("caches are in sync: "))
        assert "configmaps in all namespaces; going on without services in all namespaces (403 Forbidden: " in logged
        await simulator.apply(*may_do(EVENTS, MAPS, OWNED))
        await async_until("nothing is reconciled again", lambda: a in shelves.done)
        assert (await client.get(SERVICES, a)).owners[0].name == "a"
        # What was asked for meanwhile and is wanted no more goes.
        await client.patch(CONFIG_MAPS, a, {"metadata": {"labels": None}})
        await async_eventually(lambda: client.list(SERVICES, "default"), lambda found: not owned_by(a, found))


def owned_by(owner: ObjectKey, services: list[PlainObject]) -> list[PlainObject]:
    return [each for each in services if any(holder.name == owner.name for holder in each.owners)]


async def test_the_right_may_be_missing_in_one_namespace_alone(simulator: SimulatedCluster) -> None:
    await simulator.apply(
        *may_do(EVENTS, MAPS, OWNED),
        *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("seen", "unseen")),
    )
    await simulator.apply(config_map("a", "seen", shelf="1"), config_map("a", "unseen", shelf="1"))
    faults = simulator.simulator.faults
    simulator.call(lambda: faults.add(Refuse(403), verb="watch", resource="services", namespace="unseen"))
    made: list[Shelves] = []

    def set_up(operator: Operator, settings: RuntimeSettings) -> None:
        made.append(Shelves(operator))

    async with simulator.operator(set_up, watch_namespaces=("seen", "unseen")):
        shelves = made[0]
        await async_until("nobody was refused", lambda: bool(shelves.refusals))
        await async_until("the other one waits", lambda: ObjectKey("seen", "a") in shelves.done)
        assert ObjectKey("unseen", "a") not in shelves.done
        simulator.call(faults.clear)
        await async_until("nothing is reconciled again", lambda: ObjectKey("unseen", "a") in shelves.done)


def test_readiness_asks_for_no_optional_kind_unless_another_waits_for_it() -> None:
    operator = Operator(settings(), PROGRAM_OF_SHELLS, client_of("https://api.invalid"))
    operator.controller("maps", CONFIG_MAPS, reconcile).owns(GREETINGS, optional=True)
    manager = operator.manager
    assert [each.resource.plural for each in manager.reflectors] == ["configmaps", "greetings"]
    assert [each.resource.plural for each in manager.awaited] == ["configmaps"]
    operator.informer(GREETINGS, optional=True)
    assert [each.resource.plural for each in manager.awaited] == ["configmaps"]
    operator.informer(GREETINGS)
    assert [each.resource.plural for each in manager.awaited] == ["configmaps", "greetings"]
    operator.informer(GREETINGS, optional=True)
    assert [each.resource.plural for each in manager.awaited] == ["configmaps", "greetings"]
