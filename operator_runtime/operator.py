"""One running operator: its client, caches, controllers, servers and election, from settings and a set-up function.

    def set_up(operator: Operator, settings: RuntimeSettings) -> None:
        reconciler = ShellReconciler(operator.client, operator.informer(SHELLS))
        operator.controller("myownshell", SHELLS, reconciler.reconcile).owns(DEPLOYMENTS)

`process.command.run` calls `serve` with it; a test calls `serve`, or `Operator` alone, itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any, TypeVar, overload

from operator_runtime.cache.own_writes import OwnWrites
from operator_runtime.cache.store import ObjectKey, Store, key_of
from operator_runtime.client.api_client import ApiClient, Propagation
from operator_runtime.client.watch import Record
from operator_runtime.controller.builder import ControllerBuilder
from operator_runtime.controller.client import Client
from operator_runtime.controller.controller import Controller, Reconcile, Result
from operator_runtime.controller.informers import Informers
from operator_runtime.controller.manager import Manager, Service
from operator_runtime.controller.predicates import Predicate, always
from operator_runtime.diagnostics.callback_errors import is_coroutine_function
from operator_runtime.diagnostics.watchdog import EventLoopWatchdog
from operator_runtime.election.elections import election_families, election_of
from operator_runtime.events.recorder import EventRecorder
from operator_runtime.from_settings import cluster_access, watched_namespaces
from operator_runtime.identity import Program
from operator_runtime.objects.kinds import Kind
from operator_runtime.owned.ensure_object import Keeper
from operator_runtime.owned.ensure_rules import Change, Ownable, Rules, record_changes, rules_for_bodies
from operator_runtime.owned.owners import Owner, Owners
from operator_runtime.serving.monitoring import add_sources, served
from operator_runtime.serving.probes import Checks
from operator_runtime.serving.scrape import PATH
from operator_runtime.settings.runtime_settings import RuntimeSettings, S
from operator_runtime.telemetry.metrics import ControllerMetrics, Metrics, loop_metrics
from operator_runtime.workqueue.async_queue import AsyncWorkQueue

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Record)
O = TypeVar("O", bound=Owner)  # noqa: E741 -- for owner
W = TypeVar("W")
P = TypeVar("P", bound=Ownable)


class Operator:
    """The parts of one operator while it is set up. Everything is added before it runs.

    Attributes:
        settings: flags, variables and defaults.
        namespaces: what is watched, () for all namespaces.
        own_namespace: of the pod that this process runs in, "" where it runs in none.
        api: the API server, in bytes; closed by the caller.
        client: the API server, for reconcilers. What they write, their keys wait to see.
        events: records Kubernetes Events.
        metrics: what /metrics shows: the `registry` for prometheus-client's counters, gauges and histograms; `add`
            takes what is read at each scrape.
        checks: of /healthz and /readyz; may be added to.
        urls: where the servers `metrics` and `probes` listen, from when they do, such as `http://127.0.0.1:8080`: for
            tests that have the kernel choose a port.
    """

    def __init__(
        self,
        settings: RuntimeSettings,
        program: Program,
        api: ApiClient,
        *,
        namespaces: tuple[str, ...] = (),
        own_namespace: str = "",
        elected: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self.settings = settings
        self.program = program
        self.api = api
        self.namespaces = namespaces
        self.own_namespace = own_namespace
        self.manager = Manager(elected)
        self.events = EventRecorder(
            api,
            reporting_controller=settings.operator_name,
            reporting_instance=f"{settings.operator_name}-{socket.gethostname()}",
            field_manager=program.name,
        )
        self.checks = Checks()
        self.urls: dict[str, str] = {}
        self.expected_writes: list[tuple[str, str]] = []
        self.metrics = Metrics()
        self.metrics_by_path = {PATH: self.metrics}
        self._controller_metrics = ControllerMetrics(self.metrics)
        self._informers = Informers(
            api,
            self.manager,
            namespaces=namespaces,
            silence_limit_s=settings.watch_silence_limit_s,
        )
        self._builders: list[ControllerBuilder] = []
        self._own_writes: dict[str, OwnWrites] = {}
        self.client = Client(
            api,
            field_manager=program.name,
            own_writes_of=self._own_writes.get,
            stores_of=self._informers.stores_of,
        )
        self._owners: dict[int, Owners[Any]] = {}  # by the identity of a kind
        self.manager.add_service("event recorder", self.events)
        self.manager.add_service("event-loop watchdog", EventLoopWatchdog(loop_metrics(self.metrics)))

    def informer(self, kind: Kind[R], *, labels: str = "", crd_hint: str = "", optional: bool = False) -> Store[R]:
        """The cache of the objects of `kind` that the selectors choose: shared, read without waiting.

        Args:
            kind: one instance used twice has one cache.
            labels: label selector, as in the API's query.
            crd_hint: what to do where the cluster does not know the kind, for the log.
            optional: the cluster may do without the kind, or the operator's account without the right to list it. Then
                nothing waits for the first list any more, the cache is empty, and readiness does not depend on it. When
                the kind is installed or the right is granted, it is filled, and the controllers that watch it reconcile
                everything again.
        """
        return self._informers.store(kind, labels=labels, crd_hint=crd_hint, optional=optional)

    def owners(self, kind: Kind[O]) -> Owners[O]:
        """The objects of `kind` as owners of others: what is remembered of each, and how often is written for it.

        It concerns the controller of that very `kind`.
        """
        if id(kind) not in self._owners:
            self._owners[id(kind)] = Owners(self.client, self.events, kind, self.informer(kind))
        return self._owners[id(kind)]

    @overload
    def owned(
        self,
        owners: Kind[O],
        kind: Kind[P],
        *,
        labels: str = "",
        fixed: tuple[str, ...] = (),
        replace: Propagation | None = None,
        on_change: Callable[[O, Change[P]], None] | None = None,
        optional: bool = False,
    ) -> Keeper[O, Mapping[str, Any], P]: ...
    @overload
    def owned(
        self,
        owners: Kind[O],
        kind: Kind[P],
        *,
        labels: str = "",
        rules: Rules[W, P],
        on_change: Callable[[O, Change[P]], None] | None = None,
        optional: bool = False,
    ) -> Keeper[O, W, P]: ...
    def owned(
        self,
        owners: Kind[O],
        kind: Kind[P],
        *,
        labels: str = "",
        rules: Rules[Any, P] | None = None,
        fixed: tuple[str, ...] = (),
        replace: Propagation | None = None,
        on_change: Callable[[O, Change[P]], None] | None = None,
        optional: bool = False,
    ) -> Keeper[O, Any, P]:
        """Keeps objects of `kind` for those of `owners`, before or after their controller is added.

        Args:
            kind: made by `plain`, or by `typed` with a dict, unless there are rules.
            labels: see `informer`.
            rules: what is compared, and how it is written; None for bodies of dicts, as manifests have them.
            fixed: where there are no `rules`, as in `Rules`; so is `replace`.
            on_change: called with each write that was done; None has a line in the log and an event on the owner.
            optional: of the cache, see `informer`; without it, `Keeper.ensure` raises `Unwatched`.
        """
        store = self.informer(kind, labels=labels, optional=optional)
        return Keeper(
            self.owners(owners),
            kind,
            store,
            rules or rules_for_bodies(self.program.name, kind.resource, fixed=fixed, replace=replace),
            on_change or record_changes(self.events, owners, kind),
            self._informers.refusal_of(store),
        )

    def controller(
        self,
        name: str,
        kind: Kind[R],
        reconcile: Reconcile[ObjectKey],
        *,
        workers: int | None = None,
        when: Predicate[R] = always,
        labels: str = "",
        crd_hint: str = "",
    ) -> ControllerBuilder:
        """Reconcile each object of `kind` when it changes; the builder adds more reasons.

        Args:
            name: in logs and metrics; no two controllers share one, or a ValueError is raised.
            reconcile: `async def reconcile(key: ObjectKey) -> Result`: make the world of one object as it should be.
            workers: reconciles at the same time; None for the setting's.
            when: which changes of an object of `kind` count.
            labels: see `informer`, as `crd_hint`.
        """
        if not is_coroutine_function(reconcile):
            raise TypeError(f"the reconciler of controller {name!r} is not a coroutine function: write `async def`")
        own = OwnWrites()

        def owners() -> Owners[Any] | None:
            return self._owners.get(id(kind))  # what is owned may be declared after the controller

        async def reconciled(key: ObjectKey) -> Result:
            return await (reconcile(key) if (found := owners()) is None else found.reconcile(key, reconcile))

        def delay_s(key: ObjectKey) -> float:
            return own.put_off_s(key) or (0.0 if (found := owners()) is None else found.wait_s(key))

        def initial_keys() -> Iterable[ObjectKey]:
            return builder.initial_keys()

        workers = self.settings.workers if workers is None else workers
        observer = self._controller_metrics.observer(name, workers)
        queue: AsyncWorkQueue[ObjectKey] = AsyncWorkQueue(queued=observer.queued, worked=observer.worked)
        controller = Controller(
            name,
            reconciled,
            workers=workers,
            reconcile_timeout_s=self.settings.reconcile_timeout_s,
            drain_timeout_s=self.settings.shutdown_timeout_s,
            queue=queue,
            initial_keys=initial_keys,
            delay_s=delay_s,
            reconciled=observer.reconciled,
        )
        builder = ControllerBuilder(controller, kind, self._informers, own)
        self.manager.add_runnable(controller)
        self._controller_metrics.add_queue(name, queue)
        self._own_writes[name] = own
        self._builders.append(builder)
        return builder.watches(kind, key_of, when=when, labels=labels, crd_hint=crd_hint)

    def metrics_at(self, path: str) -> Metrics:
        """Return the metrics of another path of the metrics server: figures of the managed objects rather than the
        operator's own, or so many that they are scraped less often. Secure ones are for those who may `get` that URL.

        The same path, such as "/metrics/shops", gives the same metrics.

        Raises:
            ValueError: it begins with no "/".
            RuntimeError: the operator runs already, and serves the paths that it has.
        """
        if not path.startswith("/"):
            raise ValueError(f"invalid path of metrics {path!r}: it must begin with /, as /metrics does")
        if path not in self.metrics_by_path and self.manager.running:
            raise RuntimeError(
                f"the path {path} of metrics must be requested in the set-up function: the operator runs"
            )
        return self.metrics_by_path.setdefault(path, Metrics())

    def add_service(self, name: str, service: Service) -> None:
        """Run this from the start on, on each replica, and stop it last."""
        self.manager.add_service(name, service)

    def expects_writes(self, writes: Iterable[tuple[str, str]]) -> None:
        """Show these writes, by resource (`plural.group/subresource`) and verb, as 0 before there was one."""
        self.expected_writes += writes

    def finish(self) -> Manager:
        """Return the manager; called last, after all is added."""
        if not self._builders:
            logger.warning(
                "this operator has no controller and will do nothing: add one in set_up, operator.controller(…)"
            )
        for builder in self._builders:
            builder.finish()
        return self.manager


async def serve(
    settings: S, program: Program, set_up: Callable[[Operator, S], None], *, stop: asyncio.Event | None = None
) -> int:
    """Run an operator until SIGTERM or SIGINT, or until `stop`; the process's exit code.

    `set_up` adds its informers and controllers.

    Raises:
        KubeError: the API server is not configured, or not usably.
        ServingError: an address is taken, or a certificate is missing.
    """
    access = cluster_access(settings)
    namespaces = watched_namespaces(settings.watch_namespaces, access.namespace)
    scope = ", ".join(namespaces) if namespaces else "all namespaces"
    logger.info("%s %s: %s, %s; watching %s", program.name, program.version, access.server, access.description, scope)
    if stop is None:
        stop = asyncio.Event()
        _stop_on_signals(stop)
    agent = f"{settings.operator_name}/{program.version}"
    election = election_of(settings, access, os.environ, user_agent=agent, field_manager=program.name)
    async with AsyncExitStack() as stack:
        fence = None
        if election is not None:
            # Left last, when nothing here can write any more.
            stack.push_async_callback(election.aclose)
            fence = election.may_write
        api = await stack.enter_async_context(
            ApiClient(
                access,
                user_agent=agent,
                timeout_s=settings.request_timeout_s,
                write_fence=fence,
            )
        )
        operator = Operator(
            settings,
            program,
            api,
            namespaces=namespaces,
            own_namespace=(access.namespace or "") if access.in_pod else "",
            elected=election.elected if election is not None else None,
        )
        if election is not None:
            operator.metrics.add(lambda: election_families(election))
        set_up(operator, settings)
        manager = operator.finish()
        if settings.metrics_bind_address != "0":
            add_sources(operator.metrics, program, manager, api, operator.events, operator.expected_writes)
        for reflector in manager.awaited:
            operator.checks.add_watch(reflector)
        operator.urls = await stack.enter_async_context(
            served(settings, operator.checks, operator.metrics_by_path, access, user_agent=agent)
        )
        await manager.run(stop)
    logger.info("shutdown complete")
    return 0


def _stop_on_signals(stop: asyncio.Event) -> None:
    """Shut down gracefully on the first SIGTERM or Ctrl-C; a second one has the default effect and ends it at once."""
    loop = asyncio.get_running_loop()

    def received(number: signal.Signals) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        logger.info("%s received: shutting down; a second signal ends the process at once", number.name)
        stop.set()

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, received, each)
