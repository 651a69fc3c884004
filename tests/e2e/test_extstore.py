"""Servers with a disk on a real node: by either kind of volume they keep three times their memory."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pymemcache import Client

from benchmarks.sizing.server import Memcached
from lab.node.node import NODE_NAME, Node
from operator_runtime.testing.waiting import eventually, until
from tests.e2e.node_cluster import MEMCACHED_PORT, incarnations, pod_address
from tests.integration.conftest import memcached
from tests.integration.oracle import condition
from tests.kubectl_in_namespace import Kubectl

NAME, POD = "chunks", "chunks-0"
MEMORY_MIB = 64
DISK = "512Mi"
# Three times the memory.
VALUE_BYTES = 50_000
COUNT = 3 * MEMORY_MIB * 2**20 // VALUE_BYTES
# What is sent before it is looked whether there is room again.
AT_ONCE = 8
# So much room is left for others, as the server gives some away meanwhile.
ROOM_PAGES, ROOM_CHUNKS = 4, 32
STORAGE_CLASS = "e2e-local"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def storage_class(node: Node) -> Iterator[None]:
    """A class of volumes that are made by hand."""
    cluster = Kubectl(node.plane, "default")
    cluster.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": STORAGE_CLASS},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    yield
    cluster("delete", "storageclass", STORAGE_CLASS)


@pytest.fixture
def local_disks(node: Node, storage_class: None, tmp_path: Path) -> Iterator[None]:
    """Volumes of the node's, as a local static provisioner makes one of each disk; each is used once."""
    here = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE_NAME]}]
    names = [f"{STORAGE_CLASS}-{uuid4().hex[:8]}" for _ in range(2)]
    cluster = Kubectl(node.plane, "default")
    for name in names:
        (path := tmp_path / name).mkdir(mode=0o777)
        body: Any = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": DISK},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": STORAGE_CLASS,
                "persistentVolumeReclaimPolicy": "Retain",
                "local": {"path": str(path)},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": here}]}},
            },
        }
        cluster.apply(body)
    yield
    cluster("delete", "persistentvolume", *names, "--wait=false")


VOLUMES: dict[str, dict[str, Any]] = {
    "the node's own disk": {"emptyDir": {}},
    "a claim": {"ephemeral": {"storageClassName": STORAGE_CLASS}},
}


