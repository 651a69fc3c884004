"""The cells of Kubernetes' own kinds, in the order of their columns: what `kubectl get -o wide` prints.

The rules are those of `k8s.io/kubernetes/pkg/printers/internalversion`; those of pods are in `pod_cells`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from kube_simulator.kinds.durations import age
from kube_simulator.kinds.events import to_core
from kube_simulator.kinds.pod_cells import NONE, pod
from kube_simulator.kinds.selectors import selector_text
from kube_simulator.values import Json

Cells = list[Any]


def _name(found: Json) -> str:
    return str(found["metadata"]["name"])


def _age(found: Json, now: datetime) -> str:
    return age(found["metadata"].get("creationTimestamp"), now)


def _created(found: Json, _now: datetime) -> Cells:
    """Return the cells of kinds that no one has written a table for."""
    return [_name(found), found["metadata"].get("creationTimestamp")]


def _plain(found: Json, now: datetime) -> Cells:
    return [_name(found), _age(found, now)]


def _namespace(found: Json, now: datetime) -> Cells:
    return [_name(found), (found.get("status") or {}).get("phase", ""), _age(found, now)]


def _config_map(found: Json, now: datetime) -> Cells:
    return [_name(found), _count(found, "data") + _count(found, "binaryData"), _age(found, now)]


def _secret(found: Json, now: datetime) -> Cells:
    return [_name(found), found.get("type", ""), _count(found, "data"), _age(found, now)]


def _count(found: Json, key: str) -> int:
    return len(found.get(key) or ())


def _service(found: Json, now: datetime) -> Cells:
    spec = found["spec"]
    addresses = spec.get("clusterIPs") or [NONE]
    ports = ",".join(map(_port, spec.get("ports") or [])) or NONE
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    kind = spec.get("type", "")
    return [_name(found), kind, addresses[0], _external(found), ports, _age(found, now), selector or NONE]


def _external(found: Json) -> str:
    spec = found["spec"]
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    own = spec.get("externalIPs") or []
    if spec.get("type") != "LoadBalancer":
        return ",".join(own) or NONE
    ingress = (found.get("status") or {}).get("loadBalancer", {}).get("ingress") or []
    return ",".join([each.get("ip") or each.get("hostname", "") for each in ingress] + own) or "<pending>"


def _port(port: Json) -> str:
    on_node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{on_node}/{port.get('protocol', 'TCP')}"


def _deployment(found: Json, now: datetime) -> Cells:
    spec, status = found["spec"], found.get("status") or {}
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    counts = [status.get(key, 0) for key in ("updatedReplicas", "availableReplicas")]
    return [_name(found), ready, *counts, _age(found, now), *_template(spec)]


def _replica_set(found: Json, now: datetime) -> Cells:
    spec, status = found["spec"], found.get("status") or {}
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [_name(found), *counts, _age(found, now), *_template(spec)]


def _stateful_set(found: Json, now: datetime) -> Cells:
    spec, status = found["spec"], found.get("status") or {}
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    containers, images, _ = _template(spec)
    return [_name(found), ready, _age(found, now), containers, images]


def _template(spec: Json) -> Cells:
    """Containers, images, selector."""
    containers = spec["template"]["spec"].get("containers") or []
    listed = [",".join(each.get(key, "") for each in containers) for key in ("name", "image")]
    return [*listed, selector_text(spec.get("selector")) or NONE]


def _event(found: Json, now: datetime) -> Cells:
    found = to_core(found) if found["apiVersion"] != "v1" else found
    happened, series = found.get("eventTime"), found.get("series")
    first = found.get("firstTimestamp") or happened
    last = found.get("lastTimestamp") or first
    count = found.get("count") or 1
    if series is not None:
        last, count = series.get("lastObservedTime"), series.get("count", 0)
    subject, source = found.get("involvedObject") or {}, found.get("source") or {}
    target = subject.get("kind", "").lower() + (f"/{subject['name']}" if subject.get("name") else "")
    reporter = source.get("component") or found.get("reportingComponent") or ""
    instance = source.get("host") or found.get("reportingInstance") or ""
    return [
        age(last, now),
        found.get("type", ""),
        found.get("reason", ""),
        target,
        subject.get("fieldPath", ""),
        f"{reporter}, {instance}" if instance else reporter,
        found.get("message", "").strip(),
        age(first, now),
        count,
        _name(found),
    ]


def _budget(found: Json, now: datetime) -> Cells:
    spec = found["spec"]
    shares = [str(spec[key]) if key in spec else "N/A" for key in ("minAvailable", "maxUnavailable")]
    return [_name(found), *shares, (found.get("status") or {}).get("disruptionsAllowed", 0), _age(found, now)]


def _network_policy(found: Json, now: datetime) -> Cells:
    return [_name(found), selector_text(found["spec"]["podSelector"]) or NONE, _age(found, now)]


def _lease(found: Json, now: datetime) -> Cells:
    return [_name(found), (found.get("spec") or {}).get("holderIdentity") or "", _age(found, now)]


def _binding(found: Json, now: datetime) -> Cells:
    role, subjects = found["roleRef"], found.get("subjects") or []
    accounts = [f"{each.get('namespace', '')}/{each['name']}" for each in subjects if each["kind"] == "ServiceAccount"]
    people = [_names(subjects, kind) for kind in ("User", "Group")]
    return [_name(found), f"{role['kind']}/{role['name']}", _age(found, now), *people, ", ".join(accounts)]


def _names(subjects: Sequence[Json], kind: str) -> str:
    return ", ".join(each["name"] for each in subjects if each["kind"] == kind)


_RBAC = "rbac.authorization.k8s.io"
BUILT_IN: Mapping[str, Callable[[Json, datetime], Cells]] = {
    "namespaces": _namespace,
    "pods": pod,
    "configmaps": _config_map,
    "secrets": _secret,
    "serviceaccounts": _plain,
    "services": _service,
    "events": _event,
    "events.events.k8s.io": _event,
    "deployments.apps": _deployment,
    "replicasets.apps": _replica_set,
    "statefulsets.apps": _stateful_set,
    "networkpolicies.networking.k8s.io": _network_policy,
    "poddisruptionbudgets.policy": _budget,
    "leases.coordination.k8s.io": _lease,
    "customresourcedefinitions.apiextensions.k8s.io": _created,
    f"roles.{_RBAC}": _created,
    f"clusterroles.{_RBAC}": _created,
    f"rolebindings.{_RBAC}": _binding,
    f"clusterrolebindings.{_RBAC}": _binding,
}
