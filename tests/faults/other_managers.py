"""Clients that rewrite a field of the operator's in a loop, and what of its answers the audit log shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from lab.audit import AuditEvent
from tests.integration.load import Busy
from tests.integration.requests import received_at
from tests.kubectl_in_namespace import Kubectl

# One more than a bound says, for the write that was under way when the count began.
UNDER_WAY = 1


class OtherManager(Busy):
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
        super().__init__(kubectl, manager)
        self._path = f"/apis/{group}/namespaces/{kubectl.namespace}/{rest}"
        self._manager = manager
        self._body = body
        self.writes = 0

    def turn(self, number: int) -> None:
        """Write once more."""
        self.writes = number + 1
        self._api.merge(self._path, self._body(self.writes), fieldManager=self._manager).expect(200)


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
