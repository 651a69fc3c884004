"""One run: one operator on one fresh control plane, from an empty cluster to restarts with everything there.

The phases, each bounded in time: start and rest; the load and rest; sequential changes of size; a restart with nothing
to do; a restart with one change waiting. A phase that fails says so, and leaves out its figures and those after it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import aiohttp
import msgspec
import uvloop

from benchmarks import bystander, reconciles, requests
from benchmarks.endpoint import Endpoint, memcached_name, resize
from benchmarks.figures import Run, percentile
from benchmarks.ground import account_dir, operator_requests, prepared_control_plane
from benchmarks.load import Load
from benchmarks.observer import Goal, Observer, WatchFailed
from benchmarks.operators import Command
from benchmarks.process import OperatorDied, OperatorProcess, ServersTime, rests
from lab.audit import START, Mark
from lab.control_plane import ControlPlane

_ROOT = Path(__file__).resolve().parent.parent
_WATCHED = {"memcacheds", "deployments", "pods"}

_START_DEADLINE_S = 120.0
_CHANGE_DEADLINE_S = 30.0
_RESTART_DEADLINE_S = 180.0
# Several times what a slow operator takes on two cores.
_LOAD_DEADLINE_S, _LOAD_DEADLINE_PER_MEMCACHED_S, _LOAD_DEADLINE_PER_POD_S = 120.0, 0.05, 0.05
# Tens of thousands of objects keep the API server busy with itself for a while: caches, compaction of etcd.
_CONTROL_PLANE_REST_DEADLINE_S = 300.0
# Lets a change's echoes (ReplicaSet, Deployment's status, operator's status) pass before the next one is timed.
_BETWEEN_CHANGES_S = 0.1
_POLL_S = 0.1
# Leases, probes and the rest of an idle control plane stay below this in the window of `rests`; load is far above.
_CONTROL_PLANE_REST_CPU_S = 0.15


class PhaseFailed(Exception):
    """A phase did not end in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much to do: Memcacheds of a size made by so many writers at once, then so many changes of size.

    Attributes:
        extras: each has a Service and a disruption budget, as by default; else neither.
    """

    count: int
    size: int
    writers: int
    changes: int
    extras: bool = False

    @property
    def load_deadline_s(self) -> float:
        """How long the load may take."""
        per_memcached_s = _LOAD_DEADLINE_PER_MEMCACHED_S + self.size * _LOAD_DEADLINE_PER_POD_S
        return _LOAD_DEADLINE_S + self.count * per_memcached_s


def measure(
    plan: Plan, name: str, round_number: int, command: Callable[[Path], Command], say: Callable[[str], None]
) -> Run:
    """Measure one operator on a control plane of its own.

    Args:
        plan: how much to do.
        name: the operator's name, for the record.
        round_number: for the record.
        command: how to start the operator, given the folder of its service account.
        say: called with a line about each phase.
    """
    with prepared_control_plane() as control_plane:
        scenario = _Scenario(plan, control_plane, partial(command, account_dir(control_plane)), say)
        uvloop.run(scenario.run())
    return Run(
        operator=name, round=round_number, figures=scenario.figures, requests=scenario.requests, notes=scenario.notes
    )


@dataclass(slots=True)
class _Scenario:
    plan: Plan
    control_plane: ControlPlane
    # Asked at each start: a port that was free for one operator may be somebody's when the next one comes.
    command: Callable[[], Command]
    say: Callable[[str], None]
    figures: dict[str, float | None] = field(default_factory=dict)
    requests: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    metrics_url: str | None = None

    async def run(self) -> None:
        """All phases; what fails becomes a note."""
        endpoint = self._endpoint("benchmark", ["system:masters"])
        try:
            async with endpoint.session(connections=4) as session, asyncio.TaskGroup() as group:
                observer = Observer(session)
                watches = group.create_task(observer.watch(await observer.versions()))
                await self._phases(endpoint, session, observer)
                watches.cancel()
        except* (PhaseFailed, OperatorDied, WatchFailed, bystander.BystanderFailed, aiohttp.ClientError) as failures:
            self.notes += [str(failure) or repr(failure) for failure in _leaves(failures)]

    async def _phases(self, endpoint: Endpoint, session: aiohttp.ClientSession, observer: Observer) -> None:
        async with self._operator() as operator:
            await self._ready(operator, START, _START_DEADLINE_S)
            idle_rss_mib, _ = operator.rss_mib()
            self.figures["rss_idle_mib"] = idle_rss_mib
            await self._load(endpoint, observer, operator, idle_rss_mib)
            # Its controllers are at work for some time after the load; what a change takes is not to depend on that.
            await self._control_plane_rests()
            await self._changes(session, observer)
        await self._control_plane_rests()
        await self._restart()
        await self._restart_with_a_change_waiting(session, observer)

    async def _load(
        self, endpoint: Endpoint, observer: Observer, operator: OperatorProcess, idle_rss_mib: float
    ) -> None:
        plan = self.plan
        self.say(f"load: {plan.count} Memcacheds")
        mark, cpu_before_s = self.control_plane.audit_mark(), operator.cpu_s
        made, complete = Goal(plan.count, plan.size), Goal(plan.count, plan.size)
        observer.replicas, observer.nodes = [made], [complete]
        load = Load(endpoint=endpoint, count=plan.count, size=plan.size, writers=plan.writers, extras=plan.extras)
        async with _within("the load", plan.load_deadline_s):
            async with bystander.alongside(self._endpoint(bystander.USER)) as watched:
                # After the bystander's start, which takes CPU from everybody.
                servers_before = ServersTime.now(self.control_plane)
                first_sent_s = await _generate(load)
                self.figures["deployments_made_s"] = await made.wait() - first_sent_s
                self.figures["status_complete_s"] = await complete.wait() - first_sent_s
            await operator.rests()
        # The end of the rest, not of the last status: late, needless work counts as well.
        load_cpu_s = operator.cpu_s - cpu_before_s
        self.figures["load_cpu_s"] = load_cpu_s
        self.figures["load_cpu_per_memcached_ms"] = load_cpu_s * 1000 / plan.count
        rss_mib, self.figures["rss_peak_mib"] = operator.rss_mib()
        self.figures["rss_after_mib"] = rss_mib
        self.figures["rss_per_memcached_kib"] = (rss_mib - idle_rss_mib) * 1024 / plan.count
        events = operator_requests(self.control_plane, mark)
        self.requests.update(requests.count(events))
        self.figures["creates_per_memcached"] = requests.creates(events) / plan.count
        self.figures["status_writes_per_memcached"] = requests.status_writes(events) / plan.count
        await self._count_reconciles()
        # What the controllers still have to write comes of the operator's writes, too.
        await self._control_plane_rests()
        servers = ServersTime.now(self.control_plane) - servers_before
        self.figures["load_apiserver_cpu_s"] = servers.apiserver_s
        self.figures["load_etcd_cpu_s"] = servers.etcd_s
        self.figures["load_servers_cpu_per_memcached_ms"] = servers.both_s * 1000 / plan.count
        for name, values in (("get", watched.waits.get_ms), ("create", watched.waits.create_ms)):
            self._percentiles(f"bystander_{name}", values)

    async def _count_reconciles(self) -> None:
        """Those since the start. Before the load there was nothing to reconcile."""
        if self.metrics_url is None:
            return
        try:
            counted = await reconciles.total_of(self.metrics_url)
        except reconciles.NotCounted as error:
            self.notes.append(str(error))
        else:
            self.figures["reconciles_per_memcached"] = counted / self.plan.count

    async def _changes(self, session: aiohttp.ClientSession, observer: Observer) -> None:
        self.say(f"{self.plan.changes} changes of size")
        to_deployment_ms, to_nodes_ms = [], []
        for index in range(self.plan.changes):
            # One up in the first pass over the Memcacheds, back in the second, and so on.
            turn, number = divmod(index, self.plan.count)
            name, size = memcached_name(number), self.plan.size + 1 - turn % 2
            changed, complete = Goal(1, size, only=name), Goal(1, size, only=name)
            observer.replicas, observer.nodes = [changed], [complete]
            async with _within(f"the change of {name} to size {size}", _CHANGE_DEADLINE_S):
                sent_s = time.monotonic()
                await resize(session, name, size)
                to_deployment_ms.append((await changed.wait() - sent_s) * 1000)
                to_nodes_ms.append((await complete.wait() - sent_s) * 1000)
            await asyncio.sleep(_BETWEEN_CHANGES_S)
        for name, values in (("change_to_deployment", to_deployment_ms), ("change_to_nodes", to_nodes_ms)):
            self._percentiles(name, values)

    async def _restart(self) -> None:
        self.say("restart with nothing to do")
        mark, servers_before = self.control_plane.audit_mark(), ServersTime.now(self.control_plane)
        async with self._operator() as operator:
            rested_s = await self._ready(operator, mark, _RESTART_DEADLINE_S)
            self.figures["restart_settled_s"] = rested_s - operator.started_s
            self.figures["restart_cpu_s"] = operator.cpu_s
            self.figures["restart_servers_cpu_s"] = (ServersTime.now(self.control_plane) - servers_before).both_s
            self.figures["restart_rss_mib"], self.figures["restart_rss_peak_mib"] = operator.rss_mib()
            self.figures["restart_writes"] = requests.writes(operator_requests(self.control_plane, mark))

    async def _restart_with_a_change_waiting(self, session: aiohttp.ClientSession, observer: Observer) -> None:
        self.say("restart with a change waiting")
        # The last one is far back in every list; its size differs from both that the changes left.
        name, size = memcached_name(self.plan.count - 1), self.plan.size + 2
        changed = Goal(1, size, only=name)
        observer.replicas = [changed]
        await resize(session, name, size)
        async with self._operator() as operator, _within("the first write after a restart", _RESTART_DEADLINE_S):
            self.figures["restart_to_first_write_s"] = await changed.wait() - operator.started_s

    async def _ready(self, operator: OperatorProcess, mark: Mark, deadline_s: float) -> float:
        """Wait until the operator watches and rests; returns when the rest began, on the monotonic clock."""
        async with _within("the start", deadline_s):
            while not requests.watched(operator_requests(self.control_plane, mark)) >= _WATCHED:  # noqa: ASYNC110 - a file tells
                await asyncio.sleep(_POLL_S)
            return await operator.rests()

    def _percentiles(self, name: str, values_ms: Sequence[float]) -> None:
        for percent in (50, 99):
            self.figures[f"{name}_p{percent}_ms"] = percentile(values_ms, percent)

    def _endpoint(self, user: str, groups: Sequence[str] = ()) -> Endpoint:
        return Endpoint.from_kubeconfig(self.control_plane.user_kubeconfig(user, groups), self.control_plane.ca_path)

    async def _control_plane_rests(self) -> None:
        async with _within("the API server's coming to rest", _CONTROL_PLANE_REST_DEADLINE_S):
            await rests(lambda: ServersTime.now(self.control_plane).apiserver_s, _CONTROL_PLANE_REST_CPU_S)

    @asynccontextmanager
    async def _operator(self) -> AsyncIterator[OperatorProcess]:
        """The operator for as long as the block runs; its end before that cancels the block."""
        command = self.command()
        self.metrics_url = command.metrics_url
        base = {"PATH": os.defpath, "HOME": str(self.control_plane.directory)}
        environment = base | self.control_plane.in_cluster_environment | dict(command.environment)
        log = self.control_plane.directory / "operator.log"
        operator = OperatorProcess(command.arguments, environment, log)
        try:
            async with asyncio.TaskGroup() as group:
                watchdog = group.create_task(operator.died())
                yield operator
                watchdog.cancel()
            await operator.stop()
        finally:
            operator.kill()


async def _generate(load: Load) -> float:
    """When the first create was sent, once all were answered."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.load", msgspec.json.encode(load).decode()),
        cwd=_ROOT,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise PhaseFailed(f"the load generator ended with code {process.returncode}, see above")
    return float(output)


@asynccontextmanager
async def _within(phase: str, deadline_s: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(deadline_s):
            yield
    except TimeoutError:
        raise PhaseFailed(f"{phase} took longer than {deadline_s:.0f} s") from None


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