@pytest.mark.parametrize("volume", VOLUMES.values(), ids=VOLUMES)
@pytest.mark.usefixtures("local_disks", "system")
def test_three_times_the_memory_is_kept_while_memory_grows_and_a_killed_server_comes_back_empty(
    node: Node, kubectl: Kubectl, volume: dict[str, Any]
) -> None:
    kubectl("label", "namespace", kubectl.namespace, "pod-security.kubernetes.io/enforce=restricted")

    def change(memory_mib: int) -> None:
        disk = {"size": DISK, "volume": volume}
        kubectl.apply(
            memcached(NAME, 1, workload="StatefulSet", memory=f"{memory_mib}Mi", maxItemSize="2Mi", extstore=disk)
        )

    change(MEMORY_MIB)
    kubectl.wait(f"mcd/{NAME}", "condition=Ready")
    before, address = incarnations(kubectl), pod_address(kubectl, POD)
    server = Memcached(address, MEMCACHED_PORT)
    with closing(Client((address, MEMCACHED_PORT), timeout=20)) as client:
        _fill(client, server, range(COUNT // 2))
        change(MEMORY_MIB + 16)
        until("the memory grows", lambda: server.stats()["limit_maxbytes"] == str((MEMORY_MIB + 16) * 2**20))
        _fill(client, server, range(COUNT // 2, COUNT))
        found = sum(client.get(f"key{number}") == _value(number) for number in range(COUNT))
        stats = server.stats()
        assert (found, stats["evictions"], stats["badcrc_from_extstore"]) == (COUNT, "0", "0")
        assert int(stats["extstore_objects_used"]) * VALUE_BYTES > MEMORY_MIB * 2**20
        assert int(stats["get_extstore"]) >= int(stats["extstore_objects_used"])
    assert incarnations(kubectl) == before

    os.kill(node.container_pid(kubectl.namespace, POD, "memcached"), signal.SIGKILL)
    kubectl.wait_field(f"pod/{POD}", ".status.containerStatuses[0].restartCount", 1)
    kubectl.wait(f"mcd/{NAME}", "condition=Ready")
    stats = eventually(server.stats, bool, ignoring=OSError)
    assert (stats["curr_items"], stats["extstore_objects_used"]) == ("0", "0")
    until("it is told that its items are lost", lambda: "ServerRestarted" in kubectl("get", "events"))
    with closing(Client((address, MEMCACHED_PORT), timeout=20)) as client:
        client.set("again", b"1", noreply=False)
        assert client.get("again") == b"1"


@pytest.mark.usefixtures("local_disks", "system")
def test_the_claim_of_a_server_that_is_replaced_goes_with_its_pod_and_the_next_has_one_of_its_own(
    kubectl: Kubectl,
) -> None:
    disk = {"size": DISK, "volume": {"ephemeral": {"storageClassName": STORAGE_CLASS}}}
    kubectl.apply(memcached(NAME, 1, workload="StatefulSet", extstore=disk))
    kubectl.wait(f"mcd/{NAME}", "condition=Ready")
    claim = f"pvc/{POD}-extstore"
    first = kubectl.uid(claim)
    kubectl("delete", "pod", POD)
    kubectl.wait(f"pod/{POD}", "condition=Ready")
    kubectl.wait(f"mcd/{NAME}", "condition=Ready")
    assert kubectl.uid(claim) != first
    address = pod_address(kubectl, POD)
    with closing(Client((address, MEMCACHED_PORT), timeout=20)) as client:
        client.set("again", b"1", noreply=False)
        assert client.get("again") == b"1"


def assert_told_until_corrected(kubectl: Kubectl, wrong: dict[str, Any], words: str, right: dict[str, Any]) -> None:
    """A disk that cannot be had is told in these words and harms no other Memcached, and another one is used."""
    kubectl.apply(memcached("other", 1))
    kubectl.wait("mcd/other", "condition=Ready")
    kubectl.apply(memcached(NAME, 1, workload="StatefulSet", extstore=wrong))
    eventually(
        lambda: condition(kubectl, NAME, "Available")["message"],
        lambda message: words in message,
        what=f"{words} in Available",
        deadline_s=120,
    )
    assert condition(kubectl, "other", "Ready")["status"] == "True"
    kubectl.apply(memcached(NAME, 1, workload="StatefulSet", extstore=right))
    kubectl.wait(f"mcd/{NAME}", "condition=Ready")


@pytest.mark.usefixtures("local_disks", "system")
def test_volumes_that_are_too_small_are_told_and_a_disk_that_fits_is_used(kubectl: Kubectl) -> None:
    disk = {"size": DISK, "volume": {"ephemeral": {"storageClassName": STORAGE_CLASS}}}
    words = "didn't find available persistent volumes to bind"
    assert_told_until_corrected(kubectl, disk | {"size": "8Gi"}, words, disk)


@pytest.mark.usefixtures("system")
def test_a_storage_class_that_does_not_exist_is_told_and_harms_no_other(kubectl: Kubectl) -> None:
    disk = {"size": DISK, "volume": {"ephemeral": {"storageClassName": "none-such"}}}
    words = f'ProvisioningFailed of the claim {POD}-extstore: storageclass.storage.k8s.io "none-such" not found'
    assert_told_until_corrected(kubectl, disk, words, disk | {"volume": {"emptyDir": {}}})


def _fill(client: Client, server: Memcached, numbers: range) -> None:
    """Set these, no faster than memcached moves others to the disk."""
    for first in range(numbers.start, numbers.stop, AT_ONCE):
        _await_room(server.stats)
        for number in range(first, min(first + AT_ONCE, numbers.stop)):
            client.set(f"key{number}", _value(number), noreply=True)


def _await_room(stats: Callable[[str], dict[str, str]]) -> None:
    """Until there are chunks for some more values, or pages for such chunks."""

    def has_room() -> bool:
        slabs, whole = stats("slabs"), stats("")
        sizes = {name.partition(":")[0]: int(size) for name, size in slabs.items() if name.endswith(":chunk_size")}
        fits = [number for number, size in sizes.items() if size > VALUE_BYTES]
        free = sum(int(slabs[f"{number}:free_chunks"]) for number in fits[:1])
        grows = int(slabs["total_malloced"]) <= int(whole["limit_maxbytes"]) - ROOM_PAGES * 2**20
        return free >= ROOM_CHUNKS or int(whole["slab_global_page_pool"]) >= ROOM_PAGES or grows

    until("memcached moves no value to its disk", has_room)


def _value(number: int) -> bytes:
    return (b"%08d" % number) * (VALUE_BYTES // 8)
