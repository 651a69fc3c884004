"""The composition root: settings -> one running operator. The only place where everything meets."""

from __future__ import annotations

import msgspec

from memcached_operator.about import PROGRAM
from memcached_operator.memcached.desired import POD_SELECTOR
from memcached_operator.memcached.kinds import DEPLOYMENTS, MEMCACHEDS, PODS
from memcached_operator.memcached.metrics import memcached_families
from memcached_operator.memcached.reconciler import MemcachedReconciler, ReconcilerConfig
from memcached_operator.memcached.records import DeploymentRecord, PodRecord
from memcached_operator.memcached.reporter import Caches
from operator_runtime import ObjectKey, Operator, RuntimeConfig, serve

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


class OperatorConfig(RuntimeConfig, frozen=True):
    """The settings as this operator takes them; `settings.Settings` says what each means, where it comes from, and why.

    A plain struct, so that the operator's process need not load what validates them.
    """

    memcached_image: str
    memcached_user_id: int | None
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
    return await serve(config, PROGRAM, set_up)


def set_up(operator: Operator, config: OperatorConfig) -> None:
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
            image=config.memcached_image,
            user_id=config.memcached_user_id,
            status_delay_s=config.status_interval_ms / 1000,
            finalizer=config.finalizer,
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
    if config.metrics_per_object:
        operator.metrics.add(lambda: memcached_families(caches))


def _memcached_of(pod: PodRecord) -> ObjectKey | None:
    return pod.memcached_key
