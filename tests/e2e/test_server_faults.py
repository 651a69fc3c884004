"""What the status says when a memcached pod fails."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

import pytest

from lab.node.node import Node
from operator_runtime.testing.waiting import eventually
from tests.e2e.node_cluster import nodes_of, pod_address, server_process, stores
from tests.e2e.watching import Object, Watch
from tests.integration.conftest import memcached
from tests.integration.oracle import condition
from tests.kubectl_in_namespace import Kubectl

NAME = "cache"
SIZE = 2
# A server is started again at once, and each further time after a longer while.
KILLS = 8


@pytest.fixture
def cache(kubectl: Kubectl, system: Kubectl) -> Kubectl:
    """kubectl where two servers are ready."""
    kubectl.apply(memcached(NAME, SIZE))
    kubectl.wait_field(f"mcd/{NAME}", ".status.readyReplicas", SIZE)
    return kubectl


@contextlib.contextmanager
def watches(kubectl: Kubectl) -> Iterator[tuple[Watch, Watch]]:
    """Of the pods and of the Memcacheds."""
    core, group = f"/api/v1/namespaces/{kubectl.namespace}", "/apis/cache.example.com/v1alpha1"
    with (
        Watch(kubectl.cluster.kubeconfig_path, f"{core}/pods") as pods,
        Watch(kubectl.cluster.kubeconfig_path, f"{group}/namespaces/{kubectl.namespace}/memcacheds") as memcacheds,
    ):
        pods.first(lambda _: True)
        memcacheds.first(lambda found: found["status"]["readyReplicas"] == SIZE)
        yield pods, memcacheds


def test_the_status_follows_a_server_that_is_killed_and_comes_back(cache: Kubectl, node: Node) -> None:
    victim = nodes_of(cache, NAME)[0]
    began, outages = time.monotonic(), []
    with watches(cache) as (pods, memcacheds):
        for _ in range(KILLS):
            killed = time.monotonic()
            os.kill(server_process(node, cache, victim), signal.SIGKILL)
            down = pods.first(lambda pod: _is(pod, victim, ready=False), after_s=killed)
            back = pods.first(lambda pod: _is(pod, victim, ready=True), after_s=down.at_s)
            outages.append(back.at_s - down.at_s)
            # What is over soon need not be told; what lasts must be.
            if any(seen.at_s > began and _ready(seen.object) == SIZE - 1 for seen in memcacheds.so_far()):
                break
        else:
            raise AssertionError(f"the status tells of none of the outages; these lasted {outages} s")
        reported = memcacheds.first(lambda found: _ready(found) == SIZE - 1, after_s=began)
        memcacheds.first(lambda found: _ready(found) == SIZE, after_s=reported.at_s)
    cache.wait_field(f"mcd/{NAME}", ".status.readyReplicas", SIZE)
    assert victim in nodes_of(cache, NAME)
    assert stores(pod_address(cache, victim), "back")


NO_SECRET = 'secret "nope" not found'
FAULTS = {
    "an init container": (
        {"initContainers": [{"name": "fetch", "image": "missing.example.com/none:1"}]},
        "ImagePullBackOff of the container fetch",
    ),
    "a volume": (
        {
            "volumes": [{"name": "config", "secret": {"secretName": "nope"}}],
            "containers": [{"name": "memcached", "volumeMounts": [{"name": "config", "mountPath": "/nope"}]}],
        },
        f'FailedMount: MountVolume.SetUp failed for volume "config" : {NO_SECRET}',
    ),
    "a variable": (
        {
            "containers": [
                {
                    "name": "memcached",
                    "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "nope", "key": "a"}}}],
                }
            ]
        },
        f"CreateContainerConfigError: {NO_SECRET}",
    ),
}


@pytest.mark.parametrize(("fault", "words"), FAULTS.values(), ids=FAULTS)
@pytest.mark.usefixtures("system")
def test_what_keeps_a_memcached_from_starting_is_named_and_what_corrects_it_is_taken_at_once(
    kubectl: Kubectl, fault: Object, words: str
) -> None:
    kubectl.apply(memcached(NAME, 1, workload="StatefulSet", podTemplate={"spec": fault}))
    eventually(
        lambda: condition(kubectl, NAME, "Available")["message"],
        lambda message: words in message,
        what=f"{words} in Available",
    )
    kubectl.apply(memcached(NAME, 1, workload="StatefulSet"))
    kubectl.wait_field(f"mcd/{NAME}", ".status.readyReplicas", 1)


def test_the_status_follows_a_pod_that_is_deleted_and_replaced(cache: Kubectl) -> None:
    victim = nodes_of(cache, NAME)[0]
    with watches(cache) as (_, memcacheds):
        deleted = time.monotonic()
        cache("delete", "pod", victim, "--wait=false")
        memcacheds.first(
            lambda found: victim not in found["status"]["nodes"] and _ready(found) == SIZE, after_s=deleted
        )
    nodes = eventually(lambda: nodes_of(cache, NAME), lambda found: len(found) == SIZE)
    assert victim not in nodes


def _name(found: Object) -> str:
    return str(found["metadata"]["name"])


def _is(pod: Object, name: str, *, ready: bool) -> bool:
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", ())}
    return _name(pod) == name and (conditions.get("Ready") == "True") is ready


def _ready(memcached: Object) -> int:
    return int(memcached["status"]["readyReplicas"])
