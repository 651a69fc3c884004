"""The scheduler's and the kubelet's part: pods are bound to the one node, run, become ready, and end.

Without nodes (`ready_after_s` is None) pods stay Pending, as on a control plane that has none. With them a pod is bound
at once, and after this time it runs and is ready. One whose container runs memcached becomes a real process where
that can be had.

Differs from Kubernetes: there is one node, it takes every pod, and it is no Node object; images are always there; init
containers, probes, hooks, resources, gates and pods made by hand for other nodes are not looked at.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv4Address, IPv4Network

from kube_simulator.access.identities import MASTERS
from kube_simulator.controllers import memcached
from kube_simulator.controllers.controller import Context, Controller, Key, key_of
from kube_simulator.controllers.event_recorder import Recorder
from kube_simulator.controllers.object_fields import is_deleting, is_finished
from kube_simulator.controllers.pod_status import NODE, Container, End, Running, bound, status_of
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import Caller, DeleteOptions, User
from kube_simulator.store.store import Change
from kube_simulator.values import Json

_NODE_USER = User(f"system:node:{NODE}", frozenset({"system:nodes", "system:authenticated", MASTERS}))
_KUBELET = Caller(_NODE_USER, "kubelet")
_SCHEDULER = "default-scheduler"
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
    running_since: datetime | None = None
    restarts: int = 0
    last_end: End | None = None
    """Of containers that are no processes."""
    recorded: set[tuple[str, int]] = field(default_factory=set)
    """Which events were said already: reason and restart."""


class Kubelet:
    """The one node; goes on while the controller-manager is stopped."""

    def __init__(
        self,
        context: Context,
        recorder: Recorder,
        *,
        ready_after_s: float | None = None,
        program: str | None = None,
        chance: random.Random,
        back_off_s: float = memcached.FIRST_BACK_OFF_S,
    ) -> None:
        """
        Args:
            ready_after_s: see `ready_after_s`.
            program: the memcached to start; None: memcached is simulated as everything else.
            back_off_s: how long a memcached that ends again and again waits at first.
        """
        self._context = context
        self._recorder = recorder
        self._ready_after_s = ready_after_s
        self._program = program
        self._chance = chance
        self._back_off_s = back_off_s
        self._pods: dict[str, _Pod] = {}
        self._endings: dict[str, asyncio.Task[None]] = {}
        self._next_address = 0
        self.controller: Controller[Key] = Controller("kubelet", self._reconcile, workers=1)
        self.controller.watch(context.store, "pods", self._keys_of_pod)

    @property
    def ready_after_s(self) -> float | None:
        """Time that a pod takes from its binding until it is ready; None: there are no nodes."""
        return self._ready_after_s

    @ready_after_s.setter
    def ready_after_s(self, value: float | None) -> None:
        """Pods that wait for a node get one; those that run already go on."""
        self._ready_after_s = value
        for found in self._context.store.list("pods"):
            self.controller.add(key_of(found))

    def start(self) -> None:
        """Take care of all pods; those that run already go on, memcached as new processes."""
        self.controller.start()

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
        if known is None or (known.process is None and known.running_since is None):
            raise KeyError(name)
        now = self._context.now()
        if known.running_since is not None:
            known.last_end = memcached.ended(-signal.SIGKILL, known.running_since, now)
            known.restarts += 1
            known.running_since = now
        if known.process is not None:
            known.process.crash()
        self.controller.add(known.key)

    def _keys_of_pod(self, change: Change) -> Iterable[Key]:
        if change.type == "DELETED":
            self._forget(change.object)
            return ()
        pod = change.object
        if self._ready_after_s is None and not pod["spec"].get("nodeName"):
            return ()
        return (key_of(pod),)

    async def _reconcile(self, key: Key) -> None:
        pod = self._context.store.get("pods", *key)
        if pod is None or (is_finished(pod) and not is_deleting(pod)):
            return
        node = pod["spec"].get("nodeName")
        if not node:
            if self._ready_after_s is None or is_deleting(pod):
                return
            pod = self._bind(pod)
        elif node != NODE:
            return
        if is_deleting(pod):
            self._end(pod)
        else:
            await self._run(pod)

    def _bind(self, pod: Json) -> Json:
        """Bind a pod, which is no write of it: no admission, no field manager."""
        found = self._context.store.put("pods", bound(pod, self._context.now()))
        namespace, name = key_of(pod)
        message = f"Successfully assigned {namespace}/{name} to {NODE}"
        self._recorder.record(pod, "Normal", "Scheduled", message, _SCHEDULER)
        return found

    async def _run(self, pod: Json) -> None:
        known = self._known(pod)
        wait_s = known.due - asyncio.get_running_loop().time()
        containers = {each["name"]: self._container(known, each["name"], wait_s) for each in pod["spec"]["containers"]}
        if known.process is not None:
            known.address = known.process.address
        elif wait_s <= 0 and not known.address:
            known.address = self._address()
        self._record(pod, known, containers)
        status = status_of(pod, Running(known.started_at, known.address, containers), self._context.now())
        if status != pod.get("status"):
            target = self._context.target("pods", *known.key, "status")
            await self._context.api.update(target, {**pod, "status": status}, _KUBELET)
        if wait_s > 0:
            self.controller.add_after(known.key, wait_s)

    def _known(self, pod: Json) -> _Pod:
        uid = pod["metadata"]["uid"]
        known = self._pods.get(uid)
        if known is None:
            status = pod.get("status", {})
            ran = bool(status.get("podIP"))
            due = asyncio.get_running_loop().time() + (0.0 if ran else self._ready_after_s or 0.0)
            known = self._pods[uid] = _Pod(key_of(pod), self._context.now(), due)
            command = memcached.command_of(pod) if self._program is not None else None
            if command is None:
                known.address = status.get("podIP", "")
            elif self._program is not None:
                known.process = self._start(pod, self._program, command, known.key)
        return known

    def _start(self, pod: Json, program: str, command: memcached.Command, key: Key) -> memcached.Process:
        return memcached.Process(
            program,
            command,
            pod,
            addresses=lambda: memcached.free_address(command.port, self._is_taken, self._chance),
            now=self._context.now,
            changed=lambda: self.controller.add(key),
            back_off_s=self._back_off_s,
        )

    def _container(self, known: _Pod, name: str, wait_s: float) -> Container:
        """Return the state of a container: memcached's is its process's, and all others' follow from the time."""
        process = known.process
        if process is not None and process.command.container == name:
            found = process.container
            if wait_s > 0 and found.ready:
                return Container(found.running_since, False, restarts=found.restarts, last_end=found.last_end)
            return found
        if wait_s > 0:
            return Container()
        known.running_since = known.running_since or self._context.now()
        return Container(known.running_since, ready=True, restarts=known.restarts, last_end=known.last_end)

    def _record(self, pod: Json, known: _Pod, containers: dict[str, Container]) -> None:
        """Record in events what has happened since."""
        named = f"{known.key[1]}_{known.key[0]}({pod['metadata']['uid']})"
        for each in pod["spec"]["containers"]:
            name, found = each["name"], containers[each["name"]]
            if found.running_since is not None and self._first(known, f"started {name}", found.restarts):
                self._recorder.record(pod, "Normal", "Started", "Container started", "kubelet")
            elif found.message and self._first(known, f"backing off {name}", found.restarts):
                message = f"Back-off restarting failed container {name} in pod {named}"
                self._recorder.record(pod, "Warning", "BackOff", message, "kubelet")

    def _first(self, known: _Pod, what: str, number: int) -> bool:
        if (what, number) in known.recorded:
            return False
        known.recorded.add((what, number))
        return True

    def _end(self, pod: Json) -> None:
        """Begin to end a pod, beside the others."""
        uid = pod["metadata"]["uid"]
        if uid in self._endings:
            return
        known = self._pods.get(uid)
        for each in pod["spec"]["containers"] if known is not None and not is_finished(pod) else ():
            self._recorder.record(pod, "Normal", "Killing", f"Stopping container {each['name']}", "kubelet")
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
        now = self._context.now()
        containers = {}
        for each in pod["spec"]["containers"]:
            process, code, restarts = known.process, 0, known.restarts
            if process is not None and process.command.container == each["name"]:
                code, restarts = process.exit_code, process.container.restarts
            end = memcached.ended(code, known.running_since or known.started_at, now)
            containers[each["name"]] = Container(restarts=restarts, last_end=end, finished=True)
        status = status_of(pod, Running(known.started_at, known.address, containers), now)
        with contextlib.suppress(ApiError):  # refused: it goes all the same
            target = self._context.target("pods", *known.key, "status")
            await self._context.api.update(target, {**pod, "status": status}, _KUBELET)

    def _forget(self, pod: Json) -> None:
        """A pod that is gone, maybe by force: its process ends at once."""
        uid = pod["metadata"]["uid"]
        known = self._pods.pop(uid, None)
        if known is not None and known.process is not None and uid not in self._endings:
            self._finish(uid, known.process.stop(_LAST_GRACE_S))

    def _finish(self, uid: str, ending: Coroutine[None, None, None]) -> None:
        task = self._endings[uid] = asyncio.create_task(ending, name=f"end of pod {uid}")
        task.add_done_callback(lambda _task: self._endings.pop(uid, None))

    def _is_taken(self, address: str) -> bool:
        return any(each.address == address for each in self._pods.values())

    def _address(self) -> str:
        """The next address that no pod has; for show, as nobody listens there."""
        taken = {each.address for each in self._pods.values()} if self._next_address >= _ADDRESSES.num_addresses else ()
        while True:
            self._next_address += 1
            number = self._next_address % (_ADDRESSES.num_addresses - 2) + 1
            address = str(IPv4Address(int(_ADDRESSES.network_address) + number))
            if address not in taken:
                return address
