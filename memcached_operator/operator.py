"""The composition root: settings -> one running operator. The only place where everything meets."""

from __future__ import annotations

import msgspec

from memcached_operator.about import PROGRAM
from memcached_operator.memcached.desired import POD_SELECTOR
from memcached_operator.memcached.metrics import memcached_families
from memcached_operator.memcached.reconciler import MemcachedReconciler, ReconcilerConfig
from memcached_operator.memcached.records import (
    DeploymentRecord,
    PodRecord,
    deployment_record,
    memcached_record,
    pod_record,
)
from memcached_operator.memcached.reporter import MEMCACHEDS, Caches
from operator_runtime.cache.own_writes import OwnWrites
from operator_runtime.cache.store import ObjectKey, key_of
from operator_runtime.client.resources import DEPLOYMENTS, EVENTS, PODS
from operator_runtime.config import RuntimeConfig
from operator_runtime.objects.kinds import Kind
from operator_runtime.operator import Operator, serve

# What this operator writes in its daily work, for the metrics.
WRITES = (
    (DEPLOYMENTS.qualified_name, "apply"),
    (DEPLOYMENTS.qualified_name, "patch"),
    (DEPLOYMENTS.qualified_name, "delete"),
    (MEMCACHEDS.qualified_name, "patch"),
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
    memcacheds, deployments, pods = (
        Kind(MEMCACHEDS, memcached_record),
        Kind(DEPLOYMENTS, deployment_record),
        Kind(PODS, pod_record),
    )
    caches = Caches(
        operator.informer(memcacheds, missing=_CRD_REMEDY),
        operator.informer(deployments),
        operator.informer(pods, labels=POD_SELECTOR),
    )
    caches.pods.add_index("memcached", _memcached_of)
    own_writes = OwnWrites()
    reconciler = MemcachedReconciler(
        operator.api,
        caches,
        own_writes,
        operator.events,
        ReconcilerConfig(
            image=config.memcached_image,
            user_id=config.memcached_user_id,
            field_manager=PROGRAM.name,
            status_delay_s=config.status_interval_ms / 1000,
            finalizer=config.finalizer,
        ),
    )

    def of_same_name(deployment: DeploymentRecord) -> ObjectKey | None:
        # A Deployment bears the name of its Memcached; so does a stranger's that is in its way.
        key = key_of(deployment)
        return key if caches.memcacheds.get(key) is not None else None

    controller = operator.controller(
        "memcached", memcacheds, reconciler.reconcile, delay_s=reconciler.wait_s, own_writes=own_writes
    )
    controller.watches(deployments, of_same_name).watches(pods, _memcached_of, labels=POD_SELECTOR)
    operator.expects_writes(WRITES)
    operator.metrics.add(reconciler.families)
    if config.metrics_per_object:
        operator.metrics.add(lambda: memcached_families(caches))


def _memcached_of(pod: PodRecord) -> ObjectKey | None:
    return pod.memcached_key
