"""Names, labels and annotations by which the parts of a Memcached are known."""

from __future__ import annotations

from typing import Final, NamedTuple

from memcached_operator.api import names

CONTAINER: Final = names.CONTAINER
PORT: Final = names.PORT
PORT_NAME: Final = names.PORT_NAME
PEERS_PORT: Final = names.PEERS_PORT
OWNER_UID_ANNOTATION: Final = f"{names.GROUP}/memcached-uid"
"""Has for which Memcached (its uid) an object was created. By it one that lost its ownerReference is still known as
owned, and a foreign one never is."""
RESTORED_ANNOTATION: Final = f"{names.GROUP}/restored-from"
"""Of a Memcached: the uid of the one in whose place it was restored from a backup. What was made for that one and has
no owner is adopted."""
APPLIED_ANNOTATION: Final = f"{names.GROUP}/applied"
"""From which specification an object was made, as far as it depends on it: by it is seen what was taken out again. Of
a ConfigMap: the digest of its list."""
TEMPLATE_ANNOTATION: Final = f"{names.GROUP}/template"
"""Of a pod template: the digest of all in it that only a new pod takes on."""
MEMORY_ANNOTATION: Final = f"{names.GROUP}/memory"
"""Of a pod template: `spec.memory`, which a running server can be given as well."""
TRANSPORT_ANNOTATION: Final = f"{names.GROUP}/transport"
"""Of a pod template: how the servers are spoken to, where that is not in plain text, without a password and on the port
of clients."""
WARM_ANNOTATION: Final = f"{names.GROUP}/warm-restart"
"""Of a pod template whose servers keep their items over a restart: the digest of all in it that a container which
starts again in its pod does not take on, so of all but the image and what requests a restart."""
IMAGE_ANNOTATION: Final = f"{names.GROUP}/image"
"""Of such a template: the image of its servers. A pod that has another one was given it when it was created, as by a
webhook that names a mirror."""
RESTART_ANNOTATION: Final = f"{names.GROUP}/restart"
"""Of a Memcached, and of its pod template: requests a restart of each server, whenever its text changes."""
IN_PLACE_ANNOTATION: Final = f"{names.GROUP}/in-place"
"""Of a pod that is being changed in place: to what, since when, and how often its memcached had been started again by
then."""
PEERS_ANNOTATION: Final = f"{names.GROUP}/peers"
"""Of a pod whose server hands over: from which others it fills itself, as `handover.peers` writes it."""
OUTDATED_ITEMS_ANNOTATION: Final = f"{names.GROUP}/outdated-items"
"""Likewise: others may have changed what it has, without its knowledge, so that it is to lose its items."""
HOLDER_ANNOTATION: Final = f"{names.GROUP}/holder"
"""Of a pod that was made while another held the items of the server in its place: the uid of that one's pod. Of the
holder: the name and the uid of the pod whose items it holds. See `holder`."""
POD_ANNOTATIONS: Final = (IN_PLACE_ANNOTATION, PEERS_ANNOTATION, OUTDATED_ITEMS_ANNOTATION, HOLDER_ANNOTATION)
"""Of pods alone, but for the time of a move. Of a template that another client wrote one into, each new pod would have
it."""
REVISION_LABEL: Final = "controller-revision-hash"
"""Of a pod of a StatefulSet: of which of its templates it is."""
RESTARTED_ANNOTATION: Final = "kubectl.kubernetes.io/restartedAt"
"""Of a pod template: what `kubectl rollout restart` writes."""
POD_SELECTOR: Final = "app=memcached,memcached_cr"
"""Which objects are watched of kinds that others have many of: those of any Memcached."""


ENDPOINT_SUFFIX: Final = "-discovery"
"""In the names of the objects of a Memcached's endpoint, after the Memcached's."""


class MemcachedOwner(NamedTuple):
    """Owner of objects: the part of a Memcached that they name."""

    name: str
    namespace: str
    uid: str


def selector_labels(name: str) -> dict[str, str]:
    """The labels by which pods are found. The selector of a workload can never change, so neither may these."""
    return {"app": "memcached", "memcached_cr": name}


def endpoint_label(name: str) -> str:
    """The label `memcached_cr` of the pods of an endpoint, by the Memcached's name: no Memcached can be called so."""
    return name + ENDPOINT_SUFFIX.replace("-", ".")


def selector_text(name: str) -> str:
    """`selector_labels` as the scale subresource and `kubectl get pods --selector` take them."""
    return f"app=memcached,memcached_cr={name}"


def labels(name: str) -> dict[str, str]:
    """Return all labels of a Memcached's objects: the selector's and the recommended ones."""
    return {
        **selector_labels(name),
        "app.kubernetes.io/component": "cache",
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/managed-by": "memcached-operator",
        "app.kubernetes.io/name": "memcached",
    }


def server(name: str, namespace: str, ordinal: int) -> str:
    """`host:port` of a StatefulSet's server, by the name that it keeps."""
    return f"{name}-{ordinal}.{name}.{namespace}.svc:{PORT}"


EXTSTORE: Final = "extstore"
"""Name of the volume; the claim of a pod is called like the pod, "-" and this."""
SCRIPTS_INFIX: Final = "-scripts-"
"""In the name of the ConfigMap with a pod's scripts, between the Memcached's name and the digest of its content."""
