"""The simulator as a whole: what a client with its kubeconfig can do, and how its parts end and come back."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

import kube_simulator as package
from kube_simulator import Options, Simulator
from kube_simulator.errors import ApiError
from lab import audit

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DEADLINE_S = 60.0


class Client:
    """One user of a simulator."""

    def __init__(self, simulator: Simulator, kubeconfig: Path | None = None, token: str = "") -> None:
        self._server = simulator.server
        context = ssl.create_default_context(cafile=simulator.ca_path)
        if kubeconfig is not None:
            _load(context, json.loads(kubeconfig.read_text())["users"][0]["user"])
        headers = {"User-Agent": "tester/1", **({"Authorization": f"Bearer {token}"} if token else {})}
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context), headers=headers)

    async def __call__(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and decoded body."""
        async with self.session.request(method, self._server + path, json=body) as answer:
            return answer.status, await answer.json()

    def watch(self, path: str) -> contextlib.AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return self.session.get(f"{self._server}{path}")


def _load(context: ssl.SSLContext, user: Mapping[str, str]) -> None:
    with tempfile.NamedTemporaryFile() as pair:
        for part in ("client-certificate-data", "client-key-data"):
            pair.write(base64.b64decode(user[part]))
        pair.flush()
        context.load_cert_chain(pair.name)


@contextlib.asynccontextmanager
async def connected(simulator: Simulator, kubeconfig: Path | None = None, token: str = "") -> AsyncIterator[Client]:
    client = Client(simulator, kubeconfig, token)
    try:
        yield client
    finally:
        await client.session.close()


@pytest_asyncio.fixture
async def running(tmp_path: Path) -> AsyncIterator[Simulator]:
    async with Simulator(Options(directory=tmp_path, pods_ready_after_s=None, memcached=False)) as simulator:
        yield simulator


@pytest_asyncio.fixture
async def admin(running: Simulator) -> AsyncIterator[Client]:
    async with connected(running, running.kubeconfig_path) as client:
        yield client


async def until(client: Client, path: str, field: str, desired: object) -> None:
    """Wait until an object's status has this."""
    async with asyncio.timeout(DEADLINE_S), client.watch(path) as stream:
        async for line in stream.content:
            if json.loads(line)["object"].get("status", {}).get(field) == desired:
                return
    raise AssertionError(f"the watch of {path} ended")


