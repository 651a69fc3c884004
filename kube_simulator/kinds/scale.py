"""`autoscaling/v1` Scale: how many, as a view of what makes pods and of the custom resources that say where."""

from __future__ import annotations

from typing import Any, Final

from kube_simulator.errors import Cause, bad_request, internal, invalid
from kube_simulator.resources import Resource, ScalePaths
from kube_simulator.schema import causes
from kube_simulator.values import Json

_BUILT_IN: Final = ScalePaths(".spec.replicas", ".status.replicas")
_IDENTITY: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def read(resource: Resource, found: Json) -> Json:
    """The scale of an object. Raises ApiError: 500, a custom resource does not say how many it wants."""
    paths = resource.scale or _BUILT_IN
    labels = (found["spec"].get("selector") or {}).get("matchLabels") or {} if not resource.custom else {}
    selector: object = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    desired, status = _value(found, paths.spec_replicas), _value(found, paths.status_replicas)
    if resource.custom:
        if type(desired) is not int:
            raise internal(f'Internal error occurred: the spec replicas field "{paths.spec_replicas}" does not exist')
        selector = _value(found, paths.label_selector) if paths.label_selector else None
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: found["metadata"][key] for key in _IDENTITY if key in found["metadata"]},
        "spec": {"replicas": desired} if desired else {},
        "status": {
            "replicas": status if type(status) is int else 0,
            **({"selector": selector} if selector and isinstance(selector, str) else {}),
        },
    }


def written(resource: Resource, old: Json, desired: Any) -> Json:
    """The object with as many replicas as a scale says, 0 if it says none. Raises ApiError: 400, no scale; 422."""
    if not isinstance(desired, dict) or desired.get("kind", "Scale") != "Scale":
        raise bad_request("the body cannot be handled as a Scale")
    replicas = (desired.get("spec") or {}).get("replicas") or 0
    if type(replicas) is not int or abs(replicas) > causes.MAX_INT32:
        raise bad_request("spec.replicas cannot be read as an int32")
    path = (resource.scale or _BUILT_IN).spec_replicas.lstrip(".")
    if replicas < 0:
        raise invalid(resource, old["metadata"]["name"], causes.at_least_zero(path, replicas))
    return _with(old, path.split("."), replicas)


def problems(resource: Resource, new: Json, subresource: str = "") -> list[Cause]:
    """List what a scale could not show of a custom resource: numbers that are none, or out of bounds.

    Args:
        subresource: that is written; through "status" the specification is not looked at.
    """
    if resource.scale is None:
        return []
    specified = [resource.scale.spec_replicas] if subresource != "status" else []
    found = []
    for path in (resource.scale.status_replicas, *specified):
        value = _value(new, path)
        if isinstance(value, float):
            why = f"{path} accessor error: {value:g} is of the type float64, expected int64"
            found.append(causes.invalid(path, 0, why))
        elif value is not None and (type(value) is not int or not 0 <= value <= causes.MAX_INT32):
            found.append(causes.invalid(path, value, "should be a non-negative integer"))
    return found


def _value(found: object, path: str) -> object:
    """Return the value at a path; None where there is nothing."""
    for field in path.lstrip(".").split("."):
        found = found.get(field) if isinstance(found, dict) else None
    return found


def _with(found: object, fields: list[str], value: int) -> Json:
    """A copy with this value at the end of a path, and what is missing on the way."""
    first, *rest = fields
    inside = found if isinstance(found, dict) else {}
    return {**inside, first: _with(inside.get(first), rest, value) if rest else value}
