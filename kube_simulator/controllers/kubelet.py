"""The scheduler's and the kubelet's part: pods are bound to the one node, run, become ready, and end.

Without nodes (`ready_after_s` is None) pods stay Pending, as on a control plane that has none. With them a pod is bound
at once, and after this time it runs and is ready. One whose container runs memcached becomes a real process where
that can be had.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from ipaddress import IPv4Network

from kube_simulator.access.users import MASTERS
from kube_simulator.controllers import memcached
from kube_simulator.controllers.controller import Context, Controller, Key, key_of
from kube_simulator.controllers.object_fields import is_deleting, is_finished, status_of
from kube_simulator.controllers.pod_status import NODE, Container, End, bound, running_status
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import Caller, DeleteOptions, User
from kube_simulator.store.store import Change
from kube_simulator.values import Json

_NODE_USER = User(f"system:node:{NODE}", frozenset({"system:nodes", "system:authenticated", MASTERS}))
_KUBELET = Caller(_NODE_USER, "kubelet")
_ADDRESSES = IPv4Network("10.244.0.0/16")
# memcached takes a second to end when it is asked to, and has nothing to save when the simulator ends.
_LAST_GRACE_S = 0.0
# After which a deletion that was refused is tried again.
_RETRY_S = 1.0


@dataclass(slots=True)
class _Pod:
    """Knowledge that the node has of a pod."""

    key: Key
    started_at: datetime
    due: float
    """When it may be ready, on the loop's clock."""
    address: str = ""
    process: memcached.Process | None = None
    state: Container = field(default_factory=Container)
    """Of containers that are no processes."""

    def containers(self, pod: Json) -> dict[str, Container]:
        """The state of each container: memcached's is its process's."""
        process = self.process
        real = {} if process is None else {process.command.container: process.container}
        return {each["name"]: real.get(each["name"], self.state) for each in pod["spec"]["containers"]}


