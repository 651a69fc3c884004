"""A Memcached of a StatefulSet's servers, a client that hashes its keys over them, and the operators."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lab.kubectl import LabError
from lab.node.node import Node
from operator_runtime.testing.waiting import eventually
from tests.e2e.hashing_client import owners
from tests.e2e.hashing_pod import HashingPod, Report
from tests.e2e.node_cluster import LOCK, OPERATOR, fresh_namespace, leader
from tests.e2e.watching import Object, Seen, Watch
from tests.integration.conftest import memcached
from tests.kubectl_in_namespace import Kubectl

NAME = "cache"
SIZE = 6
# Of pods whose servers end when they are told to, and not some seconds later.
AT_ONCE = {"spec": {"terminationGracePeriodSeconds": 1}}
API = "/apis/cache.example.com/v1alpha1"


@dataclass(slots=True)
class Caches:
    """Which keys each server has, where the client sets what it does not find.

    Attributes:
        keys: how many the client reads.
    """

    keys: int
    kept: dict[str, set[int]] = field(default_factory=dict)

    def read(self, servers: Sequence[str]) -> set[int]:
        """The client reads every key by that list; those that it misses."""
        missed = set()
        for number, server in owners(servers, self.keys).items():
            keys = self.kept.setdefault(server, set())
            if number not in keys:
                missed.add(number)
                keys.add(number)
        return missed

    def lose(self, servers: Iterable[str]) -> None:
        """They are replaced by servers that have nothing."""
        for server in servers:
            self.kept[server] = set()


@dataclass(slots=True)
class Scene:
    """A Memcached, its client, and the operators.

    Attributes:
        killed: the last of those that were, by the name that it had in the Lease.
    """

    node: Node
    system: Kubectl
    kubectl: Kubectl
    client: HashingPod
    caches: Caches
    killed: str = ""

    @property
    def servers(self) -> list[str]:
        """`status.serverList`."""
        return list(self.kubectl.get("mcd", NAME)["status"]["serverList"])

    def change(self, **spec: object) -> None:
        """Change the specification."""
        self.kubectl("patch", "mcd", NAME, "--type=merge", "-p", json.dumps({"spec": spec}))

    def kill_the_leader(self) -> None:
        """Another goes on when its Lease has run out."""
        self.killed = eventually(self._holder, lambda found: found not in ("", self.killed))
        eventually(self._kill, bool)

    def watch(self, path: str) -> Watch:
        """Of a collection in the Memcached's namespace.

        Args:
            path: of the API, before the namespaces.
        """
        prefix, _, kind = path.rpartition("/")
        return Watch(self.node.kubeconfig_path, f"{prefix}/namespaces/{self.kubectl.namespace}/{kind}")

    def settled(self, servers: Sequence[str], *, lost: Iterable[str] = ()) -> Report:
        """What the client has seen until it finds each key again: it missed those that it had to, and no others.

        Args:
            servers: by which it goes now.
            lost: those of them that have been replaced. There alone may a request fail.
        """
        self.client.settle()
        report = self.client.begin()
        self.caches.lose(lost)
        missed, had_to = report.missed, self.caches.read(servers)
        assert missed == had_to, f"{len(missed - had_to)} too many, {len(had_to - missed)} too few; {report}"
        assert report.failed <= set(lost), report
        assert report.wrong == []
        return report

    def _holder(self) -> str:
        return self.system("get", "lease", LOCK, "-o", "jsonpath={.spec.holderIdentity}", check=False)

    def _kill(self) -> bool:
        with contextlib.suppress(LabError):
            os.kill(self.node.container_pid(self.system.namespace, leader(self.system), OPERATOR), signal.SIGKILL)
            return True
        return False


@contextlib.contextmanager
def lasting(node: Node, system: Kubectl, namespace: str, keys: int, **spec: object) -> Iterator[Scene]:
    """One whose client has found each key at one of the servers.

    Args:
        keys: how many the client reads.
        spec: of the Memcached, beside how many servers it has and where their list is.
    """
    with fresh_namespace(node, namespace) as kubectl:
        kubectl.apply(memcached(NAME, SIZE, workload="StatefulSet", discovery={"configMap": {}}, **spec))
        kubectl.wait(f"mcd/{NAME}", "condition=Ready")
        scene = Scene(node, system, kubectl, HashingPod.start(kubectl, f"{NAME}-servers", keys), Caches(keys))
        servers = scene.servers
        assert servers == names(kubectl, SIZE)
        scene.client.follow(servers)
        assert len(scene.settled(servers).missed) == keys
        yield scene


def names(kubectl: Kubectl, size: int) -> list[str]:
    """The servers of a StatefulSet."""
    return [f"{NAME}-{ordinal}.{NAME}.{kubectl.namespace}.svc:11211" for ordinal in range(size)]


def pod_of(server: str) -> str:
    """The name of its pod."""
    return server.partition(".")[0]


def most_away(seen: Sequence[Seen]) -> int:
    """How many servers were away at a time, at most."""
    away: set[str] = set()
    most = 0
    for event in seen:
        if is_server(event.object):
            name = event.object["metadata"]["name"]
            if event.kind != "DELETED" and is_here(event.object):
                away.discard(name)
            else:
                away.add(name)
            most = max(most, len(away))
    return most


def is_server(pod: Object) -> bool:
    """Whether it is one of the Memcached's."""
    return bool(pod["metadata"].get("labels", {}).get("memcached_cr") == NAME)


def is_here(pod: Object) -> bool:
    """Whether it is ready, and stays."""
    conditions = {each["type"]: each["status"] for each in pod["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]
