"""Kinds of which there is little to say: ConfigMaps and Secrets, namespaces, Leases, NetworkPolicies, roles and
bindings, CustomResourceDefinitions.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Final

from kube_simulator.errors import Cause, not_implemented
from kube_simulator.kinds.compaction import compact, compact_object
from kube_simulator.kinds.defaults import Within, filled
from kube_simulator.kinds.kind_strategy import Strategy, plain, tidy, with_status, with_subresource
from kube_simulator.schema import custom
from kube_simulator.schema.causes import IMMUTABLE, forbidden, invalid
from kube_simulator.values import Json

_RBAC: Final = "rbac.authorization.k8s.io"
_FINALIZER: Final = "kubernetes"
_PORTS: Final = Within({"ports": Within({"protocol": "TCP"})})


def _default_config_map(new: Json) -> Json:
    return {key: value for key, value in new.items() if value or key not in ("data", "binaryData")}


def _default_secret(new: Json) -> Json:
    texts = new.get("stringData") or {}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
    data = {key: value or "" for key, value in {**(new.get("data") or {}), **encoded}.items()}
    rest = {key: value for key, value in new.items() if key not in ("data", "stringData", "type")}
    return {**rest, **({"data": data} if data else {}), "type": new.get("type") or "Opaque"}


def _data_problems(new: Json, old: Json | None) -> list[Cause]:
    found: list[Cause] = []
    if old is not None and new.get("type") != old.get("type"):
        found.append(invalid("type", new.get("type"), IMMUTABLE))
    if old is not None and old.get("immutable") is True:
        changed = [key for key in ("immutable", "data", "binaryData") if new.get(key) != old.get(key)]
        found += [forbidden(key, "field is immutable when `immutable` is set") for key in changed]
    return found


CONFIG_MAP: Final[Strategy] = plain(_default_config_map, _data_problems)
SECRET: Final[Strategy] = plain(_default_secret, _data_problems)


def _default_namespace(new: Json) -> Json:
    metadata, compacted = new["metadata"], compact_object(new)
    if name := metadata.get("name"):
        metadata = {**metadata, "labels": {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": name}}
    return {**compacted, "metadata": metadata}


def _complete_namespace(new: Json, old: Json | None) -> Json:
    finalizers = (new.get("spec") or {}).get("finalizers") or []
    if old is not None or _FINALIZER in finalizers:
        return new
    return {**new, "spec": {"finalizers": [*finalizers, _FINALIZER]}}


def _update_namespace(new: Json, old: Json, subresource: str) -> Json:
    """The finalizers of the spec change by `/finalize` alone."""
    if subresource == "finalize":
        return with_status({**tidy(new), "spec": compact(new.get("spec"))}, old.get("status"))
    return {**_NAMESPACE.prepare_update(new, old, subresource), "spec": old.get("spec", {})}


_NAMESPACE: Final = with_subresource(_default_namespace, first_status={"phase": "Active"}, generation=False)
NAMESPACE: Final = replace(_NAMESPACE, prepare_update=_update_namespace, complete=_complete_namespace)


def _default_lease(new: Json) -> Json:
    return {**new, "spec": compact(new.get("spec"))}


LEASE: Final[Strategy] = plain(_default_lease)


def _default_network_policy(new: Json) -> Json:
    spec = {"podSelector": {}, **compact(new.get("spec"))}
    types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    return {**new, "spec": filled({**spec, "policyTypes": types}, {"ingress": _PORTS, "egress": _PORTS})}


NETWORK_POLICY: Final[Strategy] = plain(_default_network_policy, generation=True)


def _default_role(new: Json) -> Json:
    # A rule without verbs shows that it has none; so does, in the end, a role without rules.
    return filled(compact_object(new), {"rules": Within({"verbs": []})})


def _default_binding(new: Json) -> Json:
    compacted = compact_object(new)
    if subjects := compacted.get("subjects"):
        group = {"apiGroup": _RBAC}
        compacted["subjects"] = [{**(group if each["kind"] in ("User", "Group") else {}), **each} for each in subjects]
    role = compacted["roleRef"]
    return {**compacted, "roleRef": {**role, "apiGroup": role.get("apiGroup") or _RBAC}}


def _role_problems(new: Json, _old: Json | None) -> list[Cause]:
    if new.get("aggregationRule") is not None:
        raise not_implemented("a ClusterRole that is put together from others (aggregationRule)")
    return []


ROLE: Final[Strategy] = replace(
    plain(_default_role, _role_problems), complete=lambda new, _old: {**new, "rules": new.get("rules") or None}
)
"""Of Roles and of ClusterRoles."""
BINDING: Final[Strategy] = plain(_default_binding)
"""Of RoleBindings and of ClusterRoleBindings."""


DEFINITION: Final = with_subresource(
    custom.defaulted,
    custom.problems_of,
    first_status={"conditions": None, "acceptedNames": {"plural": "", "kind": ""}},  # before anybody has looked at them
    kept_on_status=("labels", "annotations", "finalizers", "ownerReferences"),
)
