"""Another image reaches servers that keep their items, on a real node: no pod ends, and no key is lost.

A client of another's making reads its keys all the while, and sets those that it misses.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.sizing import load
from benchmarks.sizing.group import Group
from benchmarks.sizing.server import Memcached
from lab.image import images
from lab.node.node import Node
from operator_runtime.testing.waiting import eventually, until
from tests.e2e.hashing_client import owners
from tests.e2e.hashing_pod import Report
from tests.e2e.lasting import NAME, Scene, lasting, most_away, pod_of
from tests.e2e.node_cluster import (
    MEMCACHED,
    MEMCACHED_PORT,
    OTHER_MEMCACHED,
    fresh_namespace,
    pod_address,
    server_process,
)
from tests.e2e.watching import Object
from tests.integration.conftest import memcached
from tests.kubectl_in_namespace import Kubectl

KEYS = 10_000
PAUSE_S = 10
ROLLED_OUT_WITHIN_S = 300.0
# The stand-in under a third name.
THIRD_MEMCACHED = "docker.io/library/memcached:third"
MISSING = "registry.example.com/memcached:missing"
# Values in bytes, of which a server of 256 MiB is full.
SIZES = {"small": 100, "medium": 1000, "large": 100_000}
FULL_MIB = 256
ITEMS = "etc/memcached/items/file.meta"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def scene(node: Node, client_image: None, other_memcached: None, system: Kubectl) -> Iterator[Scene]:
    """A client has found each key at one of six servers."""
    node.load_image(images.memcached_image(THIRD_MEMCACHED))
    rollout = {"minReadySeconds": PAUSE_S}
    with lasting(node, system, "e2e-warm", KEYS, image=MEMCACHED, warmRestart=True, rollout=rollout) as scene:
        yield scene


def test_two_images_one_in_the_midst_of_the_other_cost_no_key_also_when_leaders_are_killed(scene: Scene) -> None:
    servers, before = scene.servers, _places(scene.kubectl)
    with scene.watch("/api/v1/pods") as pods:
        scene.change(image=OTHER_MEMCACHED)
        pods.first(lambda pod: _is(pod, servers[-1]) and _is_changing(pod))
        scene.kill_the_leader()
        second = pods.first(lambda pod: _is(pod, servers[-2]) and _is_changing(pod))
        scene.change(image=THIRD_MEMCACHED)
        pods.first(lambda pod: _is(pod, servers[-1]) and _is_changing(pod), after_s=second.at_s)
        scene.kill_the_leader()
        _await_change(scene.kubectl)
        seen = pods.so_far()
    assert _places(scene.kubectl) == before
    assert most_away(seen) == 1
    found = scene.kubectl.get("pods", "-l", f"memcached_cr={NAME}")["items"]
    assert {each["spec"]["containers"][0]["image"] for each in found} == {THIRD_MEMCACHED}
    assert scene.kubectl.get("statefulset", NAME)["status"]["updatedReplicas"] == len(servers)
    # It read all of them and found each; what it missed meanwhile is of the server that was away.
    scene.client.settle()
    report = scene.client.begin()
    assert report.wrong == []
    assert [_items(scene.kubectl, pod_of(server)) for server in servers] == [
        sum(owner == server for owner in owners(servers, KEYS).values()) for server in servers
    ]
    # The last two were away twice.
    away = sorted(_when_missed(report, servers[:-2]))
    assert all(end < begin for (_, end), (begin, _) in pairwise(away)), away
    events = scene.kubectl("events", "--for", f"memcached/{NAME}")
    assert "caches are kept" in events
    assert "is back in its pod" in events
    assert " with 0 of " not in events


def test_an_image_that_is_missing_stops_after_one_server_and_its_items_are_there_with_the_former_one(
    scene: Scene,
) -> None:
    servers, before = scene.servers, _places(scene.kubectl)
    items = _items(scene.kubectl, pod_of(servers[-1]))
    scene.change(image=MISSING)
    scene.kubectl.wait_field(f"mcd/{NAME}", '.status.conditions[?(@.type=="Degraded")].reason', "RolloutStuck")
    scene.change(image=THIRD_MEMCACHED)
    _await_change(scene.kubectl)
    assert _places(scene.kubectl) == before
    assert _items(scene.kubectl, pod_of(servers[-1])) == items
    scene.client.settle()


@pytest.fixture(scope="module")
def alone(node: Node, system: Kubectl) -> Iterator[Kubectl]:
    """One server that keeps its items, with some."""
    with fresh_namespace(node, "e2e-warm-alone") as kubectl:
        kubectl.apply(memcached(NAME, 1, workload="StatefulSet", warmRestart=True, image=MEMCACHED))
        kubectl.wait(f"mcd/{NAME}", "condition=Ready")
        yield kubectl


def test_a_memcached_that_is_killed_begins_without_items_once_and_says_so(node: Node, alone: Kubectl) -> None:
    pod = f"{NAME}-0"
    _fill_a_little(alone, pod)
    restarts = _restarts(alone, pod)
    os.kill(_memcached_of(server_process(node, alone, pod)), signal.SIGKILL)
    _await_restart(alone, pod, restarts)
    assert _items(alone, pod) == 0
    assert "ended before it could write them out" in alone("logs", pod)
    assert _restarts(alone, pod) == restarts + 1


def test_what_a_memcached_wrote_out_and_was_torn_is_put_away_once_and_told(node: Node, alone: Kubectl) -> None:
    pod = f"{NAME}-0"
    _fill_a_little(alone, pod)
    restarts, shell = _restarts(alone, pod), server_process(node, alone, pod)
    written = Path(f"/proc/{shell}/root/{ITEMS}")
    os.kill(shell, signal.SIGSTOP)
    try:
        server = _memcached_of(shell)
        os.kill(server, signal.SIGUSR1)
        until("memcached does not end", lambda: _state(server) == "Z")
        written.write_bytes(written.read_bytes()[:-8])
    finally:
        os.kill(shell, signal.SIGCONT)
    _await_restart(alone, pod, restarts)
    assert _items(alone, pod) == 0
    assert "did not finish to write" in alone("logs", pod)
    assert _restarts(alone, pod) == restarts + 1


def test_full_servers_are_warm_after_a_restart_that_is_asked_for_and_stay_below_their_limits(
    node: Node, system: Kubectl, kubectl: Kubectl
) -> None:
    spec = {
        "workload": "StatefulSet",
        "warmRestart": True,
        "memory": f"{FULL_MIB}Mi",
        "rollout": {"minReadySeconds": 0},
    }
    for name in SIZES:
        kubectl.apply(memcached(name, 1, **spec))
    for name in SIZES:
        kubectl.wait(f"mcd/{name}", "condition=Ready")
    items = {}
    for name, value_bytes in SIZES.items():
        load.fill(_server(kubectl, f"{name}-0"), FULL_MIB, value_bytes)
        items[name] = _items(kubectl, f"{name}-0")
        kubectl("annotate", "mcd", name, "cache.example.com/restart=now")
    for name in SIZES:
        pod = f"{name}-0"
        _await_restart(kubectl, pod, 0)
        assert _items(kubectl, pod) == items[name], name
        assert kubectl.get("pod", pod)["status"]["containerStatuses"][0]["restartCount"] == 1
        counted = Group.of(server_process(node, kubectl, pod))
        assert counted.peak_mib() < counted.limit_mib()
        kubectl.wait(f"mcd/{name}", "condition=Ready")


def test_what_renews_passwords_gets_the_image_too_and_items_are_kept(
    other_memcached: None, system: Kubectl, kubectl: Kubectl
) -> None:
    kubectl("create", "secret", "generic", "passwords", "--from-literal=password-file=user:password")
    spec = {"workload": "StatefulSet", "warmRestart": True, "image": MEMCACHED, "rollout": {"minReadySeconds": 0}}
    kubectl.apply(memcached(NAME, 1, auth={"secretName": "passwords"}, **spec))
    kubectl.wait(f"mcd/{NAME}", "condition=Ready")
    before = _places(kubectl)
    assert "STORED" in _responses(kubectl, "set key 0 0 5", "value")
    kubectl("patch", "mcd", NAME, "--type=merge", "-p", f'{{"spec":{{"image":"{OTHER_MEMCACHED}"}}}}')
    kubectl.wait_field(f"mcd/{NAME}", ".status.image", OTHER_MEMCACHED)
    pod = kubectl.get("pod", f"{NAME}-0")
    containers = pod["spec"]["containers"] + pod["spec"]["initContainers"]
    assert {each["name"]: each["image"] for each in containers} == dict.fromkeys(
        ("memcached", "reloader"), OTHER_MEMCACHED
    )
    statuses = pod["status"]["containerStatuses"] + pod["status"]["initContainerStatuses"]
    assert [each["restartCount"] for each in statuses] == [1, 1]
    assert "value" in _responses(kubectl, "get key")
    assert _places(kubectl) == before


def _responses(kubectl: Kubectl, *lines: str) -> str:
    """What a server answers that asks for a password."""
    text = "\\r\\n".join(("set login 0 0 13", "user password", *lines, "quit", ""))
    words = ("sh", "-c", f"printf '{text}' | nc 127.0.0.1 {MEMCACHED_PORT}")
    return kubectl("exec", f"{NAME}-0", "--container=memcached", "--", *words)


def _await_change(kubectl: Kubectl) -> None:
    """Wait until all is as the specification has it now."""
    generation = kubectl.get("mcd", NAME)["metadata"]["generation"]

    def ready() -> tuple[object, object]:
        found = next(each for each in kubectl.get("mcd", NAME)["status"]["conditions"] if each["type"] == "Ready")
        return found["status"], found["observedGeneration"]

    eventually(ready, lambda found: found == ("True", generation), deadline_s=ROLLED_OUT_WITHIN_S)


def _places(kubectl: Kubectl) -> dict[str, tuple[str, str, str]]:
    """Uid, address and node of each server's pod."""
    return {
        pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["status"]["podIP"], pod["spec"]["nodeName"])
        for pod in kubectl.get("pods", "-l", f"memcached_cr={NAME}")["items"]
    }


