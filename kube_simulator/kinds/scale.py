"""`autoscaling/v1` Scale: how many, as a view of what makes pods and of the custom resources that say where."""

from __future__ import annotations

from kube_simulator.errors import Cause, bad_request, conflict, internal, invalid
from kube_simulator.kinds import field_causes
from kube_simulator.kinds.selectors import selector_text
from kube_simulator.resources import Resource, ScalePaths
from kube_simulator.values import Json

_BUILT_IN = ScalePaths(".spec.replicas", ".status.replicas")
_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def read(resource: Resource, found: Json) -> Json:
    """The scale of an object.

    Raises:
        ApiError: 500, a custom resource does not say how many it wants.
    """
    paths = _paths(resource)
    desired = _number(found, paths.spec_replicas)
    if desired is None:
        if resource.custom:
            raise internal(f'Internal error occurred: the spec replicas field "{paths.spec_replicas}" does not exist')
        desired = 0
    if resource.custom:
        selector = _value(found, paths.label_selector) if paths.label_selector else None
    else:
        selector = selector_text(found["spec"].get("selector"))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: found["metadata"][key] for key in _IDENTITY if key in found["metadata"]},
        "spec": {"replicas": desired} if desired else {},
        "status": {
            "replicas": _number(found, paths.status_replicas) or 0,
            **({"selector": selector} if selector and isinstance(selector, str) else {}),
        },
    }


def written(resource: Resource, old: Json, desired: object) -> Json:
    """The object with as many replicas as a scale says, which may leave out 0.

    Raises:
        ApiError: 400, this is no scale of that object; 409, it is of another that had the name; 422, not that many.
    """
    name = old["metadata"]["name"]
    replicas = _replicas(desired, name)
    uid = (desired.get("metadata") or {}).get("uid") if isinstance(desired, dict) else None
    if uid and uid != old["metadata"]["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}"
        raise conflict(resource, name, why)
    paths = _paths(resource)
    if replicas < 0:
        cause = field_causes.invalid(paths.spec_replicas.lstrip("."), replicas, field_causes.NOT_NEGATIVE)
        raise invalid(resource, name, [cause])
    return _with(old, _fields(paths.spec_replicas), replicas)


def problems(resource: Resource, new: Json, subresource: str = "") -> list[Cause]:
    """List what a scale could not show of a custom resource: numbers that are none, or out of bounds.

    Args:
        subresource: that is written; through "status" the specification is not looked at.
    """
    if not resource.custom or resource.scale is None:
        return []
    paths = resource.scale
    found = []
    for path in (paths.status_replicas, *([paths.spec_replicas] if subresource != "status" else [])):
        value = _value(new, path)
        if isinstance(value, float):
            why = f"{path} accessor error: {value:g} is of the type float64, expected int64"
            found.append(field_causes.invalid(path, 0, why))
        elif value is not None and (type(value) is not int or not 0 <= value <= field_causes.MAX_INT32):
            negative = isinstance(value, int) and value < 0
            why = "should be a non-negative integer" if negative else f"should be {field_causes.MAX_INT32} at most"
            found.append(field_causes.invalid(path, value, why))
    return found


def _replicas(desired: object, name: str) -> int:
    if not isinstance(desired, dict):
        raise bad_request("couldn't get version/kind; json parse error: a Scale is a JSON object")
    kind = desired.get("kind") or "Scale"
    if kind != "Scale":
        raise bad_request(f"{kind} cannot be handled as a Scale")
    named = (desired.get("metadata") or {}).get("name") or name
    if named != name:
        raise bad_request(f"the name of the object ({named}) does not match the name on the URL ({name})")
    spec = desired.get("spec") or {}
    replicas = (spec.get("replicas") or 0) if isinstance(spec, dict) else spec
    if type(replicas) is not int or abs(replicas) > field_causes.MAX_INT32:
        why = f"json: cannot unmarshal {replicas!r} into Go struct field ScaleSpec.spec.replicas of type int32"
        raise bad_request(f'Scale in version "v1" cannot be handled as a Scale: {why}')
    return replicas


def _paths(resource: Resource) -> ScalePaths:
    return resource.scale or _BUILT_IN


def _fields(path: str) -> list[str]:
    return path.lstrip(".").split(".")


def _value(found: object, path: str) -> object:
    """Return the value at a path; None where there is nothing."""
    for field in _fields(path):
        found = found.get(field) if isinstance(found, dict) else None
    return found


def _number(found: Json, path: str) -> int | None:
    value = _value(found, path)
    return value if type(value) is int else None


def _with(found: object, fields: list[str], value: int) -> Json:
    """A copy with this value at the end of a path, and what is missing on the way."""
    first, *rest = fields
    inside = found if isinstance(found, dict) else {}
    return {**inside, first: _with(inside.get(first), rest, value) if rest else value}
