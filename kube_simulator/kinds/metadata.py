"""`metav1.ObjectMeta`: names, labels, annotations, finalizers and owners, which all kinds have alike.

Differs from Kubernetes: each cause is listed once, where an API server lists some two or four times.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from kube_simulator.errors import Cause
from kube_simulator.kinds.field_causes import at_least_zero, forbidden, invalid, required, too_long, unlike
from kube_simulator.kinds.name_validation import (
    Rule,
    dns_label,
    dns_subdomain,
    generated,
    label_value,
    path_segment,
    qualified_name,
)
from kube_simulator.resources import Resource
from kube_simulator.values import Json

_RULES_OF_NAMES: dict[str, Rule] = {
    "namespaces": dns_label,
    "services": dns_label,
    "statefulsets.apps": dns_label,
    "roles.rbac.authorization.k8s.io": path_segment,
    "rolebindings.rbac.authorization.k8s.io": path_segment,
    "clusterroles.rbac.authorization.k8s.io": path_segment,
    "clusterrolebindings.rbac.authorization.k8s.io": path_segment,
    # It must be made of the plural and the group, which are looked at with the rest of the CRD.
    "customresourcedefinitions.apiextensions.k8s.io": lambda _name: [],
}

# k8s.io/apimachinery/pkg/api/validation: TotalAnnotationSizeLimitB.
ANNOTATIONS_LIMIT_BYTES = 2**18
# k8s.io/apiserver/pkg/storage/names: what is generated has 63 characters at most, five of them drawn from those that
# make no words.
_GENERATED_LIMIT = 63
_DRAWN = 5
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_GROUPS_OF_STRICT_FINALIZERS = ("", "apps", "events.k8s.io", "rbac.authorization.k8s.io")
_EVENT_VERSIONS = ("v1", "events.k8s.io/v1", "events.k8s.io/v1beta1")


def generated_name(prefix: str, chance: random.Random | None = None) -> str:
    """A name from `generateName`, most likely one that nobody has; empty if there is no prefix."""
    if not prefix:
        return ""
    drawn = (chance or random).choices(_ALPHABET, k=_DRAWN)
    return prefix[: _GENERATED_LIMIT - _DRAWN] + "".join(drawn)


def generated_from(prefix: str, name: str) -> bool:
    """Report whether a name has the form of one that was made from this `generateName`."""
    start = prefix[: _GENERATED_LIMIT - _DRAWN]
    return bool(prefix) and name.startswith(start) and len(name) == len(start) + _DRAWN


def metadata_problems(resource: Resource, new: Json, old: Json | None) -> list[Cause]:
    """List what is wrong with an object's metadata; a name is checked when the object is created."""
    metadata = new.get("metadata") or {}
    found: list[Cause] = []
    if old is None:
        found += _name_problems(_RULES_OF_NAMES.get(resource.full_name, dns_subdomain), metadata)
    found += at_least_zero("metadata.generation", metadata.get("generation"))
    found += label_problems(metadata.get("labels") or {}, "metadata.labels")
    found += annotation_problems(metadata.get("annotations") or {}, "metadata.annotations")
    found += _owner_problems(metadata.get("ownerReferences") or [])
    finalizers = metadata.get("finalizers") or []
    found += _finalizer_problems(finalizers, strict=resource.group in _GROUPS_OF_STRICT_FINALIZERS)
    if old is not None and "deletionTimestamp" in old["metadata"]:
        found += _late_finalizers(finalizers, old["metadata"].get("finalizers") or [])
    return found


def label_problems(labels: Json, field: str) -> list[Cause]:
    """Keys and values that labels may not have."""
    found = []
    for key, value in labels.items():
        found += unlike(field, key, qualified_name(key)) + unlike(field, value, label_value(value))
    return found


def annotation_problems(annotations: Json, field: str) -> list[Cause]:
    """Keys that annotations may not have, and more than fits."""
    found = []
    for key in annotations:
        found += unlike(field, key, qualified_name(key.lower()))
    size_bytes = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size_bytes > ANNOTATIONS_LIMIT_BYTES:
        found.append(too_long(field, ANNOTATIONS_LIMIT_BYTES))
    return found


def _name_problems(rule: Rule, metadata: Json) -> list[Cause]:
    name, prefix = metadata.get("name") or "", metadata.get("generateName") or ""
    found = unlike("metadata.generateName", prefix, generated(rule)(prefix)) if prefix else []
    if not name:
        return [*found, required("metadata.name", "name or generateName is required")]
    return found + unlike("metadata.name", name, rule(name))


def _owner_problems(references: list[Json]) -> list[Cause]:
    field = "metadata.ownerReferences"
    found: list[Cause] = []
    for reference in references:
        found += _reference_problems(reference, field)
    first, *more = [f"{each.get('kind')}/{each.get('name')}" for each in references if each.get("controller")] or [""]
    for another in more:
        why = "Only one reference can have Controller set to true."
        found.append(invalid(field, references, f'{why} Found "true" in references for {first} and {another}'))
    return found


def _reference_problems(reference: Json, field: str) -> list[Cause]:
    found: list[Cause] = []
    api_version, kind = reference.get("apiVersion") or "", reference.get("kind") or ""
    group, _, version = api_version.rpartition("/")
    if not version or "/" in group:
        found.append(invalid(f"{field}.apiVersion", api_version, "version must not be empty"))
    for key in ("kind", "name", "uid"):
        if not reference.get(key):
            found.append(invalid(f"{field}.{key}", "", "must not be empty"))
    if kind == "Event" and api_version in _EVENT_VERSIONS:
        why = f"{group}/{version}, Kind={kind} is disallowed from being an owner"
        found.append(invalid(field, reference, why))
    return found


def _finalizer_problems(finalizers: Sequence[str], *, strict: bool) -> list[Cause]:
    field = "metadata.finalizers"
    found = []
    for finalizer in finalizers:
        found += unlike(field, finalizer, qualified_name(finalizer))
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        found.append(invalid(field, list(finalizers), "finalizer orphan and foregroundDeletion cannot be both set"))
    if strict:
        found += unqualified_finalizers(finalizers, field)
    return found


def unqualified_finalizers(finalizers: Sequence[str], field: str) -> list[Cause]:
    """Finalizers that are neither Kubernetes' own nor say by a prefix whose they are."""
    why = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid(f"{field}[{index}]", each, why)
        for index, each in enumerate(finalizers)
        if "/" not in each and each not in _STANDARD_FINALIZERS
    ]


def _late_finalizers(finalizers: Sequence[str], before: Sequence[str]) -> list[Cause]:
    late = sorted(set(finalizers) - set(before))
    if not late:
        return []
    listed = ", ".join(f'"{each}"' for each in late)
    why = "no new finalizers can be added if the object is being deleted, found new finalizers"
    return [forbidden("metadata.finalizers", f"{why} []string{{{listed}}}")]
