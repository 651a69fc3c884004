"""Pure: a Memcached -> the Deployment that it wants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

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
    OwnerReference,
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
    owner = OwnerReference(API_VERSION, KIND, name, uid, controller=True, blockOwnerDeletion=True)
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


# An etcd never hands out resourceVersion 1 for an object (an empty one is at revision 1): an apply that carries it can
# only create. On an object that exists, whoever's, it is answered 409 before anything is changed.
_MUST_NOT_EXIST = "1"


def create_body(wanted: Deployment) -> object:
    """The body of an apply that creates `wanted`, or is answered 409."""
    return _with(wanted, msgspec.structs.replace(wanted.metadata, resourceVersion=_MUST_NOT_EXIST))


def update_body(wanted: Deployment, uid: str) -> object:
    """The body of an apply that changes the Deployment of that uid and no other, nor makes one."""
    return _with(wanted, msgspec.structs.replace(wanted.metadata, uid=uid))


def ports_patch(wanted: Deployment) -> dict[str, object]:
    """A strategic merge patch of a pod's spec that makes the container's ports ours alone."""
    template = wanted.spec.template
    pod = template.spec if template else None
    (container,) = (pod.containers if pod else None) or ()
    ports = [{"$patch": "replace"}, *msgspec.to_builtins(container.ports)]
    return {"containers": [{"name": container.name, "ports": ports}]}


def no_ids_patch(fields: Iterable[str]) -> dict[str, object]:
    """A strategic merge patch of a pod's spec that takes these fields out of its securityContext, whoever set them."""
    return {"securityContext": dict.fromkeys(fields)}


def pod_spec_patch(uid: str, patch: Mapping[str, object]) -> object:
    """The patch of the pods' spec as one of the Deployment of that uid."""
    return {"metadata": {"uid": uid}, "spec": {"template": {"spec": patch}}}


def scale_patch(uid: str, replicas: int) -> object:
    """A merge patch of the replicas alone, on the Deployment of that uid: half the API server's cost of an apply."""
    return {"metadata": {"uid": uid}, "spec": {"replicas": replicas}}


def _with(wanted: Deployment, metadata: ObjectMeta) -> object:
    return msgspec.to_builtins(msgspec.structs.replace(wanted, metadata=metadata))
