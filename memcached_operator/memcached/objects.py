"""The part of a Deployment that this operator speaks of, as types.

One set of structs serves both ways: the object that a Memcached wants is built from them, and a live object is decoded
into them, which leaves out every field that is not ours to compare. A field that is None is not ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from operator_runtime import Fields


class OwnerRef(Fields, frozen=True, omit_defaults=True):
    """`metadata.ownerReferences[]`."""

    entry_key: ClassVar[str] = "uid"

    apiVersion: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    blockOwnerDeletion: bool | None = None


def controller_of(owners: Iterable[OwnerRef] | None) -> OwnerRef | None:
    """The owner that controls an object, if it has one."""
    for owner in owners or ():
        if owner.controller:
            return owner
    return None


class ObjectMeta(Fields, frozen=True, omit_defaults=True):
    """`metadata`, as far as it is read or written."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resourceVersion: str | None = None
    generation: int | None = None
    deletionTimestamp: str | None = None
    finalizers: tuple[str, ...] | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    ownerReferences: tuple[OwnerRef, ...] | None = None


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


class SeccompProfile(Fields, frozen=True, omit_defaults=True):
    """`securityContext.seccompProfile`."""

    type: str | None = None


class PodSecurity(Fields, frozen=True, omit_defaults=True):
    """`securityContext` of a pod."""

    # A user id that was wanted once, and is none any more.
    absent: ClassVar[tuple[str, ...]] = ("runAsUser", "runAsGroup")

    runAsNonRoot: bool | None = None
    runAsUser: int | None = None
    runAsGroup: int | None = None
    seccompProfile: SeccompProfile | None = None


class PodSpec(Fields, frozen=True, omit_defaults=True):
    """`spec` of a pod template."""

    automountServiceAccountToken: bool | None = None
    securityContext: PodSecurity | None = None
    containers: tuple[Container, ...] | None = None


class PodTemplate(Fields, frozen=True, omit_defaults=True):
    """`spec.template` of a Deployment."""

    metadata: ObjectMeta | None = None
    spec: PodSpec | None = None


class LabelSelector(Fields, frozen=True, omit_defaults=True):
    """`spec.selector` of a Deployment."""

    matchLabels: dict[str, str] | None = None


class DeploymentSpec(Fields, frozen=True, omit_defaults=True):
    """`spec` of a Deployment."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate | None = None


class Deployment(Fields, frozen=True, omit_defaults=True):
    """A Deployment, as far as a Memcached has an opinion about it."""

    apiVersion: str | None = None
    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: DeploymentSpec = DeploymentSpec()


_encoder = msgspec.json.Encoder(order="deterministic")
_decode_deployment = msgspec.json.Decoder(Deployment).decode


def encode_deployment(deployment: Deployment) -> bytes:
    """Compact JSON, equal for equal Deployments."""
    return _encoder.encode(deployment)


def comparable(deployment: Deployment) -> bytes:
    """JSON of what is compared with a live object: all but kind and name, which cannot differ."""
    meta = deployment.metadata
    bare = ObjectMeta(labels=meta.labels, annotations=meta.annotations, ownerReferences=meta.ownerReferences)
    return _encoder.encode(Deployment(metadata=bare, spec=deployment.spec))


def decode_deployment(body: bytes) -> Deployment:
    """The inverse of `encode_deployment`."""
    return _decode_deployment(body)