class Kubelet:
    """The one node; goes on while the controller-manager is stopped."""

    def __init__(
        self,
        context: Context,
        *,
        ready_after_s: float | None = None,
        program: str | None = None,
        chance: random.Random,
    ) -> None:
        """
        Args:
            ready_after_s: time that a pod takes from its binding until it is ready; None: there are no nodes.
            program: the memcached to start; None: memcached is simulated as everything else.
            chance: draws the addresses of memcached processes.
        """
        self._context = context
        self.ready_after_s = ready_after_s
        self._program = program
        self._chance = chance
        self._pods: dict[str, _Pod] = {}
        self._endings: dict[str, asyncio.Task[None]] = {}
        self._addresses = _ADDRESSES.hosts()
        # `start` of the controller takes care of all pods; those that run already go on, memcached as new processes.
        self.controller: Controller[Key] = Controller("kubelet", self._reconcile, workers=1)
        self.controller.watch(context.store, "pods", self._keys_of_pod)

    async def stop(self) -> None:
        """End all processes; can be called twice."""
        await self.controller.stop()
        processes = [pod.process for pod in self._pods.values() if pod.process is not None]
        self._pods.clear()
        ends = [each.stop(_LAST_GRACE_S) for each in processes]  # those of pods that are ending get no more time either
        await asyncio.gather(*ends, *self._endings.values(), return_exceptions=True)

    def crash(self, namespace: str, name: str) -> None:
        """Kill the containers of a pod that runs here; they are started again, and the pod stays the same.

        Raises:
            KeyError: no such pod runs here.
        """
        pod = self._context.store.get("pods", namespace, name)
        known = None if pod is None else self._pods.get(pod["metadata"]["uid"])
        since = None if known is None else known.state.running_since
        if known is None or (known.process is None and since is None):
            raise KeyError(name)
        if since is not None:
            now = self._context.now()
            end, restarts = End(-signal.SIGKILL, since, now), known.state.restarts + 1
            known.state = replace(known.state, running_since=now, last_end=end, restarts=restarts)
        if known.process is not None:
            known.process.crash()
        self.controller.add(known.key)

    def _keys_of_pod(self, change: Change) -> Iterable[Key]:
        if change.type == "DELETED":
            self._forget(change.object)
            return ()
        return (key_of(change.object),)

    async def _reconcile(self, key: Key) -> None:
        pod = self._context.store.get("pods", *key)
        if pod is None or (is_finished(pod) and not is_deleting(pod)):
            return
        node = pod["spec"].get("nodeName")
        if not node:
            if self.ready_after_s is None or is_deleting(pod):
                return
            # A binding is no write of the pod: no admission, no field manager.
            pod = self._context.store.put("pods", bound(pod, self._context.now()))
        elif node != NODE:
            return
        if is_deleting(pod):
            self._end(pod)
        else:
            await self._run(pod)

    async def _run(self, pod: Json) -> None:
        known, now = self._known(pod), self._context.now()
        wait_s = known.due - asyncio.get_running_loop().time()
        if wait_s <= 0 and known.state.running_since is None:
            known.state = replace(known.state, running_since=now, ready=True)
        containers = known.containers(pod)
        if wait_s > 0:
            containers = {name: replace(each, ready=False) for name, each in containers.items()}
            self.controller.add_after(known.key, wait_s)
        if known.process is not None:
            known.address = known.process.address
        elif wait_s <= 0 and not known.address:
            known.address = str(next(self._addresses))
        await self._write(pod, running_status(pod, known.started_at, known.address, containers, now))

    async def _write(self, pod: Json, status: Json) -> None:
        if status != pod.get("status"):
            target = self._context.target("pods", *key_of(pod), "status")
            await self._context.api.update(target, {**pod, "status": status}, _KUBELET)

    def _known(self, pod: Json) -> _Pod:
        uid, key, address = pod["metadata"]["uid"], key_of(pod), status_of(pod).get("podIP", "")
        known = self._pods.get(uid)
        if known is None:
            due = asyncio.get_running_loop().time() + (0.0 if address else self.ready_after_s or 0.0)
            known = self._pods[uid] = _Pod(key, self._context.now(), due, address)
            command = memcached.command_of(pod) if self._program is not None else None
            if command is not None and self._program is not None:
                port, known.address = command.port, ""
                known.process = memcached.Process(
                    self._program,
                    command,
                    pod,
                    addresses=lambda: memcached.free_address(port, self._is_taken, self._chance),
                    now=self._context.now,
                    changed=lambda: self.controller.add(key),
                )
        return known

    def _is_taken(self, address: str) -> bool:
        return any(each.address == address for each in self._pods.values())

    def _end(self, pod: Json) -> None:
        """Begin to end a pod, beside the others."""
        uid = pod["metadata"]["uid"]
        known = self._pods.get(uid)
        if uid in self._endings:
            return
        self._finish(uid, self._gone(pod, known))

    async def _gone(self, pod: Json, known: _Pod | None) -> None:
        """Wait for its process to end, show that it has, and then take it away for good."""
        meta = pod["metadata"]
        if known is not None and known.process is not None:
            await known.process.stop(meta.get("deletionGracePeriodSeconds", 0))
        if known is not None:
            await self._show_end(known, meta["uid"])
        options = DeleteOptions(uid=meta["uid"], grace_period_s=0)
        try:
            await self._context.api.delete(self._context.target("pods", *key_of(pod)), options)
        except ApiError as error:
            if error.code not in (404, 409):  # somebody was faster, or it is another pod by now
                self.controller.add_after(key_of(pod), _RETRY_S)

    async def _show_end(self, known: _Pod, uid: str) -> None:
        """A pod that is deleted ends as any other: it is not ready any more, and a finalizer may keep it so."""
        pod = self._context.store.get("pods", *known.key)
        if pod is None or pod["metadata"]["uid"] != uid or is_finished(pod):
            return
        now, containers, process = self._context.now(), known.containers(pod), known.process
        for name, found in containers.items():
            real = process is not None and process.command.container == name
            end = End(process.exit_code if process and real else 0, found.running_since or known.started_at, now)
            containers[name] = Container(restarts=found.restarts, last_end=end, finished=True)
        with contextlib.suppress(ApiError):  # refused: it goes all the same
            await self._write(pod, running_status(pod, known.started_at, known.address, containers, now))

    def _forget(self, pod: Json) -> None:
        """A pod that is gone, maybe by force: its process ends at once."""
        uid = pod["metadata"]["uid"]
        known = self._pods.pop(uid, None)
        if known is not None and known.process is not None and uid not in self._endings:
            self._finish(uid, known.process.stop(_LAST_GRACE_S))

    def _finish(self, uid: str, ending: Coroutine[None, None, None]) -> None:
        task = self._endings[uid] = asyncio.create_task(ending, name=f"end of pod {uid}")
        task.add_done_callback(lambda _task: self._endings.pop(uid, None))
