"""Other memory for servers that run: of real memcached processes, in pods whose node is played by the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from operator_runtime.testing.waiting import eventually
from tests.integration.real_servers import RealServer
from tests.integration.rolling import Rolling, rolling, template
from tests.kubectl_in_namespace import Kubectl

pytestmark = [
    pytest.mark.core,
    pytest.mark.cluster("kubernetes"),  # the simulator resizes no pods
    pytest.mark.since("1.33", "in-place resize of pods"),
    pytest.mark.usefixtures("operator"),
]

MIB = 1024 * 1024


class Node:
    """Runs memcached for each pod, and resizes pods as far as the test lets it."""

    def __init__(self, shop: Rolling, ends: ExitStack) -> None:
        self.shop = shop
        self._ends = ends
        self._servers: dict[str, RealServer] = {}

    def create(self, memory: str) -> None:
        """Two servers that run with so much memory."""
        self.shop.create(2, memory=memory)
        for name in self.shop.pods():
            self.run(name)

    def run(self, name: str) -> None:
        """Start this pod's memcached as its container says; it is ready."""
        _, *arguments = self.shop.pods()[name]["spec"]["containers"][0]["command"]
        server = self._servers[name] = self._ends.enter_context(RealServer(*arguments))
        self.resized(name, podIP=server.address, podIPs=[{"ip": server.address}])
        self.shop.serve(name)

    def resized(self, name: str, **status: object) -> None:
        """Its container has what its pod asks for."""
        resources = self.resources(name)
        running = {"state": {"running": {}}, "ready": True, "restartCount": 0, "image": "", "imageID": ""}
        self.shop.set_status(
            name, containerStatuses=[{"name": "memcached", "resources": resources, **running}], **status
        )

    def resources(self, name: str) -> Any:
        """What this pod asks for."""
        return self.shop.pods()[name]["spec"]["containers"][0]["resources"]

    def await_resize(self, name: str, former: Any) -> None:
        """Wait until this pod asks for something else."""
        eventually(lambda: self.resources(name), lambda found: found != former, what=f"a resize of {name}")

    def limit_mib(self, name: str) -> int:
        """What this pod's memcached says that it may use."""
        (line,) = [each for each in self._servers[name].query("stats settings") if each.startswith("STAT maxbytes ")]
        return int(line.split()[2]) // MIB


@pytest.fixture
def node(kubectl: Kubectl) -> Iterator[Node]:
    with ExitStack() as ends:
        (shop,) = ends.enter_context(rolling(kubectl, "shop"))
        yield Node(shop, ends)


def test_servers_get_more_memory_without_a_restart_and_the_template_comes_last(node: Node) -> None:
    node.create("64Mi")
    shop, before = node.shop, node.shop.pods()
    former = {name: node.resources(name) for name in before}
    shop.change(memory="128Mi")
    for name in before:
        node.await_resize(name, former[name])
        assert node.limit_mib(name) == 64
        assert template(shop.get("statefulsets"))[1] == "64Mi"
        node.resized(name)
    eventually(lambda: [node.limit_mib(name) for name in before], lambda found: found == [128, 128])
    eventually(lambda: template(shop.get("statefulsets"))[1], lambda memory: memory == "128Mi")
    shop.await_condition("Ready", "AllServersReady")
    assert shop.await_event("Resized").endswith("to 128 MiB without a restart")

    assert {name: pod["metadata"]["uid"] for name, pod in shop.pods().items()} == {
        name: pod["metadata"]["uid"] for name, pod in before.items()
    }
    (desired,) = [each["resources"] for each in shop.get("statefulsets")["spec"]["template"]["spec"]["containers"]]
    assert [node.resources(name) for name in before] == [desired, desired]
    assert shop.evicted() == []
    resized = [(name, at) for _, name, at in shop.written("pods/resize")]
    assert {name for name, _ in resized} == set(before)
    _, *changes = [at for _, _, at in shop.written("statefulsets")]
    assert max(at for _, at in resized) < min(changes)
