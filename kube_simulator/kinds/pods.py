"""Pods: what is filled in.

Differs from Kubernetes: of a pod, and of a template of pods, the shape alone is checked, by the schema, and any of it
may change later. A pod has no priority, no quality of service, no tolerations and no volume with a token.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kube_simulator.kinds.compaction import CORE_V1, compact
from kube_simulator.kinds.defaults import defaulted_spec
from kube_simulator.kinds.kind_strategy import Strategy, with_subresource
from kube_simulator.values import Json, completed, mapped, shared


def _default(new: Json) -> Json:
    given = compact(new.get("spec"), f"{CORE_V1}PodSpec")
    spec = {"enableServiceLinks": True, **defaulted_spec(given)}
    spec |= {key: mapped(_requesting, spec[key]) for key in ("initContainers", "containers") if spec.get(key)}
    status = compact(new.get("status"), f"{CORE_V1}PodStatus")
    return {**new, "spec": shared(spec, given), **({"status": status} if status else {})}


def _requesting(container: Json) -> Json:
    """Request up to its limit what is limited and not requested."""
    resources = container["resources"]
    requests = completed(resources.get("requests", {}), resources.get("limits") or {})
    if not requests:
        return container
    return shared({**container, "resources": shared({**resources, "requests": requests}, resources)}, container)


def _complete(new: Json, old: Json | None) -> Json:
    """Add what the admission plugin ServiceAccount puts in."""
    account = new["spec"].get("serviceAccountName") or "default"
    more = {"serviceAccountName": account, "serviceAccount": account} if old is None else {}
    return {**new, "spec": completed(new["spec"], more)}


_BASE: Final = with_subresource(_default, first_status={"phase": "Pending"}, kept_on_status=("ownerReferences",))
STRATEGY: Final[Strategy] = replace(
    _BASE, prepare_create=lambda new: _default(_BASE.prepare_create(new)), complete=_complete
)
