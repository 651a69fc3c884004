"""Servers of a real node that are replaced with their items, under clients that judge each value.

What clients see is printed (`-s`): hits, older values, and how long a server took no writes, or did not answer.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lab.kubectl import LabError
from memcached_operator.features.handover.purge import COARSE_S
from operator_runtime.testing.waiting import eventually, until
from tests.e2e.handover_load import PORT, Counts, Load, load
from tests.e2e.node_cluster import leader
from tests.integration.conftest import memcached
from tests.kubectl_in_namespace import Kubectl

NAME = "cache"
SIZE = 3
# Of each kind of client.
KEYS = 6_000
# No client has a former list here: the least that can be chosen.
FOR_S = 10
DEADLINE_S = 300.0

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("system")]


class Addresses(threading.Thread):
    """The addresses of pods as they come and go, as DNS has them for clients."""

    def __init__(self, kubectl: Kubectl) -> None:
        super().__init__(daemon=True)
        self._kubectl = kubectl
        self._found: dict[str, str] = {}
        self.ends = threading.Event()
        self.read()

    def read(self) -> None:
        pods = json.loads(self._kubectl("get", "pods", "-l", f"memcached_cr={NAME}", "-o", "json"))["items"]
        self._found = {each["metadata"]["name"]: each["status"].get("podIP", "") for each in pods}

    def run(self) -> None:
        while not self.ends.wait(0.2):
            with suppress(LabError):
                self.read()

    def of(self, host: str) -> str:
        """The address of a server by its DNS name, or its pod's; one that nobody has where there is none."""
        return self._found.get(host.partition(".")[0]) or "127.0.0.255"


@dataclass
class Prober(threading.Thread):
    """A client of one server, that reads and writes a key of its own without a pause.

    Attributes:
        unread_s: the longest time without a read that was answered.
        unwritten_s: the longest time without a write that was.
        lost: reads that found nothing, or an older value.
    """

    server: str
    addresses: Addresses
    unread_s: float = 0.0
    unwritten_s: float = 0.0
    lost: int = 0
    ends: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    __hash__ = threading.Thread.__hash__

    def run(self) -> None:
        read_s = written_s = time.monotonic()
        number = attempted = 0
        while not self.ends.wait(0.01):
            try:
                with closing(socket.create_connection((self.addresses.of(self.server), PORT), 0.5)) as connection:
                    connection.settimeout(1.0)
                    lines = connection.makefile("rwb")
                    while not self.ends.wait(0.01):
                        attempted += 1
                        lines.write(b"set probe 0 0 %d\r\n%d\r\nmg probe v\r\n" % (len(b"%d" % attempted), attempted))
                        lines.flush()
                        if lines.readline() == b"STORED\r\n":
                            number = attempted
                            self.unwritten_s = max(self.unwritten_s, time.monotonic() - written_s)
                            written_s = time.monotonic()
                        head = lines.readline()
                        value = int(lines.readline()) if head.startswith(b"VA") else 0
                        if not head:
                            break
                        self.unread_s = max(self.unread_s, time.monotonic() - read_s)
                        read_s = time.monotonic()
                        self.lost += value < number
            except (OSError, ValueError):
                continue

    def __str__(self) -> str:
        return (
            f"{self.server}: no write for {self.unwritten_s:.1f} s, no read for {self.unread_s:.1f} s, {self.lost} lost"
        )


@dataclass
class Scene:
    """A Memcached whose servers are replaced.

    Attributes:
        clients: that read and write all keys throughout.
    """

    kubectl: Kubectl
    addresses: Addresses
    clients: Load

    def change(self, **spec: Any) -> None:
        self.kubectl.apply(_memcached(**spec))

    def replaced(self, former: set[str]) -> None:
        """Wait until all servers are new, and nothing is under way."""
        until("all servers are new", lambda: not former & self.uids(), deadline_s=DEADLINE_S)
        self.settled()

    def settled(self) -> None:
        """Wait until all servers are there, and nothing is under way."""

        def is_done() -> bool:
            status = self.kubectl.get(f"mcd/{NAME}")["status"]
            ready = next(each for each in status["conditions"] if each["type"] == "Ready")
            return len(self.uids()) == SIZE and ready["status"] == "True" and "move" not in status["handover"]

        until("all servers are ready", is_done, deadline_s=DEADLINE_S)

    def uids(self) -> set[str]:
        pods = self.kubectl.get("pods", "-l", f"memcached_cr={NAME}")["items"]
        return {each["metadata"]["uid"] for each in pods}

    def at(self, step: str) -> None:
        """Wait until a server's move is at this step, however short that is: by a watch."""
        self.kubectl.wait_existing(f"mcd/{NAME}", f"jsonpath={{.status.handover.move.step}}={step}")

    def events(self, reason: str) -> list[str]:
        found = self.kubectl.get("events.events.k8s.io", "--field-selector", f"reason={reason}")["items"]
        return [each["note"] for each in found]


