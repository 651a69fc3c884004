"""A Memcached whose servers are replaced: what becomes of its pods, with a kubelet's part played by the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from operator_runtime.testing.waiting import eventually
from tests.conformance.api import Api, Json
from tests.conformance.sample_objects import path
from tests.integration.conftest import memcached
from tests.integration.oracle import OPERATOR_NAME
from tests.integration.requests import writes_of
from tests.kubectl_in_namespace import Kubectl

LONG_AGO = timedelta(hours=2)
NOW = timedelta(0)
NO_BUDGET = {"maxUnavailable": "100%"}
FORMER, NEXT = "memcached:1.6.44", "memcached:1.6.45"


class Rolling:
    """The servers of the Memcached named shop, each of which becomes ready when the test says so."""

    def __init__(self, kubectl: Kubectl, api: Api) -> None:
        self.kubectl = kubectl
        self._api = api
        self._mark = kubectl.cluster.audit_mark()
        self._known: dict[str, str] = {}

    def create(self, size: int, *, workload: str = "StatefulSet", **spec: object) -> None:
        """All its servers have been ready for long.

        No budget of the operator's holds them: without nodes an evicted pod is followed by one of its name at once, for
        which a budget may take it then for two minutes.
        """
        body = memcached("shop", size, workload=workload, disruptionBudget=NO_BUDGET, **spec)
        self._api.post(self._path("memcacheds"), body).expect(201)
        pods = eventually(self.pods, lambda found: len(found) == size, what=f"{size} pods")
        self.serve(*pods)
        self.await_condition("Progressing", "Complete")
        self._known = self._uids()

    def change(self, **spec: object) -> None:
        """Merge fields into the specification; None takes one out."""
        self._api.merge(self._path("memcacheds", "shop"), {"spec": spec}).expect(200)

    def get(self, resource: str = "memcacheds") -> Json:
        """An object of the Memcached's name."""
        return self._api.get(self._path(resource, "shop")).expect(200)

    def pods(self) -> dict[str, Json]:
        """Those that are not on their way out, by name."""
        found = self._api.get(self._path("pods"), labelSelector="memcached_cr=shop").expect(200)["items"]
        return {
            each["metadata"]["name"]: each
            for each in sorted(found, key=lambda pod: str(pod["metadata"]["name"]))
            if "deletionTimestamp" not in each["metadata"]
        }

    def serve(self, *pods: str, since: timedelta = LONG_AGO) -> None:
        """These pods run, and have been ready for so long."""
        time = (datetime.now(UTC) - since).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": time}
        for pod in pods:
            self.set_status(pod, phase="Running", conditions=[ready], containerStatuses=None)

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

    def await_condition(self, type_: str, reason: str, words: str = "") -> None:
        """Wait until a condition of the present specification has that reason, and these words in its message."""

        def is_so(found: Any) -> bool:
            status = found.get("status", {})
            conditions = {each["type"]: each for each in status.get("conditions", ())}
            told = conditions.get(type_, {"reason": "", "message": ""})
            is_present = status.get("observedGeneration") == found["metadata"]["generation"]
            return is_present and told["reason"] == reason and words in told["message"]

        eventually(self.get, is_so, what=f"{type_} {reason} {words}")

    def evicted(self) -> list[str]:
        """The servers that the operator evicted, and was not refused."""
        return [
            each.name
            for each in writes_of(self.kubectl.cluster, OPERATOR_NAME, since=self._mark)
            if (each.namespace, each.subresource) == (self.kubectl.namespace, "eviction") and each.code in (200, 201)
        ]

    def await_event(self, reason: str) -> str:
        """Wait for an event of the Memcached with that reason; its note."""
        return str(eventually(lambda: self._events(reason), bool, what=f"an event {reason}")[0]["note"])

    def _events(self, reason: str) -> list[Json]:
        events = self._api.get(self._path("events")).expect(200)["items"]
        return [each for each in events if (each["regarding"]["name"], each["reason"]) == ("shop", reason)]

    def _uids(self) -> dict[str, str]:
        return {name: pod["metadata"]["uid"] for name, pod in self.pods().items()}

    def _path(self, resource: str, name: str = "", subresource: str = "") -> str:
        if resource != "memcacheds":
            return path(resource, self.kubectl.namespace, name, subresource or None)
        collection = f"/apis/cache.example.com/v1alpha1/namespaces/{self.kubectl.namespace}/memcacheds"
        return f"{collection}/{name}".rstrip("/")


@contextmanager
def rolling(kubectl: Kubectl) -> Iterator[Rolling]:
    """Until the end of the block."""
    api = Api(kubectl.cluster, kubectl.cluster.kubeconfig_path)
    try:
        yield Rolling(kubectl, api)
    finally:
        api.close()
