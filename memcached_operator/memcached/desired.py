"""Pure: a Memcached -> the Deployment that it wants."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from memcached_operator.api.names import API_VERSION, KIND
from memcached_operator.memcached.objects import (
    Capabilities,
    Container,
    ContainerPort,
    ContainerSecurity,
    Deployment,
    DeploymentSpec,
    LabelSelector,
    ObjectMeta,
    OwnerRef,
    PodSecurity,
    PodSpec,
    PodTemplate,
    SeccompProfile,
)

CONTAINER = "memcached"
PORT = 11211
# 64 MiB for items, the defaults that memcached calls modern, one line of log per connection. Written as two words each:
# "-m=64" makes memcached exit.
COMMAND = ("memcached", "-m", "64", "-o", "modern", "-v")
# The user and group that the official image makes for itself, on Debian and on Alpine. By number, as runAsNonRoot
# cannot judge a name.
USER_ID = 11211
# Says for which Memcached (its uid) a Deployment was made. By it a Deployment that lost its ownerReference is still
# known as ours, and a stranger's never is.
OWNER_UID_ANNOTATION = "cache.example.com/memcached-uid"
# Which pods are watched: those of any Memcached.
POD_SELECTOR = "app=memcached,memcached_cr"


def selector_labels(name: str) -> dict[str, str]:
    """The labels by which a Deployment finds its pods. Its selector can never change, so neither may these."""
    return {"app": "memcached", "memcached_cr": name}


def selector_text(name: str) -> str:
    """`selector_labels` as the scale subresource and `kubectl get pods --selector` take them."""
    return f"app=memcached,memcached_cr={name}"


def labels(name: str) -> dict[str, str]:
    """All labels of a Deployment and its pods: the selector's and the recommended ones."""
    return {
        **selector_labels(name),
        "app.kubernetes.io/component": "cache",
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/managed-by": "memcached-operator",
        "app.kubernetes.io/name": "memcached",
    }


def deployment(name: str, namespace: str, uid: str, size: int, image: str, user_id: int | None = USER_ID) -> Deployment:
    """The Deployment that a Memcached of that name, namespace and uid wants.

    Args:
        size: pods to run, 0 or more.
        image: container image.
        user_id: user and group of the pods; None leaves both to the image, or to what admits the pods.
    """
    all_labels = labels(name)
    owner = OwnerRef(API_VERSION, KIND, name, uid, controller=True, blockOwnerDeletion=True)
    return Deployment(
        apiVersion="apps/v1",
        kind="Deployment",
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            labels=all_labels,
            annotations={OWNER_UID_ANNOTATION: uid},
            ownerReferences=(owner,),
        ),
        spec=DeploymentSpec(
            replicas=size,
            selector=LabelSelector(selector_labels(name)),
            template=PodTemplate(ObjectMeta(labels=all_labels), _pod_spec(image, user_id)),
        ),
    )


@lru_cache(maxsize=64)  # most Memcacheds share an image, and frozen structs can be shared
def _pod_spec(image: str, user_id: int | None) -> PodSpec:
    """A pod that the `restricted` Pod Security profile admits."""
    return PodSpec(
        automountServiceAccountToken=False,
        securityContext=PodSecurity(
            runAsNonRoot=True,
            runAsUser=user_id,
            runAsGroup=user_id,
            seccompProfile=SeccompProfile("RuntimeDefault"),
        ),
        containers=(
            Container(
                name=CONTAINER,
                image=image,
                command=COMMAND,
                args=(),  # ours, and empty: an argument that somebody adds is drift
                ports=(ContainerPort(PORT, "memcached", "TCP"),),
                securityContext=ContainerSecurity(
                    allowPrivilegeEscalation=False,
                    capabilities=Capabilities(drop=("ALL",)),
                    readOnlyRootFilesystem=True,
                ),
            ),
        ),
    )


def body(wanted: Deployment) -> dict[str, Any]:
    """What is wanted, as a manifest has it."""
    found: dict[str, Any] = msgspec.to_builtins(wanted)
    return found
