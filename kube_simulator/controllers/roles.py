"""ClusterRoles that are put together from others: their rules follow the roles that their aggregationRule selects."""

from __future__ import annotations

from collections.abc import Iterable

from kube_simulator.access.bootstrap import aggregated
from kube_simulator.access.rbac import CLUSTER_ROLES
from kube_simulator.controllers.base import Context, Controller, controller_caller
from kube_simulator.store.store import Change


class RoleAggregation:
    """The controller of aggregated ClusterRoles."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._caller = controller_caller("clusterrole-aggregation-controller")
        self.controller: Controller[str] = Controller("clusterrole-aggregation", self._reconcile)
        self.controller.watch(context.store, CLUSTER_ROLES, self._aggregating)

    def _aggregating(self, _change: Change) -> Iterable[str]:
        """Any change of a role may be one of those that are put together: there are few."""
        roles = self._context.store.list(CLUSTER_ROLES)
        return [each["metadata"]["name"] for each in roles if each.get("aggregationRule")]

    async def _reconcile(self, name: str) -> None:
        found = self._context.store.get(CLUSTER_ROLES, "", name)
        if found is None:
            return
        rules = aggregated(self._context.store, found)
        if rules is None or rules == (found.get("rules") or []):
            return
        target = self._context.target(CLUSTER_ROLES, "", name)
        await self._context.api.update(target, {**found, "rules": rules}, self._caller)
