"""Namespaces: their finalizers, their phase, and the label with their name."""

from __future__ import annotations

from dataclasses import replace

from kube_simulator.errors import Cause
from kube_simulator.kinds.compaction import CORE_V1, compact
from kube_simulator.kinds.field_causes import invalid
from kube_simulator.kinds.kind_strategy import Strategy, tidy, with_status, with_subresource
from kube_simulator.kinds.metadata import unqualified_finalizers
from kube_simulator.values import Json

NAME_LABEL = "kubernetes.io/metadata.name"
_FINALIZER = "kubernetes"


def _default_namespace(new: Json) -> Json:
    metadata, spec = new["metadata"], compact(new.get("spec") or {}, f"{CORE_V1}NamespaceSpec")
    status = compact(new.get("status") or {}, f"{CORE_V1}NamespaceStatus")
    if metadata.get("name"):
        metadata = {**metadata, "labels": {**(metadata.get("labels") or {}), NAME_LABEL: metadata["name"]}}
    return {**new, "metadata": metadata, "spec": spec, "status": status}


_NAMESPACE = with_subresource(_default_namespace, first_status={"phase": "Active"}, generation=False)


def _complete_namespace(new: Json, old: Json | None) -> Json:
    finalizers = new["spec"].get("finalizers") or []
    if old is not None or _FINALIZER in finalizers:
        return new
    return {**new, "spec": {"finalizers": [*finalizers, _FINALIZER]}}


def _update_namespace(new: Json, old: Json, subresource: str) -> Json:
    """The finalizers of the spec change by `/finalize` alone."""
    if subresource == "finalize":
        spec = compact(new.get("spec") or {}, f"{CORE_V1}NamespaceSpec")
        return with_status({**tidy(new), "spec": spec}, old.get("status"))
    return {**_NAMESPACE.prepare_update(new, old, subresource), "spec": old.get("spec", {})}


def _namespace_problems(new: Json, old: Json | None) -> list[Cause]:
    finalizers = (new.get("spec") or {}).get("finalizers") or []
    found = [replace(each, field="spec.finalizers") for each in unqualified_finalizers(finalizers, "")]
    phase, deleted = (new.get("status") or {}).get("phase"), "deletionTimestamp" in new["metadata"]
    if old is None or new.get("status") == old.get("status"):
        return found
    if deleted and phase != "Terminating":
        why = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        found.append(invalid("status.Phase", phase, why))
    if not deleted and phase != "Active":
        found.append(invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty"))
    return found


NAMESPACE = Strategy(
    _NAMESPACE.prepare_create, _update_namespace, _default_namespace, _namespace_problems, _complete_namespace
)
