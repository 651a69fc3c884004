"""The simulator as a cluster for tests: on a thread of its own, with the real kubectl."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import uvloop

from lab import audit, kubectl
from lab.programs import kubernetes
from memcached_operator.simulator import Options, Simulator
from tests.cluster import Cluster

T = TypeVar("T")

# Far above what anything here takes.
_CALL_DEADLINE_S = 60.0


class SimulatedCluster:
    """One simulator with pods that stay Pending, as on a control plane without nodes; a context manager.

    ``tests.cluster.Cluster`` says what each part does. Not thread-safe, and blocking.

    Raises:
        BuildError: from the constructor, when there is no kubectl and none can be built.
    """

    def __init__(self, *, streaming_lists: bool = True) -> None:
        self._kubectl = kubernetes.kubectl_path()
        self._options = Options(
            pods_ready_after_s=None,
            memcached=False,
            streaming_lists=streaming_lists,
            owner_references_permission_enforcement=True,
        )
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="simulator", daemon=True)
        self.simulator: Simulator
        self.server: str
        self.ca_path: Path
        self.kubeconfig_path: Path

    def __enter__(self) -> Self:
        self._thread.start()
        self.simulator = self.run(self._begin())
        self.server = self.simulator.server
        self.ca_path = self.simulator.ca_path
        self.kubeconfig_path = self.simulator.kubeconfig_path
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # Whoever is still connected would keep its connection open for longer than the loop lives.
            self.run(self.simulator.kill_apiserver())
            self.run(self.simulator.__aexit__(kind, error, trace))
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CALL_DEADLINE_S)
            self._loop.close()

    async def _begin(self) -> Simulator:
        return await Simulator(self._options).__aenter__()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What a coroutine gives that runs on the simulator's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_CALL_DEADLINE_S)

    def call(self, function: Callable[[], T]) -> T:
        """What a function gives that is called on the simulator's loop, such as those of its faults."""

        async def called() -> T:
            return function()

        return self.run(called())

    def kubectl(
        self, *arguments: str, input: str | None = None, check: bool = True, kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the real kubectl, as the administrator or as the user of another kubeconfig.

        Raises:
            LabError: it failed, and ``check`` is true.
        """
        return kubectl.run(
            self._kubectl,
            *arguments,
            kubeconfig=kubeconfig or self.kubeconfig_path,
            home=self.simulator.directory,
            input=input,
            check=check,
        )

    def user_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        return self.simulator.user_kubeconfig(user, groups)

    def service_account_dir(self, namespace: str, name: str, *, duration_s: int = 3600) -> Path:
        return self.run(self.simulator.service_account_dir(namespace, name, duration_s=duration_s))

    @property
    def in_cluster_environment(self) -> dict[str, str]:
        return self.simulator.in_cluster_environment

    def audit_mark(self) -> int:
        return self.simulator.audit_log.stat().st_size

    def audit_events(
        self, *, since: int = 0, user: str | None = None, user_agent: str | None = None
    ) -> list[audit.AuditEvent]:
        return [
            event
            for event in audit.read(self.simulator.audit_log, since)
            if (user is None or event.user == user) and (user_agent is None or event.user_agent.startswith(user_agent))
        ]

    def stop_apiserver(self, *, wait: bool = True) -> None:
        self.run(self.simulator.stop_apiserver())

    def kill_apiserver(self) -> None:
        self.run(self.simulator.kill_apiserver())

    def start_apiserver(self, *, wait: bool = True) -> None:
        self.run(self.simulator.start_apiserver())

    def restart_apiserver(self) -> None:
        self.kill_apiserver()
        self.start_apiserver()

    @contextlib.contextmanager
    def hanging_apiserver(self) -> Iterator[None]:
        """Until the end of the block the simulator's thread does nothing, as a process after SIGSTOP."""
        stopped, resume = threading.Event(), threading.Event()

        def hang() -> None:
            stopped.set()
            resume.wait()

        self._loop.call_soon_threadsafe(hang)
        assert stopped.wait(_CALL_DEADLINE_S)
        try:
            yield
        finally:
            resume.set()

    def stop_controller_manager(self) -> None:
        self.run(self.simulator.stop_controller_manager())

    def start_controller_manager(self) -> None:
        self.run(self.simulator.start_controller_manager())

    @contextlib.contextmanager
    def another(self, *, streaming_lists: bool) -> Iterator[Cluster]:
        """A second simulator with a state of its own."""
        with SimulatedCluster(streaming_lists=streaming_lists) as other:
            yield other
