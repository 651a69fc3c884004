"""Pods, and templates of pods: what is filled in, what people get wrong by hand, and what may change later.

Differs from Kubernetes: of all but names, images, labels, mounts and resources the shape alone is checked, by the
schema. A pod has no priority, no quality of service, no tolerations and no volume with a token; a refused change of the
spec does not show what has changed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from kube_simulator.errors import Cause
from kube_simulator.kinds.compaction import CORE_V1, compact
from kube_simulator.kinds.defaults import defaulted_spec
from kube_simulator.kinds.kind_strategy import Strategy, with_subresource
from kube_simulator.kinds.metadata import annotation_problems, label_problems
from kube_simulator.kinds.quantities import amount
from kube_simulator.names import dns_label
from kube_simulator.schema.causes import (
    NOT_NEGATIVE,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    unlike,
)
from kube_simulator.values import Json, completed, mapped, shared

_CONTAINERS: Final = ("initContainers", "containers")
_MUTABLE: Final = "pod updates may not change fields other than images, activeDeadlineSeconds and tolerations"


def template_problems(template: Json, field: str) -> list[Cause]:
    """List what is wrong with a template of pods that are to run for ever, such as a Deployment's."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    # Kubernetes leaves "metadata" out of these paths.
    found = label_problems(metadata.get("labels") or {}, f"{field}.labels")
    found += annotation_problems(metadata.get("annotations") or {}, f"{field}.annotations")
    found += _spec_problems(spec, f"{field}.spec")
    if spec.get("restartPolicy", "Always") != "Always":
        found.append(not_supported(f"{field}.spec.restartPolicy", spec["restartPolicy"], ("Always",)))
    return found


def _spec_problems(spec: Json, field: str) -> list[Cause]:
    volumes, containers = spec.get("volumes") or [], spec.get("containers") or []
    found = _name_problems(volumes, f"{field}.volumes", set())
    if not containers:
        found.append(required(f"{field}.containers"))
    names, taken = {each.get("name") or "" for each in volumes}, set[str]()
    for key in reversed(_CONTAINERS):
        listed = spec.get(key) or []
        found += _name_problems(listed, f"{field}.{key}", taken)
        for index, container in enumerate(listed):
            found += _container_problems(container, f"{field}.{key}[{index}]", names)
    return found + label_problems(spec.get("nodeSelector") or {}, f"{field}.nodeSelector")


def _container_problems(container: Json, at: str, volumes: Collection[str]) -> list[Cause]:
    found = [] if container.get("image") else [required(f"{at}.image")]
    for number, mount in enumerate(container.get("volumeMounts") or []):
        if mount["name"] not in volumes:
            found.append(not_found(f"{at}.volumeMounts[{number}].name", mount["name"]))
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    for kind in ("limits", "requests"):
        for name, quantity in sorted((resources.get(kind) or {}).items()):
            value, limit = amount(quantity), amount(limits.get(name))
            if value is not None and value < 0:
                found.append(invalid(f"{at}.resources.{kind}[{name}]", quantity, NOT_NEGATIVE))
            if kind == "requests" and value is not None and limit is not None and value > limit:
                why = f"must be less than or equal to {name} limit of {limits[name]}"
                found.append(invalid(f"{at}.resources.requests", quantity, why))
    return found


def _name_problems(named: Sequence[Json], field: str, taken: set[str]) -> list[Cause]:
    """List what is wrong with the names of things that names distinguish; `taken` have others, and these then too."""
    found: list[Cause] = []
    for index, each in enumerate(named):
        at, name = f"{field}[{index}].name", each.get("name") or ""
        if not name:
            found.append(required(at))
        elif wrong := dns_label(name):
            found += unlike(at, name, wrong)
        elif name in taken:
            found.append(duplicate(at, name))
        taken.add(name)
    return found


def _default(new: Json) -> Json:
    given = compact(new.get("spec"), f"{CORE_V1}PodSpec")
    spec = {"enableServiceLinks": True, **defaulted_spec(given)}
    spec |= {key: mapped(_requesting, spec[key]) for key in _CONTAINERS if spec.get(key)}
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


def _validate(new: Json, old: Json | None) -> list[Cause]:
    spec = new["spec"]
    if old is None or spec == old["spec"]:
        return _spec_problems(spec, "spec") if old is None else []
    changed = [key for key in _CONTAINERS if len(spec.get(key, [])) != len(old["spec"].get(key, []))]
    found = [forbidden(f"spec.{key}", "pod updates may not add or remove containers") for key in changed]
    if not found and _immutable(spec) != _immutable(old["spec"]):
        found = [forbidden("spec", _MUTABLE)]
    return _spec_problems(spec, "spec") + found


def _immutable(spec: Json) -> Json:
    """The part of a spec that may not change."""
    rest = {key: value for key, value in spec.items() if key not in ("activeDeadlineSeconds", "tolerations")}
    for key in _CONTAINERS:
        rest[key] = [{name: each[name] for name in each if name != "image"} for each in spec.get(key, [])]
    return rest


_BASE: Final = with_subresource(
    _default, _validate, first_status={"phase": "Pending"}, kept_on_status=("ownerReferences",)
)
STRATEGY: Final[Strategy] = replace(
    _BASE, prepare_create=lambda new: _default(_BASE.prepare_create(new)), complete=_complete
)
