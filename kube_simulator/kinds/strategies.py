"""Strategies by which objects are written: one for each built-in kind, and one for all custom resources."""

from __future__ import annotations

from typing import cast

from kube_simulator.kinds import events, services, simple_kinds, workloads
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

_BUILT_IN: dict[str, Strategy] = {
    "configmaps": simple_kinds.CONFIG_MAP,
    "secrets": simple_kinds.SECRET,
    "namespaces": simple_kinds.NAMESPACE,
    "pods": workloads.POD,
    "services": services.STRATEGY,
    "events": events.STRATEGY,
    "events.events.k8s.io": events.STRATEGY,
    "deployments.apps": workloads.DEPLOYMENT,
    "replicasets.apps": workloads.REPLICA_SET,
    "statefulsets.apps": workloads.STATEFUL_SET,
    "networkpolicies.networking.k8s.io": simple_kinds.NETWORK_POLICY,
    "leases.coordination.k8s.io": simple_kinds.LEASE,
    "customresourcedefinitions.apiextensions.k8s.io": simple_kinds.DEFINITION,
    **{f"{each}.rbac.authorization.k8s.io": simple_kinds.ROLE for each in ("roles", "clusterroles")},
    **{f"{each}.rbac.authorization.k8s.io": simple_kinds.BINDING for each in ("rolebindings", "clusterrolebindings")},
}
# A kind of which nothing is known here keeps what it is given and is not empty.
_OTHER = plain(compact_object)
_OTHER_WITH_STATUS = with_subresource(compact_object, first_status={})


def strategy_of(resource: Resource) -> Strategy:
    """The strategy of a resource."""
    if resource.custom:
        return _custom(resource)
    other = _OTHER_WITH_STATUS if "status" in resource.subresources else _OTHER
    return _BUILT_IN.get(resource.full_name, other)


def _custom(resource: Resource) -> Strategy:
    """Make a custom resource's strategy: with a status subresource, each path writes its own part and no other."""
    divided = "status" in resource.subresources

    def default(new: Json) -> Json:
        return cast(Json, structural.default(resource.schema, new))

    def prepare_create(new: Json) -> Json:
        new = tidy(new)
        return with_generation(with_status(new, None) if divided else new, 1)

    def prepare_update(new: Json, old: Json, subresource: str) -> Json:
        new = default(tidy(new))
        if not divided:
            return counted(new, old, besides=("metadata",))
        if subresource != "status":
            return counted(with_status(new, old.get("status")), old)
        entries = {"managedFields": new["metadata"].get("managedFields")}
        return tidy(with_status({**old, "metadata": old["metadata"] | entries}, new.get("status")))

    return Strategy(prepare_create, prepare_update, default)
