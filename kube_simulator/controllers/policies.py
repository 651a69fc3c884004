"""The status of ValidatingAdmissionPolicies: which generation was looked at, and what types its expressions got wrong.

Differs from Kubernetes: types are not checked, and nothing is ever found.
"""

from __future__ import annotations

from kube_simulator.admission.policies import POLICIES
from kube_simulator.controllers.base import Context, Controller, controller_caller
from kube_simulator.requests.types import Patch, WriteOptions

_MANAGER = "validatingadmissionpolicy-status"
_OPTIONS = WriteOptions(field_manager=_MANAGER, force=True)


class PolicyStatus:
    """Looks at each policy that is new or has changed."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._caller = controller_caller(f"{_MANAGER}-controller")
        self.controller: Controller[str] = Controller(_MANAGER, self._reconcile)
        self.controller.watch(context.store, POLICIES, lambda change: (change.object["metadata"]["name"],))

    async def _reconcile(self, name: str) -> None:
        found = self._context.store.get(POLICIES, "", name)
        if found is None:
            return
        generation = found["metadata"]["generation"]
        if (found.get("status") or {}).get("observedGeneration") == generation:
            return
        applied = {
            "apiVersion": found["apiVersion"],
            "kind": found["kind"],
            "metadata": {"name": name},
            "status": {"observedGeneration": generation, "typeChecking": {}},
        }
        target = self._context.target(POLICIES, "", name, "status")
        await self._context.api.patch(target, Patch("apply", applied), self._caller, _OPTIONS)
