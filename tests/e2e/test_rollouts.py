"""What a change of the specification, or of the operator's own defaults, costs caches that are in use.

A client reads its keys all the while, and sets those that it misses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise

import pytest

from benchmarks.sizing import load
from benchmarks.sizing.group import Group
from benchmarks.sizing.server import Memcached
from lab.kubectl import LabError
from lab.node.node import Node
from memcached_operator.api.quantities import mebibytes
from operator_runtime.testing.waiting import eventually
from tests.e2e.hashing_client import owners
from tests.e2e.hashing_pod import Report
from tests.e2e.lasting import API, AT_ONCE, NAME, Scene, is_here, lasting, most_away, pod_of
from tests.e2e.node_cluster import (
    MEMCACHED,
    MEMCACHED_PORT,
    OPERATOR,
    OTHER_MEMCACHED,
    fresh_namespace,
    incarnations,
    pod_address,
)
from tests.e2e.watching import Object, Seen, Watch
from tests.integration.conftest import memcached
from tests.kubectl_in_namespace import Kubectl

# Few enough for the client to have read all of them before the next server is replaced, on a busy machine too.
KEYS = 500
# On a busy machine the client finds a server some seconds after it is ready: it waits for an address that is gone.
PAUSE_S = 10
# For six servers, each with its pause and its start, and a leader of which nobody knows for 15 s that it is gone.
ROLLED_OUT_WITHIN_S = 150.0
MISSING = "registry.example.com/memcached:missing"
VALUE_BYTES, OTHER_VALUE_BYTES = 50_000, 60_000
# Of a server that is full of as much, the node cannot take so much.
FULL, FULL_MIB, LESS_MIB = "full", 128, 16
# Memcacheds that leave the image to the operator, by what runs their servers.
DEFAULTS = {"first": "StatefulSet", "second": "Deployment", "third": "StatefulSet"}
DEFAULT_SIZE = 2

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def full(node: Node, system: Kubectl) -> Iterator[tuple[Kubectl, str]]:
    """kubectl, and the uid of a full server that is to have less memory than it holds. A minute goes by until that is
    given up, in which other tests run."""
    with fresh_namespace(node, "e2e-full") as kubectl:
        kubectl.apply(memcached(FULL, 1, workload="StatefulSet", memory=f"{FULL_MIB}Mi", podTemplate=AT_ONCE))
        kubectl.wait(f"mcd/{FULL}", "condition=Ready")
        load.fill(_server(kubectl, f"{FULL}-0"), FULL_MIB, VALUE_BYTES)
        kubectl("patch", "mcd", FULL, "--type=merge", "-p", json.dumps({"spec": {"memory": f"{LESS_MIB}Mi"}}))
        yield kubectl, kubectl.uid(f"pod/{FULL}-0")


@pytest.fixture(scope="module")
def scene(node: Node, client_image: None, other_memcached: None, system: Kubectl, full: object) -> Iterator[Scene]:
    """A client has found each key at one of six servers."""
    rollout = {"minReadySeconds": PAUSE_S}
    with lasting(node, system, "e2e-rollouts", KEYS, image=MEMCACHED, rollout=rollout, podTemplate=AT_ONCE) as scene:
        yield scene


def test_full_servers_get_more_memory_without_a_restart_and_lose_nothing(scene: Scene) -> None:
    pods = [pod_of(server) for server in scene.servers]
    servers = {pod: _server(scene.kubectl, pod) for pod in pods}
    for server in servers.values():
        load.fill(server, 64, VALUE_BYTES)
    before = {pod: _items(server) for pod, server in servers.items()}
    incarnations_before, limits_before = incarnations(scene.kubectl), _limits_mib(scene, pods)
    _change(scene, memory="128Mi")
    assert {pod: _items(server) for pod, server in servers.items()} == before
    for pod, server in servers.items():
        assert server.stats("settings")["maxbytes"] == str(128 << 20)
        load.put(server, 32, OTHER_VALUE_BYTES)
        items, evictions = _items(server)
        assert items > before[pod][0]
        assert evictions == before[pod][1]
    assert scene.settled(scene.servers).missed == set()
    assert incarnations(scene.kubectl) == incarnations_before
    limits = _limits_mib(scene, pods)
    assert limits == dict.fromkeys(pods, _limit_of_template_mib(scene.kubectl))
    assert all(limits[pod] > limits_before[pod] for pod in pods)


def test_another_image_costs_the_keys_of_one_server_at_a_time_also_when_the_leader_is_killed(scene: Scene) -> None:
    servers = scene.servers
    with scene.watch("/api/v1/pods") as pods, scene.watch(f"{API}/memcacheds") as memcacheds:
        scene.change(image=OTHER_MEMCACHED)
        pods.first(lambda pod: _is(pod, servers[-2]) and _is_going(pod))
        scene.kill_the_leader()
        _await_change(scene)
        seen = pods.so_far()
        assert not [each for each in memcacheds.so_far() if _conditions(each.object)["Degraded"]["status"] != "False"]
    assert scene.kubectl.get("mcd", NAME)["status"]["image"] == OTHER_MEMCACHED
    assert most_away(seen) == 1
    evicted = _evicted(seen)
    assert [*evicted] == [pod_of(server) for server in reversed(servers)]
    ready = _ready_again(seen)
    pauses = [evicted[after] - ready[before] for before, after in pairwise(evicted)]
    assert min(pauses) >= PAUSE_S, pauses
    lost = _when_lost(scene.settled(servers, lost=servers), servers)
    assert [*lost] == [*reversed(servers)]
    overlapping = [(lost[before], lost[after]) for before, after in pairwise(lost) if lost[before][1] >= lost[after][0]]
    assert not overlapping


def test_servers_that_are_not_full_get_less_memory_without_a_restart(scene: Scene) -> None:
    before = incarnations(scene.kubectl)
    _change(scene, memory="64Mi")
    pods = [pod_of(server) for server in scene.servers]
    for pod in pods:
        assert _server(scene.kubectl, pod).stats("settings")["maxbytes"] == str(64 << 20)
    assert _limits_mib(scene, pods) == dict.fromkeys(pods, _limit_of_template_mib(scene.kubectl))
    assert incarnations(scene.kubectl) == before
    assert scene.settled(scene.servers).missed == set()


def test_an_image_that_is_missing_stops_a_rollout_and_the_former_one_goes_on(scene: Scene) -> None:
    servers = scene.servers
    first, others = pod_of(servers[-1]), {pod_of(server) for server in servers[:-1]}
    before = incarnations(scene.kubectl)
    with scene.watch("/api/v1/pods") as pods:
        scene.change(image=MEMCACHED)
        pods.first(lambda pod: _is(pod, servers[-1]) and is_here(pod) and pod["metadata"]["uid"] != before[first][0])
        scene.change(image=MISSING)
        scene.kubectl.wait_field(f"mcd/{NAME}", '.status.conditions[?(@.type=="Degraded")].reason', "RolloutStuck")
        degraded = _conditions(scene.kubectl.get("mcd", NAME))["Degraded"]["message"]
        assert first in degraded
        assert "ImagePullBackOff" in degraded
        scene.change(image=OTHER_MEMCACHED)
        _await_change(scene)
        assert [*_evicted(pods.so_far())] == [first]
    after = incarnations(scene.kubectl)
    assert {pod: after[pod] for pod in others} == {pod: before[pod] for pod in others}
    scene.settled(servers, lost=servers[-1:])


def test_a_full_server_that_is_to_have_less_is_replaced_and_an_event_says_why(full: tuple[Kubectl, str]) -> None:
    kubectl, uid = full
    eventually(
        lambda: _server(kubectl, f"{FULL}-0").stats("settings")["maxbytes"],
        lambda found: found == str(LESS_MIB << 20) and kubectl.uid(f"pod/{FULL}-0") != uid,
        deadline_s=ROLLED_OUT_WITHIN_S,
        ignoring=(OSError, KeyError, LabError),
    )
    events = eventually(lambda: kubectl("events", "--for", f"memcached/{FULL}"), lambda found: "NotResized" in found)
    assert f"{FULL}-0 is replaced to get its memory of {LESS_MIB} MiB: " in events
    assert "cannot decrease memory limits" in events


def test_another_default_image_reaches_one_memcached_after_the_other(
    node: Node, system: Kubectl, other_memcached: None
) -> None:
    with fresh_namespace(node, "e2e-defaults") as kubectl:
        rollout = {"minReadySeconds": 1}
        for name, workload in DEFAULTS.items():
            kubectl.apply(memcached(name, DEFAULT_SIZE, workload=workload, rollout=rollout, podTemplate=AT_ONCE))
        for name in DEFAULTS:
            kubectl.wait(f"mcd/{name}", "condition=Ready")
        with Watch(kubectl.cluster.kubeconfig_path, f"/api/v1/namespaces/{kubectl.namespace}/pods") as pods:
            system("set", "env", f"deployment/{OPERATOR}", f"RELATED_IMAGE_MEMCACHED={OTHER_MEMCACHED}")
            for name in DEFAULTS:
                kubectl.wait_field(f"mcd/{name}", ".status.image", OTHER_MEMCACHED)
                kubectl.wait(f"mcd/{name}", "condition=Ready")
            seen = pods.so_far()
    turns = sorted(_replacing(seen, name) for name in DEFAULTS)
    assert all(before[1] < after[0] for before, after in pairwise(turns)), turns


def _change(scene: Scene, **spec: object) -> None:
    scene.change(**spec)
    _await_change(scene)


def _await_change(scene: Scene) -> None:
    """Wait until all is as the specification has it now."""
    generation = scene.kubectl.get("mcd", NAME)["metadata"]["generation"]

    def ready() -> tuple[object, object]:
        found = _conditions(scene.kubectl.get("mcd", NAME))["Ready"]
        return found["status"], found["observedGeneration"]

    eventually(ready, lambda found: found == ("True", generation), deadline_s=ROLLED_OUT_WITHIN_S)


def _conditions(memcached: Object) -> dict[str, Object]:
    return {each["type"]: each for each in memcached["status"]["conditions"]}


def _server(kubectl: Kubectl, pod: str) -> Memcached:
    return Memcached(pod_address(kubectl, pod), MEMCACHED_PORT)


def _items(server: Memcached) -> tuple[int, int]:
    """How many it has, and how many it evicted."""
    found = server.stats()
    return int(found["curr_items"]), int(found["evictions"])


def _limit_of_template_mib(kubectl: Kubectl) -> int:
    (container,) = kubectl.get("statefulset", NAME)["spec"]["template"]["spec"]["containers"]
    return mebibytes(container["resources"]["limits"]["memory"])


def _limits_mib(scene: Scene, pods: Sequence[str]) -> dict[str, float]:
    """What the kernel lets each server take of memory."""
    return {
        pod: Group.of(scene.node.container_pid(scene.kubectl.namespace, pod, "memcached")).limit_mib() for pod in pods
    }


def _is(pod: Object, server: str) -> bool:
    return bool(pod["metadata"]["name"] == pod_of(server))


def _is_going(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _evicted(seen: Sequence[Seen]) -> dict[str, float]:
    """When each server was last told to go, by the API server's clock, in that order."""
    times: dict[str, float] = {}
    for event in seen:
        meta = event.object["metadata"]
        if _is_going(event.object) and event.object["metadata"].get("labels", {}).get("memcached_cr"):
            ends = datetime.fromisoformat(meta["deletionTimestamp"]).timestamp()
            times.setdefault(meta["name"], ends - meta["deletionGracePeriodSeconds"])
    return times


