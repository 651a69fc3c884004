"""Pure: the auxiliary objects of a Memcached, which are all besides its servers: one of each kind at most."""

from __future__ import annotations

from collections.abc import Sequence

from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.memcached.desired.budget import budget
from memcached_operator.memcached.desired.network_policy import network_policy
from memcached_operator.memcached.desired.object_types import Manifest
from memcached_operator.memcached.desired.server_list_configmap import publication
from memcached_operator.memcached.desired.service import service
from memcached_operator.memcached.labels import Owner


def auxiliary_objects(owner: Owner, spec: Spec, servers: Sequence[str], operator_namespace: str = "") -> list[Manifest]:
    """List all that a Memcached desires besides its servers, in the order in which it is created.

    Args:
        servers: `host:port` of each that is listed.
        operator_namespace: where the operator's own pods are, "" where it runs in no pod.
    """
    desired = (
        service(owner, spec, named=spec.workload == "StatefulSet"),
        budget(owner, spec),
        network_policy(owner, spec, operator_namespace),
        publication(owner, spec, servers),
    )
    return [each for each in desired if each is not None]
