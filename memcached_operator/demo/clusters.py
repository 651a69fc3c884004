"""Clusters for the demo: an API server with pods that become ready, and the operator as a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from operator_runtime.client.access.auth import load_access
from operator_runtime.client.api_client import ApiClient

_USER_AGENT = "memcached-operator-demo/1"
READY_AFTER_S = 0.4
# The operator drains its workers within seconds where the API server answers.
_END_DEADLINE_S = 15.0
# Becomes its arguments after the first, a program that the kernel kills when this process has died, be it by SIGKILL;
# Linux alone can do that. The parent may be gone before the request to the kernel: hence the check afterwards. 1 is
# PR_SET_PDEATHSIG.
_LAUNCHER = """
import ctypes, os, signal, sys
parent, *command = sys.argv[1:]
if sys.platform.startswith("linux"):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(parent):
    os.execv(command[0], command)
"""


class NoClusterError(Exception):
    """Failure to set up the demo here; the message has what is missing and the remedy."""


@dataclass(frozen=True, slots=True)
class DemoCluster:
    """An API server that runs."""

    server: str
    kubeconfig: Path
    audit_log: Path
    """A JSON line for each request, in the shape of Kubernetes' audit log."""
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
            audit_log=simulator.audit_log,
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


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the operator's log."""

    level: str
    text: str


class OperatorProcess:
    """`python -m memcached_operator run`, with its log read line by line."""

    def __init__(self, process: asyncio.subprocess.Process, on_log_line: Callable[[LogLine], None]) -> None:
        self._process = process
        self._on_log_line = on_log_line
        self._in_sync = asyncio.Event()
        self.last_words = ""
        self.ended = asyncio.create_task(self._read())
        """Done when it has ended and its log is read; its exit code."""

    @property
    def pid(self) -> int:
        return self._process.pid

    async def in_sync(self, deadline_s: float) -> bool:
        synced = asyncio.create_task(self._in_sync.wait())
        await asyncio.wait((synced, self.ended), timeout=deadline_s, return_when=asyncio.FIRST_COMPLETED)
        synced.cancel()
        return self._in_sync.is_set()

    async def stop(self) -> int:
        """End it as Kubernetes does; its exit code."""
        if self._process.returncode is None:
            self._process.terminate()
        try:
            async with asyncio.timeout(_END_DEADLINE_S):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
        return await self.ended

    async def _read(self) -> int:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self._on_log_line(self._parsed(line.decode(errors="replace").rstrip()))
        return await self._process.wait()

    def _parsed(self, line: str) -> LogLine:
        try:
            record = json.loads(line)
        except ValueError:
            self.last_words = line
            return LogLine("error", line)
        if "caches are in sync" in record.get("message", ""):
            self._in_sync.set()
        about = f"{record['name']}: " if "name" in record else ""
        self.last_words = about + record.get("message", line)
        return LogLine(record.get("level", "info").lower(), self.last_words)


def _without_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of an operator with default settings: what is set for another cluster does not count here."""
    from memcached_operator.settings_schema import SCHEMA

    settings = {option.variable for option in SCHEMA.options}
    return {name: value for name, value in environ.items() if name not in settings}


@asynccontextmanager
async def operator(
    kubeconfig: Path, on_log_line: Callable[[LogLine], None], *, real_pods: bool
) -> AsyncIterator[OperatorProcess]:
    """The operator, until the block ends or this process does; `on_log_line` is called with each line of its log.

    Args:
        real_pods: there is a memcached behind each pod's address; else the operator queries none, as they are others'.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-S", "-c", _LAUNCHER, str(os.getpid())),
        *(sys.executable, "-m", "memcached_operator"),
        *("run", "--kubeconfig", str(kubeconfig), "--log-format", "json"),
        *("--health-probe-bind-address=0", "--metrics-bind-address=0"),  # unused, and the ports may be taken
        *(() if real_pods else ("--server-stats-interval-s=0",)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=_without_settings(os.environ),
        start_new_session=True,  # a Ctrl-C is the demo's: it ends the operator once its own output is complete
    )
    running = OperatorProcess(process, on_log_line)
    try:
        yield running
    finally:
        await running.stop()