def deployment(replicas: int) -> dict[str, Any]:
    labels = {"app": "web"}
    container = {"name": "web", "image": "registry.example.com/web:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


async def test_the_administrator_of_its_kubeconfig_may_do_everything(running: Simulator, admin: Client) -> None:
    status, _ = await admin("POST", CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert status == 201
    assert (await admin("GET", f"{CONFIG_MAPS}/a"))[1]["data"] == {"k": "v"}
    assert await admin("GET", "/api/v1/namespaces/default/serviceaccounts/default"), "it is there from the beginning"
    config = json.loads(running.kubeconfig_path.read_text())
    assert (config["current-context"], config["clusters"][0]["cluster"]["server"]) == ("simulator", running.server)


async def test_a_folder_of_a_service_account_is_what_its_pod_would_have(running: Simulator) -> None:
    folder = await running.service_account_dir("default", "robot")
    first = (folder / "token").read_text()
    assert (folder / "namespace").read_text() == "default"
    assert (folder / "ca.crt").read_text() == running.ca_path.read_text()
    assert running.in_cluster_environment == {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(running.port),
    }
    async with connected(running, token=first) as robot:
        _, who = await robot("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
        assert who["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"
    assert await running.service_account_dir("default", "robot") == folder
    assert (folder / "token").read_text() != first, "a second call rotates the token"
    with pytest.raises(ApiError, match="from 10 minutes"):
        await running.service_account_dir("default", "robot", duration_s=10)


async def test_with_nodes_pods_become_ready(tmp_path: Path) -> None:
    options = Options(directory=tmp_path, pods_ready_after_s=0, memcached=False, name="demo")
    async with Simulator(options) as simulator, connected(simulator, simulator.kubeconfig_path) as admin:
        assert json.loads(simulator.kubeconfig_path.read_text())["current-context"] == "demo"
        await admin("POST", DEPLOYMENTS, deployment(2))
        await until(admin, f"{DEPLOYMENTS}?watch=1", "readyReplicas", 2)


async def test_without_controllers_nothing_comes_of_a_deployment_until_they_are_back(
    running: Simulator, admin: Client
) -> None:
    await running.stop_controller_manager()
    await admin("POST", DEPLOYMENTS, deployment(1))
    await running.kill_apiserver()
    await running.start_apiserver()
    _, found = await admin("GET", f"{DEPLOYMENTS}/web")
    assert found["status"].get("observedGeneration") is None, "a restarted API server starts no controllers"
    await running.start_controller_manager()
    await until(admin, f"{DEPLOYMENTS}?watch=1", "replicas", 1)


async def test_the_api_server_comes_back_with_its_state_and_forgets_its_history(
    running: Simulator, admin: Client
) -> None:
    await admin("POST", CONFIG_MAPS, {"metadata": {"name": "kept"}})
    _, found = await admin("GET", CONFIG_MAPS)
    await admin("POST", CONFIG_MAPS, {"metadata": {"name": "later"}})
    await running.stop_apiserver()
    with pytest.raises(aiohttp.ClientConnectorError):
        await admin("GET", CONFIG_MAPS)
    await running.start_apiserver()
    assert (await admin("GET", f"{CONFIG_MAPS}/kept"))[0] == 200
    version = found["metadata"]["resourceVersion"]
    async with admin.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={version}") as stream:
        assert json.loads(await stream.content.readline())["object"]["code"] == 410


async def test_watches_can_be_ended_and_the_history_forgotten(running: Simulator, admin: Client) -> None:
    _, found = await admin("GET", CONFIG_MAPS)
    path = f"{CONFIG_MAPS}?watch=1&resourceVersion={found['metadata']['resourceVersion']}"
    async with admin.watch(path) as stream:
        running.end_watches()
        assert await stream.content.read() == b""
    await admin("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
    async with admin.watch(path) as stream:
        assert json.loads(await stream.content.readline())["type"] == "ADDED"
    running.forget_history()
    async with admin.watch(path) as stream:
        assert json.loads(await stream.content.readline())["object"]["code"] == 410


async def test_its_audit_log_is_what_the_lab_reads_and_has_no_controllers(running: Simulator, admin: Client) -> None:
    await admin("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
    [event] = audit.read(running.audit_log)
    assert (event.verb, event.resource, event.namespace, event.name, event.user, event.code, event.user_agent) == (
        "create", "configmaps", "default", "a", "lab-admin", 201, "tester/1",
    )  # fmt: skip


async def test_without_streaming_lists_they_are_refused(tmp_path: Path) -> None:
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    async with (
        Simulator(Options(directory=tmp_path, streaming_lists=False, memcached=False)) as simulator,
        connected(simulator, simulator.kubeconfig_path) as admin,
    ):
        assert (await admin("GET", f"{CONFIG_MAPS}?{query}"))[0] == 422


async def test_at_the_end_nothing_is_left(tmp_path: Path) -> None:
    async with Simulator(Options(directory=tmp_path, memcached=False)) as simulator:
        port, directory = simulator.port, simulator.directory
        assert directory.is_relative_to(tmp_path)
    assert not directory.exists()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    names = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert names == []


async def test_a_port_that_is_taken_is_said_and_leaves_nothing(running: Simulator, tmp_path: Path) -> None:
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(OSError, match="address already in use"):
        async with Simulator(Options(directory=tmp_path, port=running.port, memcached=False)):
            pass
    assert sorted(os.listdir(tmp_path)) == before


def test_the_package_offers_the_simulator_and_its_faults() -> None:
    assert [getattr(package, name) for name in package.__all__]
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        package.Nothing  # noqa: B018
