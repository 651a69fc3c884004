"""Pods: what is filled in when one is created, what of it may change later, and its status.

Differs from Kubernetes: priority classes are not known, so that every pod has the priority 0; the name of the volume
with the token is derived from the pod's, not drawn; a refused change of the spec does not show what has changed.
"""

from __future__ import annotations

import hashlib
from decimal import Decimal

from kube_simulator.errors import Cause
from kube_simulator.kinds.compaction import CORE_V1, compact
from kube_simulator.kinds.kind_strategy import Strategy, with_subresource
from kube_simulator.kinds.pod_defaults import defaulted_spec
from kube_simulator.kinds.pod_specs import spec_problems
from kube_simulator.kinds.quantities import amount
from kube_simulator.kinds.sharing import completed, mapped, shared
from kube_simulator.schema.causes import forbidden
from kube_simulator.values import Json

# Where clients in pods look for their credential.
_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_VOLUME = "kube-api-access-"
# Longer than an hour by seven seconds, by which Kubernetes tells these tokens from others.
_TOKEN_EXPIRATION_S = 3607
_TOLERATED_S = 300
_OF_QUALITY = {"cpu", "memory"}
_MUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


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
    created = _default(_BASE.prepare_create(new))
    return {**created, "status": {"phase": "Pending", "qosClass": quality_of_service(created["spec"])}}


def _complete(new: Json, old: Json | None) -> Json:
    """Add what the admission plugins ServiceAccount, Priority and DefaultTolerationSeconds put in."""
    return new if old is not None else {**new, "spec": _admitted(new["spec"], new["metadata"].get("name") or "")}


def _prepare_update(new: Json, old: Json, subresource: str) -> Json:
    if subresource != "status":
        spec = new.get("spec") or {}
        new = {**new, "spec": {**spec, "tolerations": _tolerations(spec.get("tolerations") or [])}}
    updated = _BASE.prepare_update(new, old, subresource)
    quality = (old.get("status") or {}).get("qosClass")
    if subresource != "status" or quality is None:
        return updated
    return {**updated, "status": {**(updated.get("status") or {}), "qosClass": quality}}


def _admitted(spec: Json, name: str) -> Json:
    account = spec.get("serviceAccountName") or "default"
    new = {
        **spec,
        "serviceAccountName": account,
        "serviceAccount": account,
        "terminationGracePeriodSeconds": _grace_s(spec["terminationGracePeriodSeconds"]),
        "priority": 0,
        "preemptionPolicy": spec.get("preemptionPolicy", "PreemptLowerPriority"),
        "tolerations": _tolerations(spec.get("tolerations", [])),
    }
    if spec.get("automountServiceAccountToken") is not False:
        new |= _with_token(new, name)
    return new


def _grace_s(given: int) -> int:
    return given if given >= 0 else 1


def _tolerations(given: list[Json]) -> list[Json]:
    added = []
    for state in ("not-ready", "unreachable"):
        key = f"node.kubernetes.io/{state}"
        if not any(each.get("key", key) == key and each.get("effect", "NoExecute") == "NoExecute" for each in given):
            toleration = {"key": key, "operator": "Exists", "effect": "NoExecute"}
            added.append({**toleration, "tolerationSeconds": _TOLERATED_S})
    return [*given, *added]


def _with_token(spec: Json, name: str) -> Json:
    """The spec's volumes and containers with the projected token of the service account mounted in each."""
    volumes = spec.get("volumes", [])
    # A pod that is made again from what another one was has its volume.
    given = next((each["name"] for each in volumes if each["name"].startswith(_TOKEN_VOLUME)), "")
    volume = given or _TOKEN_VOLUME + _suffix(name)
    mount = {"name": volume, "readOnly": True, "mountPath": _TOKEN_PATH}
    changed = {
        key: [_mounted(each, mount) for each in spec[key]] for key in ("initContainers", "containers") if spec.get(key)
    }
    if all(containers == spec[key] for key, containers in changed.items()):
        return {}
    if given:
        return changed
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": _TOKEN_EXPIRATION_S, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    projected = {"name": volume, "projected": {"sources": sources, "defaultMode": 0o644}}
    return {**changed, "volumes": [*volumes, projected]}


def _mounted(container: Json, mount: Json) -> Json:
    mounts = container.get("volumeMounts", [])
    if any(each.get("mountPath") == _TOKEN_PATH for each in mounts):
        return container
    return {**container, "volumeMounts": [*mounts, mount]}


def _suffix(name: str) -> str:
    alphabet = "bcdfghjklmnpqrstvwxz2456789"
    return "".join(alphabet[byte % len(alphabet)] for byte in hashlib.sha256(name.encode()).digest()[:5])


def quality_of_service(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, as requests and limits of cpu and memory say."""
    containers = [*spec.get("containers", []), *spec.get("initContainers", [])]
    resources = [each.get("resources") or {} for each in containers]
    requests, limits = ([_positive(each.get(kind) or {}) for each in resources] for kind in ("requests", "limits"))
    if not any(requests) and not any(limits):
        return "BestEffort"
    if all(each.keys() == _OF_QUALITY for each in limits) and requests == limits:
        return "Guaranteed"
    return "Burstable"


def _positive(amounts: Json) -> dict[str, Decimal]:
    found = {name: amount(amounts[name]) for name in _OF_QUALITY if name in amounts}
    return {name: value for name, value in found.items() if value is not None and value > 0}


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
    if _immutable(new) != _immutable(old) or not _only_added(new.get("tolerations", []), old.get("tolerations", [])):
        return [forbidden("spec", _MUTABLE)]
    return []


def _immutable(spec: Json) -> Json:
    """The part of a spec that may not change."""
    rest = {key: value for key, value in spec.items() if key not in ("activeDeadlineSeconds", "tolerations")}
    for key in ("containers", "initContainers"):
        rest[key] = [{name: each[name] for name in each if name != "image"} for each in spec.get(key, [])]
    return rest


def _only_added(new: list[Json], old: list[Json]) -> bool:
    return all(each in new for each in old)


STRATEGY = Strategy(_prepare_create, _prepare_update, _default, _validate, _complete)
