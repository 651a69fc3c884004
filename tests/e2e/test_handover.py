"""Servers that hand over on a real node, under clients by a ring and by a modulo, old lists and new: 3 -> 6 -> 2.

What clients see is printed (`-s`): before, during and after each change, and what they lose without a hand-over.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lab.image import images
from lab.node.node import Node
from memcached_operator.api.status import HandoverStep, Reason
from memcached_operator.features.handover.purge import COARSE_S
from operator_runtime.testing.waiting import eventually, until
from tests.e2e.handover_load import Counts, Load, load
from tests.e2e.lasting import AT_ONCE
from tests.e2e.node_cluster import leader, pod_address
from tests.integration.conftest import memcached
from tests.kubectl_in_namespace import Kubectl

NAME = "cache"
OLDER_MEMCACHED = "docker.io/library/memcached:older"
# Of each kind of client.
KEYS = 25_000
# Longer than clients take to read all keys twice on a busy machine, after which the late ones follow the list.
FOR_S = 75
DEADLINE_S = 240.0

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("system")]


@dataclass
class Scene:
    """A Memcached whose size changes.

    Attributes:
        addresses: of pods, as DNS has them.
    """

    kubectl: Kubectl
    spec: Mapping[str, Any]
    addresses: dict[str, str] = field(default_factory=dict)

    def resize(self, size: int) -> None:
        self.kubectl.apply(
            memcached(NAME, size, workload="StatefulSet", drainPeriodSeconds=FOR_S, podTemplate=AT_ONCE, **self.spec)
        )

    def start(self, size: int) -> list[str]:
        """As many servers, all of which are listed; the list."""
        self.kubectl("label", "namespace", self.kubectl.namespace, "pod-security.kubernetes.io/enforce=restricted")
        self.resize(size)
        self.kubectl.wait(f"mcd/{NAME}", "condition=Ready")
        if "handover" in self.spec:
            self.at(HandoverStep.COMPLETE)
            # What nobody used since then may be old, and times of uses are coarse.
            settled = datetime.fromisoformat(self.status["handover"]["formerListEndTime"]) + timedelta(
                seconds=COARSE_S + 2
            )
            until("clients may have the first list", lambda: datetime.now(UTC) > settled, deadline_s=DEADLINE_S)
        return self.listed(size)

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.kubectl.get(f"mcd/{NAME}")["status"]
        return found

    def listed(self, size: int) -> list[str]:
        """Wait until the list has so many servers."""
        found = eventually(lambda: self.status, lambda found: len(found["serverList"]) == size, deadline_s=DEADLINE_S)
        servers: list[str] = found["serverList"]
        return servers

    def at(self, step: HandoverStep) -> None:
        """Wait until the hand-over is at this step, or later."""
        later = [*HandoverStep][[*HandoverStep].index(step) :]
        eventually(
            lambda: self.status.get("handover", {}).get("step"), lambda found: found in later, deadline_s=DEADLINE_S
        )

    def address(self, host: str) -> str:
        pod = host.partition(".")[0]
        if pod not in self.addresses:
            self.addresses[pod] = pod_address(self.kubectl, pod)
        return self.addresses[pod]

    def change(self, clients: Load, size: int) -> dict[str, Counts]:
        """Change the size, to which some clients follow at once and others late; what they see until that is over."""
        clients.seen()
        self.resize(size)
        servers = self.listed(size)
        clients.follow(clients.early, servers)
        clients.read_all()
        clients.follow(clients.late, servers)
        if "handover" in self.spec:
            self.at(HandoverStep.COMPLETE)
        clients.read_all()
        return clients.seen()


def _printed(when: str, counts: dict[str, Counts]) -> dict[str, Counts]:
    for name, each in counts.items():
        print(f"\n{when:30} {name:7} {each}", end="")
    return counts


@pytest.mark.parametrize("spec", [{"handover": {"periodSeconds": FOR_S}}, {}], ids=["with", "without"])
def test_no_key_is_missed_and_no_value_is_old_while_three_servers_become_six_and_then_two(
    kubectl: Kubectl, spec: dict[str, Any]
) -> None:
    scene = Scene(kubectl, spec)
    with load(scene.start(3), scene.address, KEYS) as clients:
        clients.read_all()
        clients.seen()
        clients.read_all()
        _printed("before", clients.seen())
        found = {}
        for size in (6, 2):
            found[size] = _printed(f"during the change to {size}", scene.change(clients, size))
            clients.read_all()
            _printed(f"after the change to {size}", clients.seen())
    for each in (each for counts in found.values() for each in counts.values()):
        if "handover" in spec:
            assert (each.missed, each.stale, each.errors) == (set(), 0, 0), str(each)
        else:
            assert len(each.missed) > KEYS / 10, str(each)


def test_a_server_that_is_killed_meanwhile_costs_its_own_keys_and_no_others(node: Node, kubectl: Kubectl) -> None:
    scene = Scene(kubectl, {"handover": {"periodSeconds": FOR_S}})
    servers = scene.start(3)
    with load(servers, scene.address, KEYS) as clients:
        clients.read_all()
        scene.resize(4)
        more = scene.listed(4)
        clients.follow(clients.early, more)
        clients.seen()
        os.kill(node.container_pid(kubectl.namespace, f"{NAME}-1", "memcached"), signal.SIGKILL)
        kubectl.wait_field(f"pod/{NAME}-1", ".status.containerStatuses[0].restartCount", 1)
        clients.follow(clients.late, more)
        scene.at(HandoverStep.COMPLETE)
        clients.read_all()
        seen = _printed("a server is killed", clients.seen())
        clients.read_all()
        after = _printed("after that", clients.seen())
    for name, keys in clients.keys.items():
        at_it = {
            number
            for owners in (keys.owners(servers), keys.owners(more))
            for number, server in owners.items()
            if server == servers[1]
        }
        others = seen[name].missed - at_it - seen[name].refused
        assert not others, f"{len(others)} of other servers; {seen[name]}"
        assert seen[name].stale == 0, str(seen[name])
        assert (after[name].missed, after[name].stale, after[name].errors) == (set(), 0, 0), str(after[name])


def test_servers_whose_memcached_is_too_old_change_without_a_hand_over_and_a_condition_says_so(
    node: Node, kubectl: Kubectl
) -> None:
    node.load_image(images.older_memcached_image(OLDER_MEMCACHED))
    scene = Scene(kubectl, {"image": OLDER_MEMCACHED, "handover": {"periodSeconds": FOR_S}})
    scene.resize(2)
    kubectl.wait(f"mcd/{NAME}", "condition=Ready")
    scene.listed(2)

    scene.resize(3)
    scene.listed(3)

    kubectl.wait(f"mcd/{NAME}", "condition=Discouraged")
    discouraged = next(each for each in scene.status["conditions"] if each["type"] == "Discouraged")
    assert discouraged["reason"] == Reason.HANDOVER_UNAVAILABLE
    assert f"{NAME}-0" in discouraged["message"]
    for name in (f"{NAME}-{index}" for index in range(3)):
        assert kubectl.get("pod", name)["status"]["containerStatuses"][0]["restartCount"] == 0


def test_another_leader_goes_on_with_each_step(node: Node, system: Kubectl, kubectl: Kubectl) -> None:
    scene = Scene(kubectl, {"handover": {"periodSeconds": FOR_S}})
    servers = scene.start(2)
    with load(servers, scene.address, KEYS // 10) as clients:
        clients.read_all()
        clients.seen()
        scene.resize(3)
        for step in (
            *(HandoverStep.PREPARING, HandoverStep.CONNECTING),
            *(HandoverStep.PUBLISHED, HandoverStep.DISCONNECTING),
        ):
            scene.at(step)
            system("delete", "pod", leader(system), "--grace-period=0", "--force", "--wait=false")
            if step is HandoverStep.PUBLISHED:
                clients.follow([*clients.early, *clients.late], scene.listed(3))
        scene.at(HandoverStep.COMPLETE)
        clients.read_all()
        for each in _printed("leaders are killed", clients.seen()).values():
            assert (each.missed, each.stale, each.errors) == (set(), 0, 0), str(each)
