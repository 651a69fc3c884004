"""Pure: the objects of a Memcached's endpoint: its pods, and the Service by which clients find them.

Their list comes from the ConfigMap, which the kubelet mounts, so that they need no permission, and at their start
nobody who leads. Their budget is `disruption_budget`'s, and the NetworkPolicy of the servers selects them, too.
"""

from __future__ import annotations

from typing import Final

from memcached_operator.api.names import MOUNTED
from memcached_operator.api.status import Problem, Reason
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects import labels, workload_types as types
from memcached_operator.core.objects.owned_kind import Known, OwnedKind
from memcached_operator.core.objects.owned_object import ObjectMeta, metadata
from memcached_operator.core.objects.pod_template import READINESS, SLEEP_S
from memcached_operator.core.objects.service import SERVICES, ServiceManifest, ServicePort, ServiceSpec
from memcached_operator.core.objects.workload import DEADLINE_S, DEPLOYMENT
from memcached_operator.core.observed.workloads import DEPLOYMENT_RESOURCE, WorkloadRecord
from memcached_operator.features.discovery.server_list_configmap import CLUSTER, SUFFIX

_NAME: Final = "discovery"
_FOLDER: Final = f"{MOUNTED}/discovery"
_PODS: Final = 2
# It takes 17 MiB, and 21 with 2,000 clients; as many as it lets connect take some 25.
_RESOURCES: Final = types.ResourceRequirements(limits={"memory": "64Mi"}, requests={"cpu": "10m", "memory": "32Mi"})
_SECURITY: Final = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def _deployment(owner: labels.MemcachedOwner, spec: Spec, known: Known) -> types.WorkloadManifest | None:
    if not spec.has_endpoint:
        return None
    label = labels.endpoint_label(owner.name)
    container = types.Container(
        name=_NAME,
        image=known.operator_image,
        args=("discovery", "-f", f"{_FOLDER}/{CLUSTER}"),
        ports=(types.ContainerPort(labels.PORT, labels.PORT_NAME, "TCP"),),
        resources=_RESOURCES,
        readinessProbe=READINESS,
        lifecycle=types.Lifecycle(types.Hook(types.Sleep(SLEEP_S))),
        securityContext=types.ContainerSecurity(False, types.Capabilities(("ALL",)), True),
        volumeMounts=(types.Mount(_NAME, _FOLDER, readOnly=True),),
    )
    pod = types.PodSpec(
        automountServiceAccountToken=False,
        securityContext=_SECURITY,
        containers=(container,),
        volumes=(types.Volume(_NAME, configMap=types.ConfigMapSource(owner.name + SUFFIX)),),
    )
    return types.WorkloadManifest(
        apiVersion="apps/v1",
        kind="Deployment",
        metadata=metadata(owner, name=owner.name + labels.ENDPOINT_SUFFIX),
        spec=types.WorkloadSpec(
            replicas=_PODS,
            selector=types.LabelSelector(labels.selector_labels(label)),
            template=types.PodTemplateSpec(
                ObjectMeta(labels=labels.labels(label) | {"app.kubernetes.io/component": _NAME}), pod
            ),
            strategy=types.Strategy("RollingUpdate", types.RollingUpdate(maxUnavailable=0, maxSurge=1)),
            # What servers' Deployments have as well is compared.
            minReadySeconds=0,
            progressDeadlineSeconds=DEADLINE_S,
            paused=False,
        ),
    )


def _service(owner: labels.MemcachedOwner, spec: Spec, _: Known) -> ServiceManifest | None:
    if not spec.has_endpoint:
        return None
    return ServiceManifest(
        apiVersion="v1",
        kind="Service",
        metadata=metadata(owner, name=owner.name + labels.ENDPOINT_SUFFIX),
        spec=ServiceSpec(
            ports=(ServicePort(labels.PORT_NAME, labels.PORT, "TCP", labels.PORT_NAME),),
            publishNotReadyAddresses=False,
            selector=labels.selector_labels(labels.endpoint_label(owner.name)),
            type="ClusterIP",
        ),
    )


def without_pods(live: WorkloadRecord) -> Problem | None:
    """The problem of an endpoint whose Deployment cannot make its pods, None for none."""
    if not (why := live.create_failure or live.deadline_exceeded):
        return None
    message = f"The Deployment {live.name} of spec.discovery.autoDiscovery has not all of its pods: {why}"
    return Problem(Reason.ENDPOINT_NOT_READY, message, blocking=False)


ENDPOINT_SERVICES: Final = OwnedKind(
    SERVICES.resource, SERVICES.codec, _service, field="discovery", suffix=labels.ENDPOINT_SUFFIX
)
ENDPOINT_DEPLOYMENTS: Final = OwnedKind(
    DEPLOYMENT_RESOURCE, DEPLOYMENT, _deployment, field="discovery", suffix=labels.ENDPOINT_SUFFIX
)