def _ready_again(seen: Sequence[Seen]) -> dict[str, float]:
    """Since when each server is ready that is there now, by its node's clock."""
    return {
        event.object["metadata"]["name"]: next(
            datetime.fromisoformat(each["lastTransitionTime"]).timestamp()
            for each in event.object["status"]["conditions"]
            if each["type"] == "Ready"
        )
        for event in seen
        if is_here(event.object)
    }


def _replacing(seen: Sequence[Seen], name: str) -> tuple[float, float]:
    """When the first server of a Memcached was told to go, and when the last of the others was ready."""
    own = [each for each in seen if each.object["metadata"]["labels"]["memcached_cr"] == name]
    former = {each.object["metadata"]["uid"] for each in own if _is_going(each.object)}
    ready: dict[str, float] = {}
    for each in own:
        if each.object["metadata"]["uid"] not in former and is_here(each.object):
            ready.setdefault(each.object["metadata"]["uid"], each.at_s)
    assert len(former) == len(ready) == DEFAULT_SIZE
    return min(each.at_s for each in own if _is_going(each.object)), max(ready.values())


def _when_lost(report: Report, servers: Sequence[str]) -> dict[str, tuple[float, float]]:
    """When keys of each server were first and last missed, in that order."""
    owner = owners(servers, KEYS)
    times: dict[str, tuple[float, float]] = {}
    for number, first, last in report.misses:
        known = times.get(owner[number], (first, last))
        times[owner[number]] = min(known[0], first), max(known[1], last)
    return dict(sorted(times.items(), key=lambda item: item[1]))
