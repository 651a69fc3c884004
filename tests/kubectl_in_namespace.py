"""kubectl as tests call it: in one namespace, with what it answers decoded and its waiting given a deadline."""

from __future__ import annotations

import json
import math
import subprocess
import time
from dataclasses import dataclass
from typing import Any

from operator_runtime.testing.waiting import DEADLINE_S
from tests.cluster import Cluster

# Of an object in a message: a Memcached or a workload as a whole.
_SHOWN = 10_000


@dataclass(frozen=True, slots=True)
class Kubectl:
    """The real kubectl in one namespace. Waiting is kubectl's own `wait`: it watches, and has a deadline."""

    cluster: Cluster
    namespace: str

    def __call__(self, *arguments: str, input: str | None = None, check: bool = True) -> str:
        """Run it; its standard output."""
        return self.run(*arguments, input=input, check=check).stdout

    def run(self, *arguments: str, input: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run it; everything about how it ended."""
        return self.cluster.kubectl("--namespace", self.namespace, *arguments, input=input, check=check)

    def get(self, *what: str) -> Any:
        """`kubectl get ... -o json`, decoded."""
        return json.loads(self("get", *what, "-o", "json"))

    def names(self, *what: str) -> list[str]:
        """What `kubectl get` finds, in the form kind/name."""
        return self("get", *what, "-o", "name").split()

    def apply(self, *documents: dict[str, Any], create: bool = False) -> None:
        """`kubectl apply -f -` (or create) of these objects."""
        text = "\n---\n".join(json.dumps(document) for document in documents)
        self("create" if create else "apply", "-f", "-", input=text)

    def wait(self, what: str, condition: str) -> None:
        """`kubectl wait WHAT --for=CONDITION`; also for objects that are not there yet.

        Raises:
            AssertionError: it did not come in time; the message has what kubectl said, and the object as it is.
        """
        ends = time.monotonic() + DEADLINE_S
        if condition != "delete":
            self._wait(what, "create", ends)
        if condition != "create":
            self._wait(what, condition, ends)

    def wait_field(self, what: str, path: str, value: object) -> None:
        """Wait until the field at a JSONPath such as `.status.replicas` has that value."""
        self.wait(what, f"jsonpath={{{path}}}={value}")

    def wait_existing(self, what: str, condition: str) -> None:
        """As `wait`, by one run of kubectl, for an object that is there, or several, parted by blanks."""
        self._wait(what, condition, time.monotonic() + DEADLINE_S)

    def _wait(self, what: str, condition: str, ends: float) -> None:
        left_s = max(1, math.ceil(ends - time.monotonic()))
        waited = self.run("wait", *what.split(), f"--for={condition}", f"--timeout={left_s}s", check=False)
        if waited.returncode != 0:
            found = self.run("get", *what.split(), "-o=yaml", check=False)
            seen = found.stdout or found.stderr
            raise AssertionError(
                f"{what} in {self.namespace} never had {condition}: {waited.stderr.strip()}\n"
                f"It was, in the end:\n{seen[:_SHOWN]}{'…' if len(seen) > _SHOWN else ''}"
            )

    def uid(self, what: str) -> str:
        """`metadata.uid`."""
        return str(self.get(what)["metadata"]["uid"])
