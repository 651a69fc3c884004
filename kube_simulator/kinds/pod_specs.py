"""Problems of a pod's spec, in a Pod or in a template of pods: what people get wrong by hand.

Differs from Kubernetes: of all but names, images, labels, mounts and resources the shape alone is checked, by the
schema.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kube_simulator.errors import Cause
from kube_simulator.kinds.metadata import annotation_problems, label_problems
from kube_simulator.kinds.quantities import amount
from kube_simulator.names import dns_label
from kube_simulator.schema.causes import NOT_NEGATIVE, duplicate, invalid, not_found, not_supported, required, unlike
from kube_simulator.values import Json


def template_problems(template: Json, field: str) -> list[Cause]:
    """List what is wrong with a template of pods that are to run for ever, such as a Deployment's."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    # Kubernetes leaves "metadata" out of these paths.
    found = label_problems(metadata.get("labels") or {}, f"{field}.labels")
    found += annotation_problems(metadata.get("annotations") or {}, f"{field}.annotations")
    found += spec_problems(spec, f"{field}.spec")
    if spec.get("restartPolicy", "Always") != "Always":
        found.append(not_supported(f"{field}.spec.restartPolicy", spec["restartPolicy"], ("Always",)))
    return found


def spec_problems(spec: Json, field: str) -> list[Cause]:
    """List what is wrong with a spec whose defaults are filled in."""
    volumes, containers = spec.get("volumes") or [], spec.get("containers") or []
    found = _name_problems(volumes, f"{field}.volumes")
    if not containers:
        found.append(required(f"{field}.containers"))
    names = {each.get("name") or "" for each in volumes}
    found += _container_problems(containers, f"{field}.containers", names)
    taken = {each.get("name") or "" for each in containers}
    found += _container_problems(spec.get("initContainers") or [], f"{field}.initContainers", names, taken)
    return found + label_problems(spec.get("nodeSelector") or {}, f"{field}.nodeSelector")


def _container_problems(
    containers: Sequence[Json], field: str, volumes: Collection[str], taken: Collection[str] = ()
) -> list[Cause]:
    found = _name_problems(containers, field, taken)
    for index, container in enumerate(containers):
        at = f"{field}[{index}]"
        if not container.get("image"):
            found.append(required(f"{at}.image"))
        for number, mount in enumerate(container.get("volumeMounts") or []):
            if mount["name"] not in volumes:
                found.append(not_found(f"{at}.volumeMounts[{number}].name", mount["name"]))
        found += _resource_problems(container.get("resources") or {}, f"{at}.resources")
    return found


def _resource_problems(resources: Json, at: str) -> list[Cause]:
    """List what is wrong with a container's requests, which are below its limits."""
    found: list[Cause] = []
    limits = resources.get("limits") or {}
    for kind in ("limits", "requests"):
        for name, quantity in sorted((resources.get(kind) or {}).items()):
            value, limit = amount(quantity), amount(limits.get(name))
            if value is not None and value < 0:
                found.append(invalid(f"{at}.{kind}[{name}]", quantity, NOT_NEGATIVE))
            if kind == "requests" and value is not None and limit is not None and value > limit:
                why = f"must be less than or equal to {name} limit of {limits[name]}"
                found.append(invalid(f"{at}.requests", quantity, why))
    return found


def _name_problems(named: Sequence[Json], field: str, taken: Collection[str] = ()) -> list[Cause]:
    """List what is wrong with the names of things that names distinguish; `taken` have others."""
    found: list[Cause] = []
    names = set(taken) - {""}
    for index, each in enumerate(named):
        at, name = f"{field}[{index}].name", each.get("name") or ""
        if not name:
            found.append(required(at))
        elif wrong := dns_label(name):
            found += unlike(at, name, wrong)
        elif name in names:
            found.append(duplicate(at, name))
        names.add(name)
    return found
