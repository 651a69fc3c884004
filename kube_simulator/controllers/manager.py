"""Controllers, all together as kube-controller-manager runs them; the nodes' part is the kubelet's, and goes on alone.

CustomResourceDefinitions are looked after in `crds`, which is a part of the API server.
"""

from __future__ import annotations

import random
from typing import Any

from kube_simulator.controllers import memcached
from kube_simulator.controllers.controller import Context, Controller, Owned
from kube_simulator.controllers.deployments import Deployments
from kube_simulator.controllers.event_recorder import Recorder
from kube_simulator.controllers.garbage import GarbageCollector
from kube_simulator.controllers.kubelet import Kubelet
from kube_simulator.controllers.namespaces import Namespaces
from kube_simulator.controllers.replica_sets import ReplicaSets
from kube_simulator.controllers.stateful_sets import StatefulSets


class ControllerManager:
    """Starts and stops the controllers; `kubelet` is started and stopped by whoever owns both."""

    def __init__(
        self,
        context: Context,
        *,
        ca_certificate: str = "",
        ready_after_s: float | None = None,
        real_memcached: bool = True,
    ) -> None:
        self._recorder = Recorder(context)
        replica_sets, pods = Owned(context.store, "replicasets.apps"), Owned(context.store, "pods")
        self._owned = replica_sets, pods
        self._garbage = GarbageCollector(context)
        self.controllers: list[Controller[Any]] = [
            Namespaces(context, ca_certificate).controller,
            Deployments(context, self._recorder, replica_sets).controller,
            ReplicaSets(context, self._recorder, pods).controller,
            StatefulSets(context, self._recorder, pods).controller,
        ]
        program = memcached.find_program() if real_memcached else None
        chance = random.Random()
        self.kubelet = Kubelet(context, ready_after_s=ready_after_s, program=program, chance=chance)

    def start(self) -> None:
        """Reconcile everything there is, and go on from there; takes a running loop."""
        self._recorder.start()
        for owned in self._owned:
            owned.open()
        self._garbage.start()
        for controller in self.controllers:
            controller.start()

    async def stop(self) -> None:
        """Stop all controllers: nothing comes of what is written until `start`; can be called twice."""
        for controller in self.controllers:
            await controller.stop()
        await self._garbage.stop()
        for owned in self._owned:
            owned.close()
        await self._recorder.stop()

    @property
    def idle(self) -> bool:
        """Report whether nothing is being done or due; something may be later, such as a retry or a deadline."""
        controllers = [*self.controllers, self._garbage.controller, self.kubelet.controller]
        return all(each.idle for each in controllers) and self._recorder.idle
