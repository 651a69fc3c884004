"""Real memcacheds hand over to each other: no key is missed by the lists that the operator publishes."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import tempfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pymemcache import Client

from kube_simulator.controllers.memcached import PORT, free_address
from lab.programs import memcached as program
from memcached_operator.core.objects.labels import PEERS_ANNOTATION, PEERS_PORT
from memcached_operator.features.handover import handover_proxy
from memcached_operator.features.handover.purge import COARSE_S
from operator_runtime.testing.waiting import until
from tests.integration.conftest import memcached
from tests.integration.named import change, status, wait_list
from tests.integration.oracle import patch_pods, wait, wait_condition
from tests.kubectl_in_namespace import Kubectl

PROGRAM = program.found()
KEYS = 300
_READ_EACH_S = 0.3

pytestmark = [
    pytest.mark.usefixtures("operator"),
    pytest.mark.skipif(PROGRAM is None, reason="no memcached with a proxy: ./dev test --gate fetches it"),
]


class Kubelet:
    """Runs a memcached for each pod of the StatefulSet named shop, and writes the annotation of the pod into its file.

    Attributes:
        addresses: of pods.
    """

    def __init__(self, kubectl: Kubectl, folder: Path) -> None:
        self._kubectl = kubectl
        self._folder = folder
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        self.addresses: dict[str, str] = {}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        (folder / "handover.lua").write_text(handover_proxy.lua())

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ends.set()
        self._thread.join()
        for server in self._servers.values():
            server.kill()
            server.wait()

    def _run(self) -> None:
        while not self._ends.wait(_READ_EACH_S):
            for pod in self._kubectl.get("pods")["items"]:
                name, annotations = pod["metadata"]["name"], pod["metadata"].get("annotations", {})
                new = self._folder / f"{name}.new"
                new.write_text(annotations.get(PEERS_ANNOTATION, ""))
                new.replace(self._folder / name)
                if name not in self._servers:
                    self._start(name)

    def _start(self, pod: str) -> None:
        assert PROGRAM is not None
        address = self.addresses[pod] = free_address(PORT, lambda _: False, random.Random())
        listens = f"proto[proxy]:{address}:{PORT},proto[ascii]:{address}:{PEERS_PORT}"
        proxy = f"proxy_config={self._folder / 'handover.lua'},proxy_arg={self._folder / pod}"
        user = ("-u", "nobody") if os.getuid() == 0 else ()
        self._servers[pod] = subprocess.Popen(
            [*PROGRAM, "-l", listens, "-o", proxy, *user], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        ready = [{"type": "Ready", "status": "True"}]
        while not self._ends.is_set():
            with closing(socket.socket()) as connection:
                if connection.connect_ex((address, PEERS_PORT)) == 0:
                    break
        patch_pods(self._kubectl, [pod], phase="Running", conditions=ready, podIP=address, podIPs=[{"ip": address}])


@contextmanager
def running(kubectl: Kubectl) -> Iterator[Kubelet]:
    # memcached's user reads it.
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        kubelet = Kubelet(kubectl, Path(name))
        kubelet.start()
        try:
            yield kubelet
        finally:
            kubelet.stop()


def found(kubelet: Kubelet, servers: int, *, writes: bool = False) -> int:
    """How many keys a client finds that hashes them modulo over so many servers."""
    clients = [Client((kubelet.addresses[f"shop-{ordinal}"], PORT), timeout=10) for ordinal in range(servers)]
    count = 0
    for number in range(KEYS):
        key, value = f"key{number}", b"%d" % number
        client = clients[zlib.crc32(key.encode()) % servers]
        if writes:
            client.set(key, value, noreply=False)
        count += client.get(key) == value
    for client in clients:
        client.close()
    return count


def test_two_servers_become_three_and_one_and_no_key_is_missed(kubectl: Kubectl) -> None:
    with running(kubectl) as kubelet:
        # So long clients have the first list, and longer each further one.
        kubectl.apply(memcached("shop", 2, workload="StatefulSet", handover={"periodSeconds": 10}), create=True)
        wait_condition(kubectl, "shop", "Ready", "AllServersReady")
        wait(kubectl, "mcd/shop", ".status.handover.step", "Complete")
        # What nobody used since then may be old, and times of uses are coarse.
        settled = datetime.fromisoformat(status(kubectl)["handover"]["formerListEndTime"]) + timedelta(
            seconds=COARSE_S + 2
        )
        until("the list has just changed", lambda: datetime.now(UTC) > settled)
        assert found(kubelet, 2, writes=True) == KEYS
        change(kubectl, size=3, handover={"periodSeconds": 60})
        wait_list(kubectl, 0, 1, 2)
        assert status(kubectl)["handover"]["step"] == "Published"
        assert found(kubelet, 3) == KEYS
        change(kubectl, size=1)
        wait_list(kubectl, 0)
        assert found(kubelet, 1) == KEYS
        assert status(kubectl)["replicas"] == 3
