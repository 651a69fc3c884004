"""Problems of a pod's spec, in a Pod or in a template of pods: what people get wrong by hand.

Differs from Kubernetes: of all but names, images, labels, resources, and fields of which one alone may be there, the
shape alone is checked, by the schema.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from kube_simulator.errors import Cause
from kube_simulator.kinds.container_resources import resource_problems
from kube_simulator.kinds.field_causes import duplicate, forbidden, invalid, not_found, not_supported, required, unlike
from kube_simulator.kinds.metadata import annotation_problems, label_problems
from kube_simulator.kinds.name_validation import dns_label
from kube_simulator.values import Json

# In the order of Kubernetes' checks, which name the second of two.
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_VOLUMES: Final = (
    *("emptyDir", "hostPath", "secret", "nfs", "iscsi", "persistentVolumeClaim", "cephfs", "fc", "configMap"),
    *("projected", "csi", "ephemeral", "image"),
)


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
    for index, volume in enumerate(volumes):
        found += _alone(volume, f"{field}.volumes[{index}]", _VOLUMES, "volume type")
    if not containers:
        found.append(required(f"{field}.containers"))
    names = {each.get("name") or "" for each in volumes}
    found += _container_problems(containers, f"{field}.containers", names)
    taken = {each.get("name") or "" for each in containers}
    first = spec.get("initContainers") or []
    found += _container_problems(first, f"{field}.initContainers", names, taken)
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
        found += resource_problems(container.get("resources") or {}, f"{at}.resources")
        for number, variable in enumerate(container.get("env") or []):
            found += _variable_problems(variable, f"{at}.env[{number}].valueFrom")
        hooks = container.get("lifecycle") or {}
        handlers = {f"{at}.lifecycle.{name}": hooks.get(name) for name in ("postStart", "preStop")}
        handlers |= {f"{at}.{name}": container.get(name) for name in _PROBES}
        for place, handler in handlers.items():
            if handler is not None:
                found += _handler_problems(handler, place)
    return found


def _handler_problems(handler: Json, field: str) -> list[Cause]:
    if not any(handler.get(each) is not None for each in _HANDLERS):
        return [required(field, "must specify a handler type")]
    return _alone(handler, field, _HANDLERS, "handler type")


def _variable_problems(variable: Json, field: str) -> list[Cause]:
    sources = [each for each in (variable.get("valueFrom") or {}).values() if each is not None]
    if sources and variable.get("value"):
        return [invalid(field, "", "may not be specified when `value` is not empty")]
    return [invalid(field, "", "may not have more than one field specified at a time")] if len(sources) > 1 else []


def _alone(part: Json, field: str, names: Sequence[str], what: str) -> list[Cause]:
    """Forbid more than one of fields of which one alone may be there."""
    there = [name for name in names if part.get(name) is not None]
    return [forbidden(f"{field}.{name}", f"may not specify more than 1 {what}") for name in there[1:]]


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
