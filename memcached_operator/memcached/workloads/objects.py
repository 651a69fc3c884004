"""The part of a Deployment or a StatefulSet that this operator speaks of, as types."""

from __future__ import annotations

from typing import Any, ClassVar

from memcached_operator.memcached.objects import Manifest, ObjectMeta
from operator_runtime import Fields


class ContainerPort(Fields, frozen=True, omit_defaults=True):
    """`ports[]` of a container."""

    containerPort: int = 0
    name: str | None = None
    protocol: str | None = None


class Capabilities(Fields, frozen=True, omit_defaults=True):
    """`securityContext.capabilities`."""

    drop: tuple[str, ...] | None = None


class ContainerSecurity(Fields, frozen=True, omit_defaults=True):
    """`securityContext` of a container."""

    allowPrivilegeEscalation: bool | None = None
    capabilities: Capabilities | None = None
    readOnlyRootFilesystem: bool | None = None


class Container(Fields, frozen=True, omit_defaults=True):
    """`containers[]` of a pod."""

    entry_key: ClassVar[str] = "name"

    name: str = ""
    image: str | None = None
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    ports: tuple[ContainerPort, ...] | None = None
    securityContext: ContainerSecurity | None = None


class PodSpec(Fields, frozen=True, omit_defaults=True):
    """`spec` of a pod template. What is passed through from `spec.pod` is as Kubernetes types it."""

    # Admission adds some, and would again after each write of ours.
    extensible: ClassVar[tuple[str, ...]] = ("tolerations",)

    automountServiceAccountToken: bool | None = None
    securityContext: dict[str, Any] | None = None
    containers: tuple[Container, ...] | None = None
    affinity: dict[str, Any] | None = None
    imagePullSecrets: tuple[dict[str, Any], ...] | None = None
    nodeSelector: dict[str, str] | None = None
    priorityClassName: str | None = None
    serviceAccount: str | None = None
    serviceAccountName: str | None = None
    terminationGracePeriodSeconds: int | None = None
    tolerations: tuple[dict[str, Any], ...] | None = None
    topologySpreadConstraints: tuple[dict[str, Any], ...] | None = None


class PodTemplate(Fields, frozen=True, omit_defaults=True):
    """`spec.template` of a workload."""

    metadata: ObjectMeta | None = None
    spec: PodSpec | None = None


class LabelSelector(Fields, frozen=True, omit_defaults=True):
    """`spec.selector` of a workload."""

    matchLabels: dict[str, str] | None = None


class WorkloadSpec(Fields, frozen=True, omit_defaults=True):
    """`spec` of a workload; a Deployment has the first three."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate | None = None
    serviceName: str | None = None
    podManagementPolicy: str | None = None


class WorkloadManifest(Manifest, frozen=True, omit_defaults=True):
    """A Deployment or a StatefulSet, as far as a Memcached has an opinion about it."""

    spec: WorkloadSpec = WorkloadSpec()
