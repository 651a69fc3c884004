"""Clusters for the demo: an API server with pods that become ready, and the operator beside them."""

from __future__ import annotations

import asyncio
import io
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, cast

from memcached_operator.about import PROGRAM
from memcached_operator.operator import set_up
from memcached_operator.settings import Settings
from memcached_operator.settings_schema import SCHEMA
from operator_runtime import Operator, serve
from operator_runtime.client.access.auth import load_access
from operator_runtime.client.api_client import ApiClient
from operator_runtime.process import logs

_USER_AGENT = "memcached-operator-demo/1"
READY_AFTER_S = 0.4
# The operator drains its workers within seconds where the API server answers.
_DRAIN_S, _END_DEADLINE_S = 5.0, 15.0


class NoClusterError(Exception):
    """Failure to set up the demo here; the message has what is missing and the remedy."""


@dataclass(frozen=True, slots=True)
class DemoCluster:
    """An API server that runs."""

    server: str
    kubeconfig: Path
    what: str
    """What it is, in a few words for people."""
    real_pods: bool
    """Whether there is a memcached behind each pod's address."""
    pods: str
    """What the pods are, in a few words for people."""
    kind_installed: Callable[[], Awaitable[None]]
    """To be called when the CRD is served."""


@asynccontextmanager
async def simulated(*, memcached: bool = True) -> AsyncIterator[DemoCluster]:
    """The simulator in this process, with real memcached processes where there is such a program.

    Raises:
        NoClusterError: the extra `demo` is not installed.
    """
    try:
        from kube_simulator import Options, Simulator
        from kube_simulator.controllers.memcached import find_program
    except ImportError as error:
        raise NoClusterError(
            f"the simulator needs {error.name}, which is not installed: pip install 'memcached-operator[demo]'"
        ) from error
    real_pods = memcached and find_program() is not None
    why_simulated = "memcached is not on the PATH" if memcached else "by --no-memcached"
    options = Options(pods_ready_after_s=READY_AFTER_S, memcached="auto" if real_pods else False)
    async with AsyncExitStack() as ends:
        try:
            simulator = await ends.enter_async_context(Simulator(options))
        except OSError as error:
            raise NoClusterError(str(error)) from error
        yield DemoCluster(
            server=simulator.server,
            kubeconfig=simulator.kubeconfig_path,
            what="a simulated Kubernetes API in this process",
            real_pods=real_pods,
            pods="real memcached processes on loopback addresses"
            if real_pods
            else f"simulated ({why_simulated}), so that no keys are stored in them",
            kind_installed=_nothing_to_do,
        )


async def _nothing_to_do() -> None:
    pass


def client_of(kubeconfig: Path) -> ApiClient:
    access = load_access(kubeconfig=str(kubeconfig), environ=os.environ)
    return ApiClient(access, user_agent=_USER_AGENT)


class RunningOperator(io.TextIOBase):
    """The operator beside the demo, until its `end`, and the stream that its log goes to, a line of JSON each."""

    def __init__(self, kubeconfig: Path, on_log_line: Callable[[str, str], None], *, real_pods: bool) -> None:
        """
        Args:
            kubeconfig: of the API server.
            on_log_line: called with level and text of each line of the log.
            real_pods: there is a memcached behind each pod's address; else the operator queries none, as they are
                others'.
        """
        self._on_log_line = on_log_line
        self._in_sync = asyncio.Event()
        self._stop = asyncio.Event()
        self.last_words = ""
        self.writes: Mapping[tuple[str, str], int] = {}
        """How many went well, by resource and verb: the operator's own count."""
        logs.configure(
            log_format="json", level="info", own_packages=("memcached_operator",), stream=cast("TextIO", self)
        )
        given: dict[str, object] = {"kubeconfig": str(kubeconfig), "shutdown_timeout_s": _DRAIN_S}
        given |= {"health_probe_bind_address": "0", "metrics_bind_address": "0"}  # unused, and the ports may be taken
        given |= {} if real_pods else {"server_stats_interval_s": 0.0}
        # What variables set is for another cluster.
        settings = SCHEMA.load(given, environ={})

        def counted_set_up(operator: Operator, settings: Settings) -> None:
            self.writes = operator.api.writes
            set_up(operator, settings)

        self.ended = asyncio.create_task(serve(settings, PROGRAM, counted_set_up, stop=self._stop))
        """Done when it has ended."""

    async def end(self) -> None:
        """End it as Kubernetes does."""
        self._stop.set()
        await asyncio.wait((self.ended,), timeout=_END_DEADLINE_S)
        self.ended.cancel()
        await asyncio.wait((self.ended,))

    async def in_sync(self, deadline_s: float) -> bool:
        """Wait until its caches are in sync, and report whether they are."""
        synced = asyncio.create_task(self._in_sync.wait())
        await asyncio.wait((synced, self.ended), timeout=deadline_s, return_when=asyncio.FIRST_COMPLETED)
        synced.cancel()
        return self._in_sync.is_set()

    def write(self, line: str, /) -> int:
        record = json.loads(line)
        if "caches are in sync" in record["message"]:
            self._in_sync.set()
        about = f"{record['name']}: " if "name" in record else ""
        self.last_words = about + record["message"]
        self._on_log_line(record["level"], self.last_words)
        return len(line)
