"""`metav1.ObjectMeta`: names, labels, annotations, finalizers and owners, which all kinds have alike."""

from __future__ import annotations

import random
from typing import Final

from kube_simulator.errors import Cause
from kube_simulator.names import (
    Rule,
    dns_label,
    dns_subdomain,
    generated,
    label_value,
    path_segment,
    qualified_name,
)
from kube_simulator.resources import Resource
from kube_simulator.schema.causes import forbidden, invalid, required, unlike
from kube_simulator.values import Json

_RBAC: Final = "rbac.authorization.k8s.io"
_RULES_OF_NAMES: Final[dict[str, Rule]] = {
    **dict.fromkeys(("namespaces", "services", "statefulsets.apps"), dns_label),
    **{f"{each}.{_RBAC}": path_segment for each in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")},
    # It must be made of the plural and the group, which are looked at with the rest of the CRD.
    "customresourcedefinitions.apiextensions.k8s.io": lambda _name: "",
}
# k8s.io/apiserver/pkg/storage/names: what is generated has 63 characters at most, five of them drawn from those that
# make no words.
_GENERATED_LIMIT: Final = 63
_DRAWN: Final = 5
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"


def generated_name(prefix: str) -> str:
    """A name from `generateName`, most likely one that nobody has; empty if there is no prefix."""
    if not prefix:
        return ""
    drawn = random.choices(_ALPHABET, k=_DRAWN)
    return prefix[: _GENERATED_LIMIT - _DRAWN] + "".join(drawn)


def metadata_problems(resource: Resource, new: Json, old: Json | None) -> list[Cause]:
    """List what is wrong with an object's metadata; a name is checked when the object is created."""
    metadata = new.get("metadata") or {}
    found = _name_problems(_RULES_OF_NAMES.get(resource.full_name, dns_subdomain), metadata) if old is None else []
    found += label_problems(metadata.get("labels") or {}, "metadata.labels")
    annotations, finalizers = metadata.get("annotations") or {}, metadata.get("finalizers") or []
    for key in annotations:
        found += unlike("metadata.annotations", key, qualified_name(key.lower()))
    for finalizer in finalizers:
        found += unlike("metadata.finalizers", finalizer, qualified_name(finalizer))
    if old is not None and "deletionTimestamp" in old["metadata"]:
        late = sorted(set(finalizers) - set(old["metadata"].get("finalizers") or ()))
        why = f"no new finalizers can be added if the object is being deleted, found new finalizers {late}"
        found += [forbidden("metadata.finalizers", why)] if late else []
    return found + _owner_problems(metadata.get("ownerReferences") or [])


def label_problems(labels: Json, field: str) -> list[Cause]:
    """Keys and values that labels may not have."""
    return [
        cause
        for key, value in labels.items()
        for cause in (*unlike(field, key, qualified_name(key)), *unlike(field, value, label_value(value)))
    ]


def _name_problems(rule: Rule, metadata: Json) -> list[Cause]:
    name, prefix = metadata.get("name") or "", metadata.get("generateName") or ""
    found = unlike("metadata.generateName", prefix, generated(rule)(prefix)) if prefix else []
    if not name:
        return [*found, required("metadata.name", "name or generateName is required")]
    return found + unlike("metadata.name", name, rule(name))


def _owner_problems(references: list[Json]) -> list[Cause]:
    field = "metadata.ownerReferences"
    found = [
        invalid(f"{field}.{key}", "", "must not be empty")
        for reference in references
        for key in ("apiVersion", "kind", "name", "uid")
        if not reference.get(key)
    ]
    if sum(bool(each.get("controller")) for each in references) > 1:
        found.append(invalid(field, references, "Only one reference can have Controller set to true"))
    return found
