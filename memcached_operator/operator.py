"""The composition root: settings -> one running operator. The only place where everything meets."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from memcached_operator.about import PROGRAM
from memcached_operator.api import names
from memcached_operator.core.metrics import condition_family, memcached_families
from memcached_operator.core.objects.labels import POD_SELECTOR
from memcached_operator.core.objects.owned_kind import OwnedKind
from memcached_operator.core.objects.owned_object import OwnedRecord
from memcached_operator.core.observed.caches import DEPLOYMENTS, MEMCACHEDS, PODS, STATEFUL_SETS, Caches
from memcached_operator.core.observed.memcacheds import is_overdue
from memcached_operator.core.reconciler import MemcachedReconciler
from memcached_operator.core.rollout.live.live_memory import limit_setter
from memcached_operator.core.status.debounce import ServerPredicates
from memcached_operator.features.discovery.server_items import ServerItems
from memcached_operator.features.tls.endpoints import EndpointResolver, Secrets
from memcached_operator.owned_kinds import AUXILIARY
from memcached_operator.servers.metric_families import PATH, server_families
from memcached_operator.servers.polling import Poller
from memcached_operator.servers.queried_pod import Endpoints, without_credentials
from memcached_operator.servers.stats_cache import StatsCache
from memcached_operator.settings import Settings
from operator_runtime import Channel, ObjectKey, Operator, serve

# What this operator writes in its daily work, for the metrics.
WRITES = (
    *(
        (kind.resource.qualified_name, verb)
        for kind in dict.fromkeys((DEPLOYMENTS, STATEFUL_SETS, *(each.kind for each in AUXILIARY)))
        for verb in ("create", "patch", "delete")
    ),
    (MEMCACHEDS.resource.qualified_name, "patch"),
    (f"{MEMCACHEDS.resource.qualified_name}/status", "patch"),
    (f"{PODS.resource.qualified_name}/eviction", "create"),
    (f"{PODS.resource.qualified_name}/resize", "patch"),
    ("events.events.k8s.io", "create"),
)
_CRD_REMEDY = (
    f"The cluster does not serve the kind Memcached: install it with `kubectl apply --server-side -f {names.CRD_FILE}`."
)


async def run(settings: Settings) -> int:
    """Run the operator until SIGTERM or SIGINT; the process's exit code.

    Raises:
        KubeError: the API server is not configured, or not usably.
    """
    return await serve(settings, PROGRAM, set_up)


def set_up(operator: Operator, settings: Settings) -> None:
    """Put Memcached's parts together; nothing runs yet."""
    caches = Caches(
        memcacheds=operator.informer(MEMCACHEDS, crd_hint=_CRD_REMEDY),
        deployments=operator.informer(DEPLOYMENTS),
        pods=operator.informer(PODS, labels=POD_SELECTOR),
        # Without the permission for these there is the rest.
        stateful_sets=operator.informer(STATEFUL_SETS, optional=True),
        auxiliary={
            each: operator.informer(each.kind, labels=each.resource.labels, optional=True) for each in AUXILIARY
        },
    )
    caches.index()
    reconcile_requests: Channel[ObjectKey] = Channel()
    stats_cache = StatsCache() if settings.server_stats_interval_s > 0 else None
    endpoints: Endpoints = without_credentials
    if settings.server_credentials:
        endpoints = EndpointResolver(caches, Secrets(operator.client)).to
    reconciler = MemcachedReconciler(
        operator,
        caches,
        settings,
        set_limit=limit_setter(endpoints),
        enqueue=reconcile_requests.send,
        stats_cache=stats_cache,
    )

    def known(key: ObjectKey) -> ObjectKey | None:
        return key if caches.memcacheds.get(key) is not None else None

    def of_same_name(record: OwnedRecord) -> ObjectKey | None:
        # What a Memcached owns bears its name; so does a foreign object that blocks it.
        return known(ObjectKey(record.namespace, record.name))

    def of_auxiliary(kind: OwnedKind, record: OwnedRecord) -> ObjectKey | Iterable[ObjectKey] | None:
        if kind.conflict is not None and not record.normalized:  # it may be a rival
            return caches.memcacheds_in(record.namespace)
        key = kind.memcached_of(record)
        return known(key) if key is not None else None

    controller = operator.controller("memcached", MEMCACHEDS, reconciler.reconcile)
    controller.begins_with(caches.memcacheds, is_overdue)
    predicates = ServerPredicates(caches, reconciler.debounce.awaited)
    # Of what it created, a reconcile knows by the answer (`after_create`).
    controller.watches(DEPLOYMENTS, of_same_name, when=predicates.by_workload, after_create=False)
    controller.watches(STATEFUL_SETS, of_same_name, when=predicates.by_workload, optional=True, after_create=False)
    controller.watches(PODS, lambda pod: pod.memcached_key, when=predicates.by_pod, labels=POD_SELECTOR)
    for kind in AUXILIARY:
        of = partial(of_auxiliary, kind)
        controller.watches(kind.kind, of, labels=kind.resource.labels, optional=True, after_create=False)
    controller.watches_channel(reconcile_requests, lambda key: key)
    servers = operator.metrics_at(PATH)  # also where none is queried: who scrapes it finds nothing, and no fault
    if stats_cache is not None:
        interval_s = settings.server_stats_interval_s
        on_answer = reconciler.scaler.record
        items = ServerItems(caches)
        items.watch(stats_cache.query_soon)
        asked = items.endpoints(endpoints)
        operator.manager.add_runnable(
            Poller(caches, stats_cache, reconcile_requests, interval_s=interval_s, endpoints=asked, on_answer=on_answer)
        )
        servers.add(reconciler.scaler.families)
        servers.add(lambda: server_families(caches.pods.values(), stats_cache.of))
    operator.expects_writes(WRITES)
    operator.metrics.add(reconciler.families)
    operator.metrics.add(lambda: (condition_family(caches.memcacheds.values()),))
    if settings.metrics_per_object:
        operator.metrics.add(lambda: memcached_families(caches))
