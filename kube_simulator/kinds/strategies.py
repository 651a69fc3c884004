"""Strategies by which objects are written: one for each built-in kind, and one for all custom resources.

Differs from Kubernetes: a PodDisruptionBudget is kept as its schema says, and its status counts nothing.
"""

from __future__ import annotations

from kube_simulator.errors import Cause
from kube_simulator.kinds import (
    configuration,
    custom_resource_definitions,
    events,
    go_types,
    leases,
    namespaces,
    network_policies,
    pods,
    rbac,
    services,
    stateful_sets,
    workloads,
)
from kube_simulator.kinds.compaction import compact_object
from kube_simulator.kinds.kind_strategy import (
    Strategy,
    counted,
    plain,
    tidy,
    with_generation,
    with_status,
    with_subresource,
)
from kube_simulator.resources import Resource
from kube_simulator.schema import structural
from kube_simulator.values import Json

__all__ = ["Strategy", "strategy_of"]

_BUILT_IN: dict[str, Strategy] = {
    "configmaps": configuration.CONFIG_MAP,
    "secrets": configuration.SECRET,
    "namespaces": namespaces.NAMESPACE,
    "pods": pods.STRATEGY,
    "services": services.STRATEGY,
    "events": events.STRATEGY,
    "events.events.k8s.io": events.STRATEGY,
    "deployments.apps": workloads.DEPLOYMENT,
    "replicasets.apps": workloads.REPLICA_SET,
    "statefulsets.apps": stateful_sets.STRATEGY,
    "networkpolicies.networking.k8s.io": network_policies.STRATEGY,
    "leases.coordination.k8s.io": leases.STRATEGY,
    "customresourcedefinitions.apiextensions.k8s.io": custom_resource_definitions.STRATEGY,
    f"roles.{rbac.GROUP}": rbac.ROLE,
    f"clusterroles.{rbac.GROUP}": rbac.ROLE,
    f"rolebindings.{rbac.GROUP}": rbac.BINDING,
    f"clusterrolebindings.{rbac.GROUP}": rbac.BINDING,
}


def strategy_of(resource: Resource) -> Strategy:
    """The strategy of a resource. A kind of which nothing is known here keeps what it is given and is not empty."""
    if resource.custom:
        return _custom(resource)
    known = _BUILT_IN.get(resource.full_name)
    if known is not None:
        return known
    type = go_types.type_of(resource.api_version, resource.kind)
    if "status" in resource.subresources:
        return with_subresource(lambda new: compact_object(new, type), first_status={})
    return plain(lambda new: compact_object(new, type))


def _custom(resource: Resource) -> Strategy:
    """Make a custom resource's strategy: with a status subresource, each path writes its own part and no other."""
    divided = "status" in resource.subresources

    def default(new: Json) -> Json:
        filled = structural.default(resource.schema, new)
        assert isinstance(filled, dict)
        return filled

    def prepare_create(new: Json) -> Json:
        new = tidy(new)
        return with_generation(with_status(new, None) if divided else new, 1)

    def prepare_update(new: Json, old: Json, subresource: str) -> Json:
        new = default(tidy(new))
        if not divided:
            return counted(new, old, besides=("metadata",))
        if subresource != "status":
            return counted(with_status(new, old.get("status")), old)
        metadata = {key: value for key, value in old["metadata"].items() if key != "managedFields"}
        if "managedFields" in new["metadata"]:
            metadata["managedFields"] = new["metadata"]["managedFields"]
        return with_status({**old, "metadata": metadata}, new.get("status"))

    return Strategy(prepare_create, prepare_update, default, _nothing_more)


def _nothing_more(_new: Json, _old: Json | None) -> list[Cause]:
    """The schema says what a custom resource may be."""
    return []
