"""Pure: all that a Memcached wants beside its servers, one object of each kind at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memcached_operator.memcached.spec import Spec
from memcached_operator.memcached.wanted.budget import budget
from memcached_operator.memcached.wanted.common import Manifest
from memcached_operator.memcached.wanted.network_policy import network_policy
from memcached_operator.memcached.wanted.server_list import publication, publication_name
from memcached_operator.memcached.wanted.service import service


class Wanted(NamedTuple):
    """What is wanted of one kind.

    Attributes:
        kind: of the object.
        name: the object's, also of one that is not wanted.
        manifest: None where none is wanted.
    """

    kind: str
    name: str
    manifest: Manifest | None


def beside(
    name: str,
    namespace: str,
    uid: str,
    spec: Spec,
    servers: Sequence[str],
    operator_namespace: str = "",
    *,
    named: bool | None = None,
) -> Iterator[Wanted]:
    """What a Memcached of that name, namespace and uid wants, in the order in which it is made.

    Args:
        servers: `host:port` of each that is listed.
        operator_namespace: where the operator's own pods are, "" where it runs in no pod.
        named: clients know its servers by names; None: as the specification asks for.
    """
    named = spec.workload == "StatefulSet" if named is None else named
    yield Wanted("Service", name, service(name, namespace, uid, spec, named=named))
    yield Wanted("PodDisruptionBudget", name, budget(name, namespace, uid, spec))
    yield Wanted("NetworkPolicy", name, network_policy(name, namespace, uid, spec, operator_namespace))
    yield Wanted("ConfigMap", publication_name(name), publication(name, namespace, uid, spec, servers))
