"""A pod in which `hashing_client` runs, as a test asks it what it has seen."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operator_runtime.testing.waiting import eventually
from tests.e2e import hashing_client
from tests.e2e.node_cluster import PYMEMCACHE, pod_address
from tests.kubectl_in_namespace import Kubectl

_NAME = "hashing-client"
_PROGRAM = Path(hashing_client.__file__)
# Longer than any of its waits for one server, and than those of all of them together.
_TIMEOUT_S = 20.0
# The first round may have begun before whatever was done, and may have met none of it.
_ROUNDS = 2


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """What the program has seen since somebody began to count.

    Attributes:
        servers: the list by which it chooses a key's server.
        rounds: how many times it has read every key, since its start.
        quiet: how many of the last of these rounds found all and failed nowhere.
        misses: of each key that was not there when it was read: its number, and when that was first and last, in
            seconds since 1970.
        wrong: of those that had another value than was set.
        errors: of single requests, by server and time.
    """

    servers: list[str]
    rounds: int
    quiet: int
    misses: list[tuple[int, float, float]]
    wrong: list[int]
    errors: list[dict[str, Any]]

    def __repr__(self) -> str:
        """Short enough for a message."""
        return (
            f"{self.rounds} rounds, the last {self.quiet} without a miss; {len(self.missed)} missed, {len(self.wrong)} "
            f"wrong, {len(self.errors)} errors, the last {self.errors[-3:]}; by {self.servers}"
        )

    @property
    def missed(self) -> set[int]:
        """The numbers of keys that were not there when they were read."""
        return {number for number, *_ in self.misses}

    @property
    def failed(self) -> set[str]:
        """The servers that a request failed at."""
        return {error["server"] for error in self.errors}


@dataclass(frozen=True, slots=True)
class HashingPod:
    """The pod, and the ConfigMap from which it reads its list of servers."""

    kubectl: Kubectl
    address: str

    @staticmethod
    def start(kubectl: Kubectl, config_map: str, keys: int) -> HashingPod:
        """Make it, and wait until it answers.

        Args:
            config_map: has the list under `servers.json`.
            keys: how many it sets and reads.
        """
        kubectl("create", "configmap", _NAME, f"--from-file={_PROGRAM}")
        kubectl.apply(_pod(config_map, keys))
        kubectl.wait(f"pod/{_NAME}", "condition=Ready")
        return HashingPod(kubectl, pod_address(kubectl, _NAME))

    def report(self) -> Report:
        """What it has seen so far."""
        return self._request("GET")

    def begin(self) -> Report:
        """What it has seen so far; from now on it counts anew."""
        return self._request("POST")

    def follow(self, servers: Sequence[str]) -> None:
        """Wait until it goes by a list that is going to be in its ConfigMap."""

        def report_servers() -> Sequence[str]:
            # The kubelet brings a mounted ConfigMap up to date within 90 s, and at once where the pod changes.
            self.kubectl("annotate", "pod", _NAME, "--overwrite", f"asked={time.monotonic()}")
            return self.report().servers

        eventually(report_servers, lambda found: found == list(servers))

    def settle(self) -> Report:
        """Wait until it has read every key, and found it, after what was done before; what it has seen until then."""
        begun = self.report().rounds
        return eventually(
            self.report, lambda found: found.rounds >= begun + _ROUNDS and found.quiet >= 1, what="each key is found"
        )

    def _request(self, method: str) -> Report:
        request = urllib.request.Request(f"http://{self.address}:{hashing_client.PORT}/", method=method)
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
            return Report(**json.load(answer))


def _pod(config_map: str, keys: int) -> dict[str, Any]:
    container = {
        "name": _NAME,
        "image": PYMEMCACHE,
        "imagePullPolicy": "IfNotPresent",
        "args": [f"/program/{_PROGRAM.name}", "/servers/servers.json", str(keys)],
        "readinessProbe": {"httpGet": {"port": hashing_client.PORT}, "periodSeconds": 1, "timeoutSeconds": 5},
        "volumeMounts": [
            {"name": "program", "mountPath": "/program", "readOnly": True},
            {"name": "servers", "mountPath": "/servers", "readOnly": True},
        ],
    }
    volumes = [
        {"name": "program", "configMap": {"name": _NAME}},
        {"name": "servers", "configMap": {"name": config_map}},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": _NAME},
        "spec": {"containers": [container], "volumes": volumes},
    }
