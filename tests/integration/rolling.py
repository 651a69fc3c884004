"""Memcacheds whose servers are replaced: what becomes of their pods, with a kubelet's part played by the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from operator_runtime.testing.waiting import eventually
from tests.conformance.api import Api, Json
from tests.conformance.sample_objects import path
from tests.integration.conftest import memcached
from tests.integration.oracle import OPERATOR_NAME
from tests.integration.requests import received_at, writes_of
from tests.kubectl_in_namespace import Kubectl

# Longer than any test: a server that has just become ready then holds the next.
PAUSE_S = 3600
LONG_AGO = timedelta(hours=2)
NOW = timedelta(0)
NO_BUDGET = {"maxUnavailable": "100%"}
FORMER, NEXT = "memcached:1.6.44", "memcached:1.6.45"


class Rolling:
    """The servers of one Memcached, each of which becomes ready when the test says so."""

    def __init__(self, kubectl: Kubectl, api: Api, name: str = "shop") -> None:
        self.kubectl = kubectl
        self.name = name
        self._api = api
        self._mark = kubectl.cluster.audit_mark()
        self._known: dict[str, str] = {}

    def create(self, size: int, *, workload: str = "StatefulSet", **spec: object) -> None:
        """All its servers have been ready for long.

        No budget of the operator's holds them: without nodes an evicted pod is followed by one of its name at once, for
        which a budget may take it then for two minutes.
        """
        body = memcached(self.name, size, workload=workload, disruptionBudget=NO_BUDGET, **spec)
        self._api.post(self._path("memcacheds"), body).expect(201)
        pods = eventually(self.pods, lambda found: len(found) == size, what=f"{size} pods")
        self.serve(*pods)
        self.await_condition("Progressing", "Complete")
        self._known = self._uids()

    def change(self, **spec: object) -> None:
        """Merge fields into the specification; None takes one out."""
        self._api.merge(self._path("memcacheds", self.name), {"spec": spec}).expect(200)

    def get(self, resource: str = "memcacheds", name: str = "") -> Json:
        """An object of the Memcached's name, or of that name."""
        return self._api.get(self._path(resource, name or self.name)).expect(200)

    def pods(self) -> dict[str, Json]:
        """Those that are not on their way out, by name."""
        selector = f"memcached_cr={self.name}"
        found = self._api.get(path("pods", self.kubectl.namespace), labelSelector=selector).expect(200)["items"]
        return {
            each["metadata"]["name"]: each
            for each in sorted(found, key=lambda pod: str(pod["metadata"]["name"]))
            if "deletionTimestamp" not in each["metadata"]
        }

    def serve(self, *pods: str, since: timedelta = LONG_AGO) -> datetime:
        """These pods run, and have been ready for so long; since when."""
        at = (datetime.now(UTC) - since).replace(microsecond=0)
        time = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": time}
        for pod in pods:
            self.set_status(pod, phase="Running", conditions=[ready], containerStatuses=None)
        return at

    def fail(self, pod: str, reason: str) -> None:
        """This pod waits for that reason."""
        state = {"waiting": {"reason": reason, "message": "it is so"}}
        container = {"name": "memcached", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state}
        self.set_status(pod, phase="Pending", containerStatuses=[container])

    def set_status(self, pod: str, **status: object) -> None:
        """Say how a pod fares."""
        self._api.strategic(self._path("pods", pod, "status"), {"status": status}).expect(200)

    def next(self) -> str:
        """Wait until one server has been replaced by another, or has been added; its name."""
        changed = eventually(
            lambda: sorted(self._uids().items() - self._known.items()),
            bool,
            what=f"another server than {self._known}",
        )
        ((name, uid),) = changed
        self._known[name] = uid
        return name

    def await_left(self, stale: int, size: int) -> None:
        """Wait until the status says that all of so many servers are ready, and so many of them yet to be replaced.

        It is written after all else: nothing more was done for the sake of what it tells.
        """
        words = f"{stale} of {size} servers have not been replaced yet. Servers are replaced, one at a time"

        def is_so(status: Any) -> bool:
            reason, message = conditions(status).get("Progressing", ("", ""))
            return status.get("readyReplicas") == size and reason == "Updating" and message.startswith(words)

        self.await_status(is_so, f"{size} ready servers, and {words}")

    def await_condition(self, type_: str, reason: str, words: str = "") -> str:
        """Wait until a condition has that reason, and these words in its message; the message."""

        def is_so(status: Any) -> bool:
            found = conditions(status).get(type_, ("", ""))
            return found[0] == reason and words in found[1]

        return conditions(self.await_status(is_so, f"{type_} {reason} {words}"))[type_][1]

    def await_status(self, desired: Callable[[Any], bool], what: str) -> Any:
        """Wait until the status of the present specification is so; the status."""

        def is_so(found: Any) -> bool:
            status = found.get("status", {})
            return status.get("observedGeneration") == found["metadata"]["generation"] and desired(status)

        return eventually(self.get, is_so, what=what)["status"]

    def written(self, *desired: str) -> list[tuple[str, str, datetime]]:
        """What the operator wrote of these resources, such as "pods/eviction", and was not refused: also when."""
        found = [
            (f"{each.resource}/{each.subresource}".rstrip("/"), each.name, received_at(each))
            for each in writes_of(self.kubectl.cluster, OPERATOR_NAME, since=self._mark)
            if each.namespace == self.kubectl.namespace and each.code in (200, 201)
        ]
        return sorted((each for each in found if each[0] in desired), key=lambda each: each[2])

    def evicted(self) -> list[str]:
        """The servers that the operator evicted, in order."""
        return [name for _, name, _ in self.written("pods/eviction")]

    def await_event(self, reason: str) -> str:
        """Wait for an event of the Memcached with that reason; its note."""
        return str(eventually(lambda: self._events(reason), bool, what=f"an event {reason}")[0]["note"])

    def _events(self, reason: str) -> list[Json]:
        events = self._api.get(path("events", self.kubectl.namespace)).expect(200)["items"]
        about = [each for each in events if each["regarding"]["name"] == self.name]
        return [each for each in about if each["reason"] == reason]

    def _uids(self) -> dict[str, str]:
        return {name: pod["metadata"]["uid"] for name, pod in self.pods().items()}

    def _path(self, resource: str, name: str = "", subresource: str = "") -> str:
        if resource != "memcacheds":
            return path(resource, self.kubectl.namespace, name, subresource or None)
        collection = f"/apis/cache.example.com/v1alpha1/namespaces/{self.kubectl.namespace}/memcacheds"
        return f"{collection}/{name}".rstrip("/")


def conditions(status: Any) -> dict[str, tuple[str, str]]:
    """Reason and message of each condition."""
    return {each["type"]: (each["reason"], each["message"]) for each in status.get("conditions", ())}


@contextmanager
def rolling(kubectl: Kubectl, *names: str) -> Iterator[list[Rolling]]:
    """Of Memcacheds of these names."""
    api = Api(kubectl.cluster, kubectl.cluster.kubeconfig_path)
    try:
        yield [Rolling(kubectl, api, name) for name in names]
    finally:
        api.close()


def template(workload: Json) -> tuple[str, str]:
    """The image of its pods, and what they say of their memory."""
    found = workload["spec"]["template"]
    memory = found["metadata"]["annotations"]["cache.example.com/memory"]
    return found["spec"]["containers"][0]["image"], memory.partition(",")[0]
