"""Pure: the auxiliary objects of a Memcached, which are all besides its servers: one of each kind at most."""

from __future__ import annotations

from collections.abc import Sequence

from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.labels import Owner
from memcached_operator.core.objects.object_types import Manifest
from memcached_operator.core.objects.service import service
from memcached_operator.features.disruption_budget.budget import budget
from memcached_operator.features.network_policy.network_policy import network_policy
from memcached_operator.features.published_list.server_list_configmap import publication


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
