"""Pure: the pods of a Memcached, as a template for its workload."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

from memcached_operator.memcached import labels
from memcached_operator.memcached.objects import ObjectMeta
from memcached_operator.memcached.spec import Pod
from memcached_operator.memcached.taken import as_kept, present
from memcached_operator.memcached.workloads.objects import (
    Capabilities,
    Container,
    ContainerPort,
    ContainerSecurity,
    PodSpec,
    PodTemplate,
)

# 64 MiB for items, the defaults that memcached calls modern, one line of log per connection. Written as two words each:
# "-m=64" makes memcached exit.
COMMAND: Final = ("memcached", "-m", "64", "-o", "modern", "-v")
# The user and group that the official image makes for itself, on Debian and on Alpine. By number, as runAsNonRoot
# cannot judge a name.
USER_ID: Final = 11211
# Of `spec.pod`: what is not the pod's specification as it stands there.
_ELSEWHERE: Final = ("labels", "annotations", "securityContext")
NO_OPTIONS: Final = Pod()


def template(name: str, image: str, user_id: int | None, pod: Pod = NO_OPTIONS) -> PodTemplate:
    """The pods of the Memcached of that name.

    Args:
        image: container image.
        user_id: user and group of the pods; None leaves both to the image, or to what admits the pods.
        pod: what the user passes through. Labels of ours stay.
    """
    meta = ObjectMeta(labels=(pod.labels or {}) | labels.labels(name), annotations=pod.annotations or None)
    if pod.securityContext is not None:
        user_id = None  # the user's own affair, or the cluster's
    spec = _pod_spec(image, user_id)
    if options := {field: value for field, value in present(pod).items() if field not in _ELSEWHERE}:
        # The former name of the field is filled in by the API server. Left to it, it would put back a name that is
        # taken out again.
        spec = msgspec.structs.replace(spec, **options, serviceAccount=options.get("serviceAccountName"))
    if pod.securityContext:
        security: dict[str, Any] = (spec.securityContext or {}) | as_kept(pod.securityContext)
        spec = msgspec.structs.replace(spec, securityContext=security)
    return PodTemplate(meta, spec)


@lru_cache(maxsize=64)  # most Memcacheds share an image, and frozen structs can be shared
def _pod_spec(image: str, user_id: int | None) -> PodSpec:
    """A pod that the `restricted` Pod Security profile admits."""
    user = {} if user_id is None else {"runAsUser": user_id, "runAsGroup": user_id}
    return PodSpec(
        automountServiceAccountToken=False,
        securityContext={"runAsNonRoot": True, **user, "seccompProfile": {"type": "RuntimeDefault"}},
        containers=(
            Container(
                name=labels.CONTAINER,
                image=image,
                command=COMMAND,
                args=(),  # ours, and empty: an argument that somebody adds is drift
                ports=(ContainerPort(labels.PORT, labels.PORT_NAME, "TCP"),),
                securityContext=ContainerSecurity(
                    allowPrivilegeEscalation=False,
                    capabilities=Capabilities(drop=("ALL",)),
                    readOnlyRootFilesystem=True,
                ),
            ),
        ),
    )
