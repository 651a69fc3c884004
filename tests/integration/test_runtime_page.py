"""The examples of docs/runtime.md, each run as it stands there: its operator on the test's own event loop."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lab.control_plane import ControlPlane
from lab.programs import prometheus_operator
from operator_runtime import (
    Client,
    ObjectKey,
    Operator,
    PlainObject,
    RuntimeSettings,
    custom_resource_definition,
    plain,
    to_yaml,
)
from operator_runtime.client.access.auth import load_access
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import NotFound
from operator_runtime.testing.cluster import UNDER_TEST, SimulatedCluster
from operator_runtime.testing.running import running_operator, settings_of
from operator_runtime.testing.waiting import async_eventually, async_until
from tests.cluster import Cluster, await_established
from tests.operator_process import PROJECT
from tests.shell_blocks import files

PAGE = files((PROJECT / "docs" / "runtime.md").read_text())
SHOPS = plain("example.com/v1", "Shop", "shops")
CONFIG_MAPS = plain("v1", "ConfigMap", "configmaps")
SERVICES = plain("v1", "Service", "services")
EVENTS = plain("events.k8s.io/v1", "Event", "events")
MONITORS = plain("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors")
# As far as the example goes, for a server that nobody has prometheus-operator's own definition for.
ANY_SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
ANY_MONITOR: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "names": {"kind": "ServiceMonitor", "plural": "servicemonitors"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": ANY_SCHEMA}],
    },
}

Examples = Callable[[str], ModuleType]


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Examples]:
    """The page's files in a folder of the test's own, which is the current one; loads one of them by its name."""
    for path, text in PAGE.items():
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield import_module
    for path in PAGE:
        sys.modules.pop(path.removesuffix(".py"), None)


@dataclass(frozen=True, slots=True)
class ShopNamespace:
    """A namespace for Shops, with a client that creates them."""

    cluster: Cluster
    namespace: str
    client: Client

    def key(self, name: str) -> ObjectKey:
        return ObjectKey(self.namespace, name)

    async def open(self, name: str, **spec: object) -> PlainObject:
        metadata = {"namespace": self.namespace, "name": name}
        return await self.client.create(SHOPS, {"metadata": metadata, "spec": spec})

    async def change(self, name: str, **body: object) -> None:
        await self.client.patch(SHOPS, self.key(name), body)

    def operator(
        self,
        set_up: Callable[[Operator, Any], None],
        settings: type[RuntimeSettings] = RuntimeSettings,
        **values: object,
    ) -> AbstractAsyncContextManager[Operator]:
        given = {"kubeconfig": str(self.cluster.kubeconfig_path), "watch_namespaces": (self.namespace,), **values}
        return running_operator(set_up, UNDER_TEST, settings_of(UNDER_TEST, settings, given))


@asynccontextmanager
async def client_of(cluster: Cluster) -> AsyncIterator[Client]:
    access = load_access(kubeconfig=str(cluster.kubeconfig_path), environ={})
    async with ApiClient(access, user_agent="author") as api:
        yield Client(api, field_manager="author")


@pytest.fixture
async def shops(
    cluster: Cluster, namespace: str, example: Examples, caplog: pytest.LogCaptureFixture
) -> AsyncIterator[ShopNamespace]:
    """On a cluster that knows the kind."""
    caplog.set_level(logging.INFO)
    crd = to_yaml(custom_resource_definition(example("shops").SHOP), "From docs/runtime.md.")
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=crd)
    await_established(cluster.kubectl, "crd/shops.example.com")
    async with client_of(cluster) as client:
        yield ShopNamespace(cluster, namespace, client)


def reconciles_of(caplog: pytest.LogCaptureFixture, key: ObjectKey) -> int:
    return sum(record.getMessage() == f"reconciled {key}" for record in caplog.records)


async def reconciled(caplog: pytest.LogCaptureFixture, key: ObjectKey, times: int = 1) -> None:
    await async_until(f"{key} is not reconciled {times} times", lambda: reconciles_of(caplog, key) >= times)


async def selling(shops: ShopNamespace, name: str, sells: str) -> None:
    await async_eventually(
        lambda: shops.client.get(SHOPS, shops.key(name)),
        lambda shop: shop.body.get("status", {}).get("sells") == sells,
        what=f"{name} sells {sells}",
    )


async def gone(shops: ShopNamespace, name: str) -> None:
    async def is_gone() -> bool:
        return name not in [each.name for each in await shops.client.list(SHOPS, shops.namespace)]

    await async_until(f"{name} is still there", is_gone)


# What an example logs once its operator does what the page says of it, which unit tests show for any operator.
SAID = {
    "controllers": "shop {key}: 1 shops, ",
    "mistakes": "does it write something that differs each time",
    "predicates": "reconciled {key}",
    "results": "reconciled {key}",
    "stalls": "Have asyncio.to_thread make it",
}


@pytest.mark.parametrize("name", SAID)
async def test_an_example_runs_and_says_what_it_does(
    shops: ShopNamespace, example: Examples, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    async with shops.operator(example(name).set_up):
        await shops.open("corner")
        words = SAID[name].format(key=shops.key("corner"))
        await async_until(f"it never says {words}", lambda: words in caplog.text)


async def test_owners_and_whom_a_function_finds_are_woken(shops: ShopNamespace, example: Examples) -> None:
    async with shops.operator(example("watches").set_up):
        await shops.open("corner", goods="fruit")
        await shops.open("market", goods="fruit")
        for name in ("corner", "market"):
            await selling(shops, name, "nothing")
        fruit = {"metadata": {"namespace": shops.namespace, "name": "fruit"}, "data": {"apples": "3", "pears": "4"}}
        await shops.client.create(CONFIG_MAPS, fruit)
        for name in ("corner", "market"):
            await selling(shops, name, "apples, pears")
        # Another list of goods: by a change of its own, and no longer by that of the old one.
        await shops.change("market", spec={"goods": "books"})
        await selling(shops, "market", "nothing")

        first = await shops.client.get(SERVICES, shops.key("corner"))
        await shops.client.delete(SERVICES, first.key)
        await async_eventually(
            lambda: shops.client.get(SERVICES, first.key), lambda found: found.uid != first.uid, ignoring=NotFound
        )


async def test_a_channel_wakes_for_what_comes_from_outside(
    shops: ShopNamespace, example: Examples, caplog: pytest.LogCaptureFixture
) -> None:
    shop = shops.key("corner")
    async with shops.operator(example("channels").set_up):
        await shops.open("corner")
        await reconciled(caplog, shop)
        _, writer = await asyncio.open_unix_connection("orders.sock")
        writer.write(f"{shop}\n".encode())
        await reconciled(caplog, shop, 2)
        writer.close()


async def test_a_finalizer_keeps_an_object_until_the_cleanup_is_done(shops: ShopNamespace, example: Examples) -> None:
    page = example("finalizers")
    page.REGISTRY.customers.add("corner")
    async with shops.operator(page.set_up):
        await shops.open("corner")
        await async_until("it is not open", lambda: "corner" in page.REGISTRY.open)
        await shops.client.delete(SHOPS, shops.key("corner"))
        shop = await shops.client.get(SHOPS, shops.key("corner"))
        assert shop.finalizers == ("shops.example.com/close",)
        page.REGISTRY.customers.clear()
        await gone(shops, "corner")
        assert page.REGISTRY.open == set()


async def test_the_client_does_what_the_page_says(shops: ShopNamespace, example: Examples) -> None:
    await example("clients").use(shops.client, shops.namespace)


async def test_a_kind_without_a_model_is_made_and_kept(shops: ShopNamespace, example: Examples) -> None:
    cluster = shops.cluster
    if isinstance(cluster, ControlPlane):
        (file,) = (each for each in prometheus_operator.definitions() if each.stem.endswith("servicemonitors"))
        cluster.kubectl("apply", "--server-side", "-f", str(file))
    else:
        cluster.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(ANY_MONITOR))
    await_established(cluster.kubectl, f"crd/{ANY_MONITOR['metadata']['name']}")
    key = shops.key("corner")

    def monitored() -> Any:
        return shops.client.get(MONITORS, key)

    def has_a_port(monitor: PlainObject) -> bool:
        return bool(monitor.body["spec"]["endpoints"] == [{"port": "metrics"}])

    async with shops.operator(example("monitors").set_up):
        await shops.open("corner")
        first = await async_eventually(monitored, has_a_port, ignoring=NotFound)
        assert [owner.name for owner in first.owners] == ["corner"]
        await shops.client.patch(MONITORS, key, {"spec": {"endpoints": [{"port": "other"}]}})
        await async_eventually(monitored, has_a_port)
        await shops.client.delete(MONITORS, key)
        await async_eventually(monitored, lambda found: found.uid != first.uid, ignoring=NotFound)


async def test_a_kind_that_is_missing_is_told_and_awaited(
    simulator: SimulatedCluster, example: Examples, caplog: pytest.LogCaptureFixture
) -> None:
    await simulator.apply(example("shops").SHOP)

    async def install() -> None:
        words = "Install prometheus-operator, which brings the kind ServiceMonitor."
        await async_until("nothing is told", lambda: words in caplog.text)
        await simulator.apply(ANY_MONITOR)

    installing = asyncio.create_task(install())
    async with simulator.operator(example("monitors").set_up):
        await installing


async def test_events_and_conditions_are_written_when_something_changes(
    shops: ShopNamespace, example: Examples
) -> None:
    async def conditions() -> list[tuple[str, str]]:
        shop = await shops.client.get(SHOPS, shops.key("corner"))
        return [(each["status"], each["reason"]) for each in shop.body.get("status", {}).get("conditions", ())]

    async def notes() -> set[str]:
        return {each.body["note"] for each in await shops.client.list(EVENTS, shops.namespace)}

    async with shops.operator(example("events").set_up):
        await shops.open("corner", size=2)
        await async_eventually(conditions, lambda found: found == [("True", "ClerksServe")])
        await shops.change("corner", spec={"size": 0})
        await async_eventually(conditions, lambda found: found == [("False", "NoClerks")])
        await async_eventually(notes, lambda found: found == {"2 clerks serve.", "spec.size is 0."})


async def test_metrics_and_checks_of_ones_own_are_served(
    shops: ShopNamespace, example: Examples, caplog: pytest.LogCaptureFixture
) -> None:
    anywhere: dict[str, Any] = {f"{server}_bind_address": "127.0.0.1:0" for server in ("metrics", "health_probe")}
    async with shops.operator(example("serving").set_up, **anywhere) as operator:
        urls = operator.urls
        assert f"serving probes at {urls['probes']}, metrics at {urls['metrics']}/metrics" in caplog.text

        async def shown(server: str, path: str) -> str:
            def read() -> str:
                try:
                    with urllib.request.urlopen(f"{urls[server]}{path}", timeout=60) as answer:
                        return str(answer.read().decode())
                except urllib.error.HTTPError as error:
                    with error:
                        return error.read().decode()

            return await asyncio.to_thread(read)

        await shops.open("corner")
        line = f'shop_reconciles_total{{namespace="{shops.namespace}"}} 1'
        await async_eventually(lambda: shown("metrics", "/metrics"), lambda text: line in text)
        many = 'controller_runtime_max_concurrent_reconciles{controller="shop"} 16'
        assert many in await shown("metrics", "/metrics")
        assert f'shop_clerks{{name="corner",namespace="{shops.namespace}"}} 1' in await shown(
            "metrics", "/metrics/shops"
        )
        assert "shop_clerks" not in await shown("metrics", "/metrics")
        assert await shown("probes", "/readyz/clerks") == "ok"
        await shops.change("corner", spec={"size": 0})
        await async_eventually(
            lambda: shown("probes", "/readyz/clerks"), lambda text: "no shop serves in corner" in text
        )


async def test_settings_of_ones_own_reach_the_operator(shops: ShopNamespace, example: Examples) -> None:
    page = example("settings")
    with pytest.raises(ValueError, match="--opening-hour: 24 is not allowed"):
        shops.operator(page.set_up, page.Settings, opening_hour=24)
    async with shops.operator(page.set_up, page.Settings, opening_hour=7) as operator:
        assert isinstance(operator.settings, page.Settings)
        assert operator.settings.opening_hour == 7


async def test_the_tests_of_the_page_pass(example: Examples) -> None:
    page = example("test_shops")
    tests = [function for name, function in vars(page).items() if name.startswith("test_")]
    assert len(tests) == 3
    for test in tests:
        with SimulatedCluster() as simulator:
            await test(simulator)


async def test_the_test_of_metrics_passes(example: Examples) -> None:
    page = example("test_serving")
    with SimulatedCluster() as simulator:
        await page.test_reconciles_are_counted(simulator)


def test_each_file_of_the_page_has_a_test() -> None:
    text = Path(__file__).read_text()
    modules = [path for path in PAGE if path.endswith(".py")]
    assert [path for path in modules if f'"{path.removesuffix(".py")}"' not in text] == []
