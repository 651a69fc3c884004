"""Pure: a Memcached -> the Deployment or the StatefulSet that it wants."""

from __future__ import annotations

from memcached_operator.api.names import Workload
from memcached_operator.memcached.labels import TAKEN_ANNOTATION, metadata, selector_labels
from memcached_operator.memcached.spec import Pod
from memcached_operator.memcached.taken import present, taken
from memcached_operator.memcached.workloads.objects import LabelSelector, WorkloadManifest, WorkloadSpec
from memcached_operator.memcached.workloads.template import NO_OPTIONS, USER_ID, template


def workload(
    kind: Workload,
    name: str,
    namespace: str,
    uid: str,
    size: int,
    image: str,
    user_id: int | None = USER_ID,
    pod: Pod = NO_OPTIONS,
) -> WorkloadManifest:
    """What runs the servers of a Memcached of that name, namespace and uid.

    Args:
        kind: a StatefulSet's servers keep their names; it is governed by the Service of the Memcached's name.
        size: pods to run, 0 or more.
        image: container image.
        user_id: user and group of the pods; None leaves both to the image, or to what admits the pods.
        pod: what the user passes through.
    """
    passed = taken(present(pod))
    named = kind == "StatefulSet"
    return WorkloadManifest(
        apiVersion="apps/v1",
        kind=kind,
        metadata=metadata(name, namespace, uid, annotations={TAKEN_ANNOTATION: passed} if passed else None),
        spec=WorkloadSpec(
            replicas=size,
            selector=LabelSelector(selector_labels(name)),
            template=template(name, image, user_id, pod),
            serviceName=name if named else None,
            # All at once: servers know nothing of each other, and one that does not start keeps no other from it.
            podManagementPolicy="Parallel" if named else None,
        ),
    )
