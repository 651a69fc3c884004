"""Pods: what is filled in when one is created, and what of it may change later.

Differs from Kubernetes: a pod has no priority, no quality of service, no tolerations and no volume with a token; a
refused change of the spec does not show what has changed.
"""

from __future__ import annotations

from kube_simulator.errors import Cause
from kube_simulator.kinds.compaction import CORE_V1, compact
from kube_simulator.kinds.kind_strategy import Strategy, with_subresource
from kube_simulator.kinds.pod_defaults import defaulted_spec
from kube_simulator.kinds.pod_specs import spec_problems
from kube_simulator.kinds.sharing import completed, mapped, shared
from kube_simulator.schema.causes import forbidden
from kube_simulator.values import Json

_MUTABLE = "pod updates may not change fields other than images, activeDeadlineSeconds and tolerations"


def _default(new: Json) -> Json:
    given = compact(new.get("spec") or {}, f"{CORE_V1}PodSpec")
    spec = {"enableServiceLinks": True, **defaulted_spec(given)}
    for key in ("initContainers", "containers"):
        if spec.get(key):
            spec[key] = mapped(_requesting, spec[key])
    spec = shared(spec, given)
    status = compact(new.get("status") or {}, f"{CORE_V1}PodStatus")
    return {**new, "spec": spec, **({"status": status} if status else {})}


def _requesting(container: Json) -> Json:
    """Request up to its limit what is limited and not requested."""
    resources = container["resources"]
    limits = resources.get("limits")
    if not limits:
        return container
    requests = completed(resources.get("requests", {}), limits)
    return shared({**container, "resources": shared({**resources, "requests": requests}, resources)}, container)


_BASE = with_subresource(_default, first_status={"phase": "Pending"}, kept_on_status=("ownerReferences",))


def _prepare_create(new: Json) -> Json:
    return _default(_BASE.prepare_create(new))


def _complete(new: Json, old: Json | None) -> Json:
    """Add what the admission plugin ServiceAccount puts in."""
    if old is not None:
        return new
    account = new["spec"].get("serviceAccountName") or "default"
    return {**new, "spec": {**new["spec"], "serviceAccountName": account, "serviceAccount": account}}


def _validate(new: Json, old: Json | None) -> list[Cause]:
    if old is None:
        return spec_problems(new["spec"], "spec")
    if new["spec"] == old["spec"]:
        return []
    return spec_problems(new["spec"], "spec") + _update_problems(new["spec"], old["spec"])


def _update_problems(new: Json, old: Json) -> list[Cause]:
    for key in ("containers", "initContainers"):
        if len(new.get(key, [])) != len(old.get(key, [])):
            return [forbidden(f"spec.{key}", "pod updates may not add or remove containers")]
    if _immutable(new) != _immutable(old):
        return [forbidden("spec", _MUTABLE)]
    return []


def _immutable(spec: Json) -> Json:
    """The part of a spec that may not change."""
    rest = {key: value for key, value in spec.items() if key not in ("activeDeadlineSeconds", "tolerations")}
    for key in ("containers", "initContainers"):
        rest[key] = [{name: each[name] for name in each if name != "image"} for each in spec.get(key, [])]
    return rest


STRATEGY = Strategy(_prepare_create, _BASE.prepare_update, _default, _validate, _complete)
