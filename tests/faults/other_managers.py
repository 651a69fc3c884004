"""Clients that rewrite a field of the operator's in a loop, and what of its answers the audit log shows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self

from lab.audit import AuditEvent
from operator_runtime.testing.waiting import DEADLINE_S
from tests.conformance.api import Api
from tests.integration.requests import received_at
from tests.kubectl_in_namespace import Kubectl

# One more than a bound says, for the write that was under way when the count began.
UNDER_WAY = 1


class OtherManager:
    """A thread that merges a new value into an object as fast as it is answered; a context manager."""

    def __init__(self, kubectl: Kubectl, path: str, manager: str, body: Callable[[int], object]) -> None:
        """
        Args:
            kubectl: knows cluster and namespace.
            path: of the object below the namespace's, behind the group: `apps/v1 deployments/shop`.
            manager: the name under which it writes.
            body: the patch, by the number of the write.
        """
        group, _, rest = path.partition(" ")
        self._api = Api(kubectl.cluster, kubectl.cluster.kubeconfig_path)
        self._path = f"/apis/{group}/namespaces/{kubectl.namespace}/{rest}"
        self._manager = manager
        self._body = body
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=manager, daemon=True)
        self._failure: BaseException | None = None
        self.writes = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join(DEADLINE_S)
        self._api.close()
        if self._failure is not None and error is None:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                self.writes += 1
                body = self._body(self.writes)
                self._api.merge(self._path, body, fieldManager=self._manager).expect(200)
        except BaseException as failure:
            self._failure = failure


def writes_on(kubectl: Kubectl, name: str, operator_name: str, *, after: datetime) -> list[AuditEvent]:
    """What the operator of that name wrote on objects of a name after that time, in order; its events left out."""
    found = [
        event
        for event in kubectl.cluster.audit_events(user_agent=f"{operator_name}/")
        if (event.namespace, event.name, event.verb) == (kubectl.namespace, name, "patch")
        and event.resource in ("deployments", "memcacheds")
        and received_at(event) > after
    ]
    return sorted(found, key=received_at)


def assert_at_most_one_a_second(writes: Sequence[AuditEvent], *, besides: int = 0) -> None:
    """From the first of these writes to the last there is one a second at most.

    Args:
        besides: writes that have nothing to do with the contested field.
    """
    lasted_s = (received_at(writes[-1]) - received_at(writes[0])).total_seconds()
    shown = [(event.received_at, event.resource, event.subresource, event.code) for event in writes]
    assert len(writes) <= lasted_s + UNDER_WAY + besides, shown
