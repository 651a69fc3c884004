"""Controllers, all together as kube-controller-manager runs them; the nodes' part is `pods.Kubelet`, and goes on alone.

CustomResourceDefinitions are looked after in `crds`, which is a part of the API server.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kube_simulator.controllers import memcached
from kube_simulator.controllers.accounts import Accounts
from kube_simulator.controllers.controller import Context, Controller
from kube_simulator.controllers.deployments import Deployments
from kube_simulator.controllers.event_recorder import Recorder
from kube_simulator.controllers.garbage import GarbageCollector
from kube_simulator.controllers.index import Index, by_controller
from kube_simulator.controllers.kubelet import Kubelet
from kube_simulator.controllers.namespace_deletion import Namespaces
from kube_simulator.controllers.replica_sets import ReplicaSets
from kube_simulator.controllers.stateful_set_control import StatefulSets
from kube_simulator.resources import Registry
from kube_simulator.store.store import Store

if TYPE_CHECKING:
    from kube_simulator.requests.api import Api


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options in which one controller-manager can differ from another."""

    ca_certificate: str = ""
    """PEM, for the ConfigMap `kube-root-ca.crt` of each namespace."""
    ready_after_s: float | None = None
    """How long a pod takes to be ready; None: there are no nodes, and pods stay Pending."""
    real_memcached: bool = True
    """Start memcached for pods that run it, where the machine has it."""


class ControllerManager:
    """Starts and stops the controllers; `kubelet` is started and stopped by whoever owns both."""

    def __init__(
        self,
        api: Api,
        store: Store,
        registry: Registry,
        now: Callable[[], datetime],
        options: Options = Options(),
        *,
        chance: random.Random | None = None,
    ) -> None:
        """
        Args:
            now: the present time, in UTC.
            chance: draws the addresses of memcached processes.
        """
        context = Context(api, store, registry, now)
        self._recorder = Recorder(context, time.time_ns)
        self._node_recorder = Recorder(context, time.time_ns)
        replica_sets, pods = Index(store, "replicasets.apps", by_controller), Index(store, "pods", by_controller)
        self._indexes = replica_sets, pods
        self._garbage = GarbageCollector(context)
        self._controllers: list[Controller[Any]] = [
            Accounts(context, options.ca_certificate).controller,
            Namespaces(context).controller,
            Deployments(context, self._recorder, replica_sets, pods).controller,
            ReplicaSets(context, self._recorder, pods).controller,
            StatefulSets(context, self._recorder, pods).controller,
        ]
        self.kubelet = Kubelet(
            context,
            self._node_recorder,
            ready_after_s=options.ready_after_s,
            program=memcached.find_program() if options.real_memcached else None,
            chance=chance or random.Random(),
        )

    def start(self) -> None:
        """Reconcile everything there is, and go on from there; takes a running loop."""
        self._recorder.start()
        for index in self._indexes:
            index.open()
        self._garbage.start()
        for controller in self._controllers:
            controller.start()

    async def stop(self) -> None:
        """Stop all controllers: nothing comes of what is written until `start`; can be called twice."""
        for controller in self._controllers:
            await controller.stop()
        await self._garbage.stop()
        for index in self._indexes:
            index.close()
        await self._recorder.stop()

    def start_kubelet(self) -> None:
        """Bind and run pods, if there are nodes."""
        self._node_recorder.start()
        self.kubelet.start()

    async def stop_kubelet(self) -> None:
        """End all memcached processes; can be called twice."""
        await self.kubelet.stop()
        await self._node_recorder.stop()

    @property
    def idle(self) -> bool:
        """Report whether nothing is being done or due; something may be later, such as a retry or a deadline."""
        controllers = [*self._controllers, self._garbage.controller, self.kubelet.controller]
        return all(each.idle for each in controllers) and self._recorder.idle and self._node_recorder.idle
