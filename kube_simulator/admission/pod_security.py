"""Pod security (plugin PodSecurity): what the labels of a namespace say of its pods is enforced, or warned of.

The labels are `pod-security.kubernetes.io/enforce`, `/warn`, `/audit`, each with a `-version`. What makes pods, such as
a Deployment, is never refused, and warned of by its template.

Differs from Kubernetes: the only version is `latest`, and a label that asks for another one is answered with 501;
nothing is written into the audit log; of several pods that break the same rules, any may be the one that is named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kube_simulator.admission import namespaces
from kube_simulator.admission.pod_standards import LEVELS, Level, Violation, violations
from kube_simulator.admission.request import AdmissionRequest
from kube_simulator.errors import Cause, forbidden, invalid, not_implemented
from kube_simulator.store.go_text import quoted
from kube_simulator.store.store import Store
from kube_simulator.values import Json

_PREFIX = "pod-security.kubernetes.io/"
_MODES = ("enforce", "audit", "warn")
_VERSION = re.compile(r"latest|v1\.(0|[1-9][0-9]*)")
_MAKERS_OF_PODS = frozenset({"deployments.apps", "replicasets.apps", "statefulsets.apps"})
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class Policy:
    """What a namespace wants of its pods."""

    enforce: Level = "privileged"
    warn: Level = "privileged"


def policy_of(namespace: Json | None) -> Policy:
    """By its labels. Where it enforces, it warns as well, unless another label says of what."""
    labels = {} if namespace is None else namespace["metadata"].get("labels") or {}
    enforce = _level(labels.get(f"{_PREFIX}enforce"))
    warn = labels.get(f"{_PREFIX}warn")
    return Policy(enforce, enforce if warn is None else _level(warn))


def admit(store: Store, request: AdmissionRequest) -> tuple[str, ...]:
    """Warnings. Raises ApiError: 403 for a pod, 422 or 501 for the labels of a namespace."""
    new = request.new
    if new is None or not request.whole:
        return ()
    if request.resource_name == namespaces.COLLECTION:
        return _admit_namespace(store, request, new)
    if request.resource_name == "pods":
        return _admit_pod(store, request, new)
    if request.resource_name in _MAKERS_OF_PODS:
        template = new["spec"]["template"]
        level = policy_of(_namespace(store, request)).warn
        return _warnings(level, violations(level, template.get("metadata") or {}, template.get("spec") or {}))
    return ()


def _admit_pod(store: Store, request: AdmissionRequest, pod: Json) -> tuple[str, ...]:
    if request.old is not None and _images(request.old) == _images(pod):
        return ()
    policy = policy_of(_namespace(store, request))
    found = violations(policy.enforce, pod["metadata"], pod["spec"])
    if found:
        why = f'violates PodSecurity "{policy.enforce}:latest": {", ".join(map(str, found))}'
        raise forbidden(request.target.resource, request.name, why)
    return _warnings(policy.warn, violations(policy.warn, pod["metadata"], pod["spec"]))


def _admit_namespace(store: Store, request: AdmissionRequest, namespace: Json) -> tuple[str, ...]:
    causes = _problems(namespace["metadata"].get("labels") or {})
    if causes:
        raise invalid(request.target.resource, request.name, causes)
    old, new = policy_of(request.old).enforce, policy_of(namespace).enforce
    if request.old is None or LEVELS.index(new) <= LEVELS.index(old):
        return ()
    offenders: dict[str, list[str]] = {}
    for pod in store.list("pods", request.name):
        found = violations(new, pod["metadata"], pod["spec"])
        if found:
            offenders.setdefault(", ".join(each.rule for each in found), []).append(pod["metadata"]["name"])
    if not offenders:
        return ()
    lines = sorted(f"{_listed(names)}: {rules}" for rules, names in offenders.items())
    head = f'existing pods in namespace "{request.name}" violate the new PodSecurity enforce level "{new}:latest"'
    return head, *lines


def _problems(labels: Json) -> list[Cause]:
    causes = []
    for mode in _MODES:
        level, version = labels.get(f"{_PREFIX}{mode}"), labels.get(f"{_PREFIX}{mode}-version")
        if level is not None and level not in LEVELS:
            causes.append(_problem(mode, level, f"must be one of {', '.join(LEVELS)}"))
        if version is not None and not _VERSION.fullmatch(version):
            causes.append(_problem(f"{mode}-version", version, 'must be "latest" or "v1.x"'))
        elif version not in (None, "latest"):
            raise not_implemented(f"pod security of another version than the latest ({_PREFIX}{mode}-version)")
    return causes


def _problem(label: str, value: str, rule: str) -> Cause:
    field = f"metadata.labels[{_PREFIX}{label}]"
    return Cause("FieldValueInvalid", f"Invalid value: {quoted(value)}: {rule}", field)


def _level(text: str | None) -> Level:
    return next((level for level in LEVELS if level == text), "privileged")


def _namespace(store: Store, request: AdmissionRequest) -> Json | None:
    return store.get(namespaces.COLLECTION, "", request.namespace)


def _warnings(level: Level, found: list[Violation]) -> tuple[str, ...]:
    if not found:
        return ()
    return (f'would violate PodSecurity "{level}:latest": {", ".join(map(str, found))}',)


def _images(pod: Json) -> list[list[tuple[str, str]]]:
    """All that may be changed of a pod and matters here."""
    spec = pod["spec"]
    return [[(each["name"], each.get("image", "")) for each in spec.get(field) or ()] for field in _CONTAINERS]


def _listed(names: list[str]) -> str:
    others = len(names) - 1
    if not others:
        return names[0]
    return f"{names[0]} (and {others} other {'pod' if others == 1 else 'pods'})"
