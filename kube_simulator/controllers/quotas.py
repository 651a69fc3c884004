"""The status of ResourceQuotas: what they allow, and how much of it is used.

Differs from Kubernetes: one controller keeps it, where there admission raises and a controller lowers what is used.
"""

from __future__ import annotations

from collections.abc import Iterable

from kube_simulator.admission import quota
from kube_simulator.controllers.base import Context, Controller, Key, controller_caller, key_of
from kube_simulator.store.store import Change


class Quotas:
    """Counts anew after each change in a namespace that has a quota."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._caller = controller_caller("resourcequota-controller")
        self.controller: Controller[Key] = Controller("resourcequota", self._reconcile)
        self.controller.watch(context.store, quota.COLLECTION, lambda change: (key_of(change.object),))
        self.controller.watch(context.store, None, self._concerned)

    def _concerned(self, change: Change) -> Iterable[Key]:
        """The quotas of the namespace. In the path of every write, so be quick."""
        namespace = change.object["metadata"].get("namespace", "")
        if not namespace or (change.type == "MODIFIED" and change.collection != "pods"):
            return ()
        return [key_of(each) for each in self._context.store.list(quota.COLLECTION, namespace)]

    async def _reconcile(self, key: Key) -> None:
        namespace, name = key
        context = self._context
        found = context.store.get(quota.COLLECTION, namespace, name)
        if found is None:
            return
        status = quota.status_of(found, context.store, context.registry)
        if status != (found.get("status") or {}):
            target = context.target(quota.COLLECTION, namespace, name, "status")
            await context.api.update(target, {**found, "status": status}, self._caller)