def _memcached(**spec: Any) -> dict[str, Any]:
    handover = {"periodSeconds": FOR_S, "moves": {}}
    return memcached(NAME, SIZE, workload="StatefulSet", handover=handover, rollout={"minReadySeconds": 0}, **spec)


@contextmanager
def begun(kubectl: Kubectl) -> Iterator[Scene]:
    """Servers with items, and clients, none of which has a former list."""
    kubectl("label", "namespace", kubectl.namespace, "pod-security.kubernetes.io/enforce=restricted")
    kubectl.apply(_memcached())
    kubectl.wait(f"mcd/{NAME}", "condition=Ready")
    status = eventually(
        lambda: kubectl.get(f"mcd/{NAME}")["status"],
        lambda found: found.get("handover", {}).get("step") == "Complete",
        deadline_s=DEADLINE_S,
    )
    settled = datetime.fromisoformat(status["handover"]["formerListEndTime"]) + timedelta(seconds=COARSE_S + 2)
    until("clients may have the first list", lambda: datetime.now(UTC) > settled, deadline_s=DEADLINE_S)
    addresses = Addresses(kubectl)
    addresses.start()
    try:
        with load(status["serverList"], addresses.of, KEYS, retry_s=0.0) as clients:
            clients.read_all()
            clients.seen()
            yield Scene(kubectl, addresses, clients)
    finally:
        addresses.ends.set()
        addresses.join(10)


def judged(scene: Scene, when: str) -> None:
    """Have all keys read, and again: no older value, and no miss but of keys whose write was refused."""
    scene.clients.read_all()
    during = scene.clients.seen()
    scene.clients.read_all()
    after = scene.clients.seen()
    for name, counts in during.items():
        print(f"\n{when}, {name}: {counts}; {len(counts.refused)} writes refused", end="")
        assert not counts.missed - counts.refused, str(counts)
        assert counts.stale == 0, str(counts)
    for counts in after.values():
        assert (counts.missed, counts.stale, counts.errors) == (set(), 0, 0), _all(after)


def _all(counts: dict[str, Counts]) -> str:
    return "; ".join(f"{name}: {each}" for name, each in counts.items())


def test_servers_of_a_rolling_change_keep_their_items(kubectl: Kubectl) -> None:
    with begun(kubectl) as scene:
        former = scene.uids()
        probers = [Prober(f"{NAME}-{ordinal}", scene.addresses) for ordinal in range(SIZE)]
        for each in probers:
            each.start()
        began_s = time.monotonic()
        scene.change(extraArgs=["-b", "512"])
        scene.replaced(former)
        print(f"\n{SIZE} servers in {time.monotonic() - began_s:.0f} s; {scene.events('Moved')}", end="")
        for each in probers:
            each.ends.set()
            each.join(10)
            print(f"\n{each}", end="")
        judged(scene, "a rolling change")
        assert scene.events("NotMoved") == []
        assert len(scene.events("Moved")) == SIZE
        assert sum(each.lost for each in probers) == 0
        assert scene.kubectl.names("statefulsets") == [f"statefulset.apps/{NAME}"]


@pytest.mark.slow
def test_another_leader_goes_on_with_each_step_of_a_move(system: Kubectl, kubectl: Kubectl) -> None:
    with begun(kubectl) as scene:
        former = scene.uids()
        scene.change(extraArgs=["-b", "512"])
        for step in ("Connecting", "Copying", "Restoring"):
            scene.at(step)
            system("delete", "pod", leader(system), "--grace-period=0", "--force", "--wait=false")
        scene.replaced(former)
        judged(scene, "leaders are killed")