def _is(pod: Object, server: str) -> bool:
    return bool(pod["metadata"]["name"] == pod_of(server))


def _is_changing(pod: Object) -> bool:
    return "cache.example.com/in-place" in pod["metadata"].get("annotations", {})


def _when_missed(report: Report, servers: list[str]) -> list[tuple[float, float]]:
    """When keys of each of these servers were first and last missed."""
    owner = owners(report.servers, KEYS)
    times = [[(first, last) for number, first, last in report.misses if owner[number] == each] for each in servers]
    return [(min(first for first, _ in each), max(last for _, last in each)) for each in times if each]


def _server(kubectl: Kubectl, pod: str) -> Memcached:
    return Memcached(pod_address(kubectl, pod), MEMCACHED_PORT)


def _items(kubectl: Kubectl, pod: str) -> int:
    return int(_server(kubectl, pod).stats()["curr_items"])


def _fill_a_little(kubectl: Kubectl, pod: str) -> None:
    """Some, so that their loss is seen."""
    load.put(_server(kubectl, pod), 1, 1000)
    assert _items(kubectl, pod) > 0


def _restarts(kubectl: Kubectl, pod: str) -> int:
    return int(kubectl.get("pod", pod)["status"]["containerStatuses"][0]["restartCount"])


def _await_restart(kubectl: Kubectl, pod: str, restarts: int) -> None:
    """Wait until its container has started again since then, and serves."""
    eventually(lambda: _restarts(kubectl, pod), lambda found: found > restarts, what=f"another start of {pod}")
    kubectl.wait(f"pod/{pod}", "condition=Ready")


def _memcached_of(shell: int) -> int:
    """The memcached that it runs."""
    children = [int(each) for each in Path(f"/proc/{shell}/task/{shell}/children").read_text().split()]
    (server,) = (each for each in children if Path(f"/proc/{each}/comm").read_text().strip() == "memcached")
    return server


def _state(process: int) -> str:
    """As the kernel has it: Z once it has ended, and its parent has yet to ask."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
