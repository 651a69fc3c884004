"""Pure: the objects of a Memcached's endpoint: its pods, and the Service by which clients find them.

Their list comes from the ConfigMap, which the kubelet mounts, so that they need no permission, and at their start
nobody who leads. Their budget is `disruption_budget`'s, and the NetworkPolicy of the servers selects them, too.
"""

from __future__ import annotations

from typing import Final

from memcached_operator.api.names import MOUNTED
from memcached_operator.api.status import Problem, Reason
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.labels import (
    ENDPOINT_SUFFIX,
    PORT,
    PORT_NAME,
    MemcachedOwner,
    endpoint_label,
    labels,
    selector_labels,
)
from memcached_operator.core.objects.owned_kind import Known, OwnedKind
from memcached_operator.core.objects.owned_object import ObjectMeta, metadata
from memcached_operator.core.objects.pod_template import READINESS, SLEEP_S
from memcached_operator.core.objects.service import SERVICES, ServiceManifest, ServicePort, ServiceSpec
from memcached_operator.core.objects.workload import DEADLINE_S, DEPLOYMENT
from memcached_operator.core.objects.workload_types import (
    Capabilities,
    ConfigMapSource,
    Container,
    ContainerPort,
    ContainerSecurity,
    Hook,
    LabelSelector,
    Lifecycle,
    Mount,
    PodSpec,
    PodTemplateSpec,
    ResourceRequirements,
    RollingUpdate,
    Sleep,
    Strategy,
    Volume,
    WorkloadManifest,
    WorkloadSpec,
)
from memcached_operator.core.observed.workloads import DEPLOYMENT_RESOURCE, WorkloadRecord
from memcached_operator.features.discovery.server_list_configmap import CLUSTER, SUFFIX

_NAME: Final = "discovery"
_FOLDER: Final = f"{MOUNTED}/discovery"
_PODS: Final = 2
# It takes 17 MiB, and 21 with 2,000 clients; as many as it lets connect take some 25.
_RESOURCES: Final = ResourceRequirements(limits={"memory": "64Mi"}, requests={"cpu": "10m", "memory": "32Mi"})
_SECURITY: Final = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def _deployment(owner: MemcachedOwner, spec: Spec, known: Known) -> WorkloadManifest | None:
    if not spec.has_endpoint:
        return None
    label = endpoint_label(owner.name)
    container = Container(
        name=_NAME,
        image=known.operator_image,
        args=("discovery", "-f", f"{_FOLDER}/{CLUSTER}"),
        ports=(ContainerPort(PORT, PORT_NAME, "TCP"),),
        resources=_RESOURCES,
        readinessProbe=READINESS,
        lifecycle=Lifecycle(Hook(Sleep(SLEEP_S))),
        securityContext=ContainerSecurity(False, Capabilities(("ALL",)), True),
        volumeMounts=(Mount(_NAME, _FOLDER, readOnly=True),),
    )
    pod = PodSpec(
        automountServiceAccountToken=False,
        securityContext=_SECURITY,
        containers=(container,),
        volumes=(Volume(_NAME, configMap=ConfigMapSource(owner.name + SUFFIX)),),
    )
    return WorkloadManifest(
        apiVersion="apps/v1",
        kind="Deployment",
        metadata=metadata(owner, name=owner.name + ENDPOINT_SUFFIX),
        spec=WorkloadSpec(
            replicas=_PODS,
            selector=LabelSelector(selector_labels(label)),
            template=PodTemplateSpec(ObjectMeta(labels=labels(label) | {"app.kubernetes.io/component": _NAME}), pod),
            strategy=Strategy("RollingUpdate", RollingUpdate(maxUnavailable=0, maxSurge=1)),
            # What servers' Deployments have as well is compared.
            minReadySeconds=0,
            progressDeadlineSeconds=DEADLINE_S,
            paused=False,
        ),
    )


def _service(owner: MemcachedOwner, spec: Spec, _: Known) -> ServiceManifest | None:
    if not spec.has_endpoint:
        return None
    return ServiceManifest(
        apiVersion="v1",
        kind="Service",
        metadata=metadata(owner, name=owner.name + ENDPOINT_SUFFIX),
        spec=ServiceSpec(
            ports=(ServicePort(PORT_NAME, PORT, "TCP", PORT_NAME),),
            publishNotReadyAddresses=False,
            selector=selector_labels(endpoint_label(owner.name)),
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
    SERVICES.resource, SERVICES.codec, _service, field="discovery", suffix=ENDPOINT_SUFFIX
)
ENDPOINT_DEPLOYMENTS: Final = OwnedKind(
    DEPLOYMENT_RESOURCE, DEPLOYMENT, _deployment, field="discovery", suffix=ENDPOINT_SUFFIX
)
