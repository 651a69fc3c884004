"""The composition root: settings -> one running operator. The only place where everything meets."""

from __future__ import annotations

from memcached_operator.about import PROGRAM
from memcached_operator.memcached.desired import POD_SELECTOR
from memcached_operator.memcached.kinds import DEPLOYMENTS, MEMCACHEDS, PODS
from memcached_operator.memcached.metrics import memcached_families
from memcached_operator.memcached.reconciler import MemcachedReconciler, ReconcilerConfig
from memcached_operator.memcached.records import DeploymentRecord, PodRecord
from memcached_operator.memcached.reporter import Caches
from memcached_operator.settings import Settings
from operator_runtime import ObjectKey, Operator, serve

# What this operator writes in its daily work, for the metrics.
WRITES = (
    (DEPLOYMENTS.resource.qualified_name, "apply"),
    (DEPLOYMENTS.resource.qualified_name, "patch"),
    (DEPLOYMENTS.resource.qualified_name, "delete"),
    (MEMCACHEDS.resource.qualified_name, "patch"),
    (f"{MEMCACHEDS.resource.qualified_name}/status", "patch"),
    ("events.events.k8s.io", "create"),
)
_CRD_REMEDY = (
    "The kind Memcached is not known to the cluster: install it with "
    "`kubectl apply --server-side -f manifests/crd/cache.example.com_memcacheds.yaml`."
)


async def run(settings: Settings) -> int:
    """Run the operator until SIGTERM or SIGINT; the process's exit code.

    Raises:
        KubeError: there is no usable way to the API server.
    """
    return await serve(settings, PROGRAM, set_up)


def set_up(operator: Operator, settings: Settings) -> None:
    """Put Memcached's parts together; nothing runs yet."""
    caches = Caches(
        operator.informer(MEMCACHEDS, missing=_CRD_REMEDY),
        operator.informer(DEPLOYMENTS),
        operator.informer(PODS, labels=POD_SELECTOR),
    )
    caches.pods.add_index("memcached", _memcached_of)
    reconciler = MemcachedReconciler(
        operator,
        caches,
        ReconcilerConfig(
            image=settings.memcached_image,
            user_id=settings.memcached_user_id,
            status_delay_s=settings.status_interval_ms / 1000,
            finalizer=settings.finalizer,
        ),
    )

    def of_same_name(deployment: DeploymentRecord) -> ObjectKey | None:
        # A Deployment bears the name of its Memcached; so does a stranger's that is in its way.
        key = ObjectKey(deployment.namespace, deployment.name)
        return key if caches.memcacheds.get(key) is not None else None

    controller = operator.controller("memcached", MEMCACHEDS, reconciler.reconcile)
    controller.watches(DEPLOYMENTS, of_same_name).watches(PODS, _memcached_of, labels=POD_SELECTOR)
    operator.expects_writes(WRITES)
    operator.metrics.add(reconciler.families)
    if settings.metrics_per_object:
        operator.metrics.add(lambda: memcached_families(caches))


def _memcached_of(pod: PodRecord) -> ObjectKey | None:
    return pod.memcached_key
