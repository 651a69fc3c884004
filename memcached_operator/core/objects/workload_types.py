"""Types of the part of a Deployment or a StatefulSet that this operator manages."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from memcached_operator.api.v1alpha1 import AccessMode
from memcached_operator.core.objects.labels import CONTAINER
from memcached_operator.core.objects.owned_object import Manifest, ObjectMeta, as_json
from memcached_operator.core.objects.pod_template_overlay import Part, merged
from operator_runtime import Fields


class ContainerPort(Fields, frozen=True, omit_defaults=True):  # `ports[]` of a container
    containerPort: int = 0
    name: str | None = None
    protocol: str | None = None


class Capabilities(Fields, frozen=True, omit_defaults=True):  # `securityContext.capabilities`
    drop: tuple[str, ...] | None = None


class ContainerSecurity(Fields, frozen=True, omit_defaults=True):  # `securityContext` of a container
    allowPrivilegeEscalation: bool | None = None
    capabilities: Capabilities | None = None
    readOnlyRootFilesystem: bool | None = None


class ResourceRequirements(Fields, frozen=True, omit_defaults=True):
    """`resources` of a container, in quantities as the API server writes them."""

    limits: dict[str, str] | None = None
    requests: dict[str, str] | None = None


class TcpSocket(Fields, frozen=True, omit_defaults=True):  # `tcpSocket` of a probe
    port: int | str = 0


class ExecAction(Fields, frozen=True, omit_defaults=True):  # `exec` of a probe
    command: tuple[str, ...] = ()


class Probe(Fields, frozen=True, omit_defaults=True):  # `readinessProbe` or `startupProbe` of a container
    tcpSocket: TcpSocket | None = None
    periodSeconds: int | None = None
    timeoutSeconds: int | None = None
    failureThreshold: int | None = None
    exec: ExecAction | None = None


class Sleep(Fields, frozen=True, omit_defaults=True):  # `sleep` of a hook
    seconds: int = 0


class Hook(Fields, frozen=True, omit_defaults=True):  # `lifecycle.preStop` of a container
    sleep: Sleep | None = None
    exec: ExecAction | None = None


class Lifecycle(Fields, frozen=True, omit_defaults=True):  # `lifecycle` of a container
    preStop: Hook | None = None


class Mount(Fields, frozen=True, omit_defaults=True):  # `volumeMounts[]` of a container
    entry_key: ClassVar[str] = "mountPath"

    name: str = ""
    mountPath: str = ""
    readOnly: bool | None = None


class Container(Fields, frozen=True, omit_defaults=True):  # `containers[]` or `initContainers[]` of a pod
    entry_key: ClassVar[str] = "name"

    name: str = ""
    image: str | None = None
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    ports: tuple[ContainerPort, ...] | None = None
    resources: ResourceRequirements | None = None
    restartPolicy: str | None = None
    readinessProbe: Probe | None = None
    startupProbe: Probe | None = None
    lifecycle: Lifecycle | None = None
    securityContext: ContainerSecurity | None = None
    volumeMounts: tuple[Mount, ...] | None = None


class SecretSource(Fields, frozen=True, omit_defaults=True):  # `secret` of a volume
    absent: ClassVar[tuple[str, ...]] = ("optional",)  # with it the kubelet does not wait for a missing Secret

    secretName: str = ""
    optional: bool | None = None


class ConfigMapSource(Fields, frozen=True, omit_defaults=True):  # `configMap` of a volume
    absent: ClassVar[tuple[str, ...]] = ("optional",)  # with it a server would start without its scripts

    name: str = ""
    optional: bool | None = None


class EmptyDir(Fields, frozen=True, omit_defaults=True):  # `emptyDir` of a volume
    medium: str | None = None
    sizeLimit: str | None = None


class FieldRef(Fields, frozen=True, omit_defaults=True):  # `fieldRef` of a file
    fieldPath: str = ""


class DownwardFile(Fields, frozen=True, omit_defaults=True):  # `downwardAPI.items[]` of a volume
    path: str = ""
    fieldRef: FieldRef | None = None


class DownwardApi(Fields, frozen=True, omit_defaults=True):  # `downwardAPI` of a volume
    items: tuple[DownwardFile, ...] | None = None


class ClaimSpec(Fields, frozen=True, omit_defaults=True):  # `spec` of a claim's template
    absent: ClassVar[tuple[str, ...]] = ("storageClassName",)

    accessModes: tuple[AccessMode, ...] | None = None
    storageClassName: str | None = None
    resources: ResourceRequirements | None = None


class ClaimTemplate(Fields, frozen=True, omit_defaults=True):  # `volumeClaimTemplate` of an ephemeral volume
    spec: ClaimSpec | None = None


class Claim(Fields, frozen=True, omit_defaults=True):  # `ephemeral` of a volume
    volumeClaimTemplate: ClaimTemplate | None = None


class Volume(Fields, frozen=True, omit_defaults=True):  # `volumes[]` of a pod
    entry_key: ClassVar[str] = "name"
    absent: ClassVar[tuple[str, ...]] = ("ephemeral", "emptyDir")  # a volume has one source

    name: str = ""
    secret: SecretSource | None = None
    emptyDir: EmptyDir | None = None
    downwardAPI: DownwardApi | None = None
    ephemeral: Claim | None = None
    configMap: ConfigMapSource | None = None


GRACE_S: Final = 30
"""As the API server fills it in, so that it is written only where it is another."""


class PodSpec(Fields, frozen=True, omit_defaults=True):  # `spec` of a pod template, as far as the operator makes it
    automountServiceAccountToken: bool | None = None
    securityContext: dict[str, Any] | None = None
    shareProcessNamespace: bool | None = None
    terminationGracePeriodSeconds: int = GRACE_S
    initContainers: tuple[Container, ...] | None = None
    containers: tuple[Container, ...] | None = None
    volumes: tuple[Volume, ...] | None = None


class PodTemplateSpec(Fields, frozen=True, omit_defaults=True):  # `spec.template` of a workload
    metadata: ObjectMeta | None = None
    spec: PodSpec | None = None


class LabelSelector(Fields, frozen=True, omit_defaults=True):  # `spec.selector` of a workload
    matchLabels: dict[str, str] | None = None


class RollingUpdate(Fields, frozen=True, omit_defaults=True):  # `rollingUpdate` of a Deployment's strategy
    maxUnavailable: int | str | None = None
    maxSurge: int | str | None = None


class Strategy(Fields, frozen=True, omit_defaults=True):
    """`strategy` of a Deployment, `updateStrategy` of a StatefulSet."""

    type: str | None = None
    rollingUpdate: RollingUpdate | None = None


class WorkloadSpec(Fields, frozen=True, omit_defaults=True):
    """`spec` of a workload: what both have, what a Deployment has, what a StatefulSet has."""

    absent: ClassVar[tuple[str, ...]] = ("ordinals",)  # by them servers have other names than those that are listed

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec | None = None
    strategy: Strategy | None = None
    minReadySeconds: int | None = None
    progressDeadlineSeconds: int | None = None
    paused: bool | None = None
    serviceName: str | None = None
    podManagementPolicy: str | None = None
    updateStrategy: Strategy | None = None
    ordinals: dict[str, Any] | None = None


class WorkloadManifest(Manifest, frozen=True, omit_defaults=True):
    """A Deployment or a StatefulSet, as far as a Memcached has an opinion about it.

    Attributes:
        spec: without what is passed through to the pods.
        passed: that.
    """

    spec: WorkloadSpec = WorkloadSpec()
    passed: tuple[Part, ...] = ()

    @property
    def template(self) -> PodTemplateSpec:
        """The pods as the operator makes them."""
        return self.spec.template or PodTemplateSpec()

    @property
    def image(self) -> str:
        containers = (self.template.spec and self.template.spec.containers) or ()
        return next((each.image or "" for each in containers if each.name == CONTAINER), "")

    def body(self) -> dict[str, Any]:
        """Convert to the dict that a manifest has, with what is passed through in its places."""
        made = as_json(self)
        return merged(made, self.passed) if made.pop("passed", ()) else made
