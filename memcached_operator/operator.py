"""The composition root: settings -> one running operator. The only place where everything meets."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TypeVar

import msgspec

from memcached_operator import __version__
from memcached_operator.kube.auth import ClusterAccess, load_access
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.errors import NotFound
from memcached_operator.kube.resources import DEPLOYMENTS, EVENTS, PODS, Resource
from memcached_operator.kube.watch import Record
from memcached_operator.memcached.desired import POD_SELECTOR
from memcached_operator.memcached.metrics import memcached_families
from memcached_operator.memcached.reconciler import MemcachedReconciler, ReconcilerConfig
from memcached_operator.memcached.records import PodRecord, deployment_record, memcached_record, pod_record
from memcached_operator.memcached.reporter import MEMCACHEDS, Caches
from memcached_operator.runtime.cache.own_writes import OwnWrites
from memcached_operator.runtime.cache.reflector import Reflector
from memcached_operator.runtime.cache.store import Handler, ObjectKey, Store, key_of
from memcached_operator.runtime.controller import Controller, ControllerConfig, ReconcileTracer
from memcached_operator.runtime.election.elections import ElectionConfig, election_families, election_of
from memcached_operator.runtime.events.recorder import EventRecorder
from memcached_operator.runtime.manager import Leadership, Manager
from memcached_operator.runtime.program.config import RuntimeConfig
from memcached_operator.runtime.serving.monitoring import MonitoringConfig, add_sources, served, traced
from memcached_operator.runtime.serving.probes import Check
from memcached_operator.runtime.telemetry.metrics import ControllerMetrics, Metrics
from memcached_operator.runtime.workqueue.async_queue import AsyncWorkQueue
from memcached_operator.runtime.workqueue.queue import LOW_PRIORITY, WorkQueue

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Record)

# Server-side apply keeps under this name which fields are ours. It never changes with a setting: a second name would
# leave the fields of the first one owned by nobody who still writes them.
FIELD_MANAGER = "memcached-operator"
# What this operator writes in its daily work, for the metrics.
WRITES = (
    (DEPLOYMENTS.qualified_name, "apply"),
    (DEPLOYMENTS.qualified_name, "patch"),
    (f"{MEMCACHEDS.qualified_name}/status", "patch"),
    (EVENTS.qualified_name, "create"),
)
_CRD_REMEDY = (
    "The kind Memcached is not known to the cluster: install it with "
    "`kubectl apply --server-side -f manifests/crd/cache.example.com_memcacheds.yaml`."
)


class OperatorConfig(RuntimeConfig, frozen=True):
    """The settings as this operator takes them; `settings.Settings` says what each means, where it comes from, and why.

    A plain struct, so that the operator's process need not load what validates them.
    """

    memcached_image: str
    finalizer: bool
    status_interval_ms: int
    metrics_per_object: bool


def decode_config(settings_json: str) -> OperatorConfig:
    """The settings from the JSON that `settings.Settings` is dumped to."""
    return msgspec.json.decode(settings_json, type=OperatorConfig)


async def run(config: OperatorConfig) -> int:
    """Run the operator until SIGTERM or SIGINT; the process's exit code.

    Raises:
        KubeError: there is no usable way to the API server.
    """
    access = cluster_access(config)
    namespaces = watched_namespaces(config.watch_namespaces, access.namespace)
    scope = ", ".join(namespaces) if namespaces else "all namespaces"
    logger.info("memcached-operator %s: %s, %s; watching %s", __version__, access.server, access.description, scope)
    stop = asyncio.Event()
    _stop_on_signals(stop)
    # Credentials of its own: an election by a Lease has an event loop of its own.
    election = election_of(election_config(config), lambda: cluster_access(config), os.environ)
    async with AsyncExitStack() as stack:
        tracing = None
        if config.tracing_endpoint is not None:
            # Left last: nobody waits for a collector before they may lead.
            tracing = await stack.enter_async_context(traced(config.tracing_endpoint, config.operator_name))
        gate = None
        if election is not None:
            # Left when nothing here can write any more.
            await stack.enter_async_context(election)
            gate = election.may_write
        client = await stack.enter_async_context(
            ApiClient(
                access,
                user_agent=_user_agent(config),
                timeout_s=config.request_timeout_s,
                write_gate=gate,
                tracer=None if tracing is None else tracing.call,
            )
        )
        recorder = EventRecorder(
            client,
            reporting_controller=config.operator_name,
            reporting_instance=f"{config.operator_name}-{socket.gethostname()}",
            field_manager=FIELD_MANAGER,
        )
        metrics = None if config.metrics_bind_address == "0" else Metrics()
        tracer = None if tracing is None else tracing.reconcile
        manager = build(config, client, recorder, namespaces, metrics, election, tracer)
        if metrics is not None:
            add_sources(metrics, manager, client, recorder, WRITES)
            if election is not None:
                metrics.add(lambda: election_families(election))
        checks = () if election is None else (Check("leader-election", election.complaint),)
        await stack.enter_async_context(served(_monitoring_config(config), manager, metrics, access, checks))
        await manager.run(stop)
    logger.info("ended in good order")
    return 0


def watched_namespaces(asked: tuple[str, ...] | None, own: str | None) -> tuple[str, ...]:
    """The namespaces to watch, () for all of them.

    Args:
        asked: as the settings say: None where nothing was said, () for all.
        own: the pod's namespace, or the context's.
    """
    if asked is not None:
        return asked
    return (own or "default",)


def cluster_access(config: OperatorConfig) -> ClusterAccess:
    """Which API server, and as whom.

    Raises:
        NoClusterAccess: that cannot be told; the message has the remedy.
    """
    return load_access(
        kubeconfig=config.kubeconfig,
        context=config.context,
        service_account_dir=Path(config.service_account_dir),
        environ=os.environ,
    )


def _user_agent(config: OperatorConfig) -> str:
    return f"{config.operator_name}/{__version__}"


def election_config(config: OperatorConfig) -> ElectionConfig | None:
    """The election that the settings ask for, None where they ask for none."""
    if not config.leader_elect:
        return None
    return ElectionConfig(
        mode=config.leader_elect_mode,
        name=config.leader_elect_id or f"{config.operator_name}-lock",
        namespace=config.leader_elect_namespace,
        lease_s=config.leader_elect_lease_duration_s,
        renew_deadline_s=config.leader_elect_renew_deadline_s,
        retry_s=config.leader_elect_retry_period_s,
        user_agent=_user_agent(config),
        field_manager=FIELD_MANAGER,
    )


def _monitoring_config(config: OperatorConfig) -> MonitoringConfig:
    return MonitoringConfig(
        probes=config.health_probe_bind_address,
        metrics=config.metrics_bind_address,
        secure=config.metrics_secure,
        cert_dir=Path(config.metrics_cert_dir) if config.metrics_cert_dir else None,
        user_agent=_user_agent(config),
    )


def build(
    config: OperatorConfig,
    client: ApiClient,
    recorder: EventRecorder,
    namespaces: tuple[str, ...],
    metrics: Metrics | None = None,
    leadership: Leadership | None = None,
    tracer: ReconcileTracer | None = None,
) -> Manager:
    """Put the parts together; nothing runs yet. Nothing is observed where there is nothing to show it with."""
    caches = Caches(Store(), Store(), Store({"memcached": _memcached_of}))
    own_writes = OwnWrites()
    reconciler = MemcachedReconciler(
        client,
        caches,
        own_writes,
        recorder,
        ReconcilerConfig(
            image=config.memcached_image,
            field_manager=FIELD_MANAGER,
            status_delay_s=config.status_interval_ms / 1000,
        ),
    )
    observer = None if metrics is None else ControllerMetrics[ObjectKey]("memcached", config.workers)
    queue: AsyncWorkQueue[ObjectKey] = AsyncWorkQueue(WorkQueue(observer=observer))
    controller = Controller(
        "memcached",
        reconciler.reconcile,
        config=ControllerConfig(
            workers=config.workers,
            reconcile_timeout_s=config.reconcile_timeout_s,
            drain_timeout_s=config.shutdown_timeout_s,
        ),
        queue=queue,
        everything=caches.memcacheds.keys,
        ready=reconciler.wait_s,
        observer=observer,
        tracer=tracer,
    )
    if metrics is not None and observer is not None:
        metrics.add(lambda: observer.families(queue.core))
        metrics.add(reconciler.families)
        if config.metrics_per_object:
            metrics.add(lambda: memcached_families(caches))
    manager = Manager(leadership)
    manager.add_service("event recorder", recorder)
    manager.add_runnable(controller)

    def watch(
        resource: Resource,
        decode: Callable[[msgspec.Raw], R],
        store: Store[R],
        concerned: Callable[[R], ObjectKey | None],
        label_selector: str = "",
    ) -> None:
        """Fill `store`, and wake the Memcached that a change in it concerns."""
        store.add_handler(_waker(controller, store, concerned, own_writes))
        for namespace in namespaces or (None,):
            reflector = Reflector(
                client,
                resource,
                decode,
                store,
                namespace=namespace,
                label_selector=label_selector,
                page_size=config.page_size,
                silence_limit_s=config.watch_silence_limit_s,
                remedies={NotFound: _CRD_REMEDY} if resource is MEMCACHEDS else {},
            )
            manager.add_reflector(reflector)

    def of_same_name(record: Record) -> ObjectKey | None:
        # A Deployment bears the name of its Memcached; so does a stranger's that is in its way.
        key = key_of(record)
        return key if caches.memcacheds.get(key) is not None else None

    watch(MEMCACHEDS, memcached_record, caches.memcacheds, key_of)
    watch(DEPLOYMENTS, deployment_record, caches.deployments, of_same_name)
    watch(PODS, pod_record, caches.pods, _memcached_of, POD_SELECTOR)
    # After the wakers: they must still find pending what an event is about to fulfil.
    own_writes.observe(MEMCACHEDS.kind, caches.memcacheds)
    own_writes.observe(DEPLOYMENTS.kind, caches.deployments)
    return manager


def _memcached_of(pod: PodRecord) -> ObjectKey | None:
    return pod.memcached_key


def _waker(
    controller: Controller[ObjectKey],
    store: Store[R],
    concerned: Callable[[R], ObjectKey | None],
    own_writes: OwnWrites,
) -> Handler[R]:
    """A handler that asks for a reconcile of the Memcached that a change concerns."""

    def changed(before: R | None, after: R | None) -> None:
        priority = LOW_PRIORITY if store.relisting else 0
        for key in {concerned(record) for record in (before, after) if record is not None}:
            # A new version that differs in nothing that a reconcile reads wakes nobody, unless the version itself is
            # what a key waits for.
            if key is not None and (own_writes.pending(key) or not _same_but_version(before, after)):
                controller.wake(key, priority=priority)

    return changed


def _same_but_version(before: object, after: object) -> bool:
    return (
        isinstance(before, msgspec.Struct)
        and isinstance(after, msgspec.Struct)
        and msgspec.structs.replace(before, resource_version="") == msgspec.structs.replace(after, resource_version="")
    )


def _stop_on_signals(stop: asyncio.Event) -> None:
    """End in good order on the first SIGTERM or Ctrl-C; a second one takes the default way and ends at once."""
    loop = asyncio.get_running_loop()

    def asked(number: signal.Signals) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)
        logger.info("%s received: finishing what was begun; a second one ends it at once", number.name)
        stop.set()

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, asked, each)
