"""Namespaces: their finalizers, their phase, and the label with their name.

Differs from Kubernetes: any phase may be written into a status.
"""

from __future__ import annotations

from typing import Final

from kube_simulator.kinds.compaction import CORE_V1, compact
from kube_simulator.kinds.kind_strategy import Strategy, nothing_wrong, tidy, with_status, with_subresource
from kube_simulator.values import Json

NAME_LABEL: Final = "kubernetes.io/metadata.name"
_FINALIZER: Final = "kubernetes"


def _default(new: Json) -> Json:
    metadata, spec = new["metadata"], compact(new.get("spec") or {}, f"{CORE_V1}NamespaceSpec")
    status = compact(new.get("status") or {}, f"{CORE_V1}NamespaceStatus")
    if metadata.get("name"):
        metadata = {**metadata, "labels": {**(metadata.get("labels") or {}), NAME_LABEL: metadata["name"]}}
    return {**new, "metadata": metadata, "spec": spec, "status": status}


_BASE: Final = with_subresource(_default, first_status={"phase": "Active"}, generation=False)


def _complete(new: Json, old: Json | None) -> Json:
    finalizers = new["spec"].get("finalizers") or []
    if old is not None or _FINALIZER in finalizers:
        return new
    return {**new, "spec": {"finalizers": [*finalizers, _FINALIZER]}}


def _prepare_update(new: Json, old: Json, subresource: str) -> Json:
    """The finalizers of the spec change by `/finalize` alone."""
    if subresource == "finalize":
        spec = compact(new.get("spec") or {}, f"{CORE_V1}NamespaceSpec")
        return with_status({**tidy(new), "spec": spec}, old.get("status"))
    return {**_BASE.prepare_update(new, old, subresource), "spec": old.get("spec", {})}


NAMESPACE: Final = Strategy(_BASE.prepare_create, _prepare_update, _default, nothing_wrong, _complete)
