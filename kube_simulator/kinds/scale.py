"""`autoscaling/v1` Scale: how many, as a view of what makes pods and of the custom resources that say where."""

from __future__ import annotations

from kube_simulator.errors import ApiError, Cause, bad_request, conflict, invalid
from kube_simulator.kinds import causes
from kube_simulator.kinds.selectors import selector_text
from kube_simulator.resources import Resource, ScalePaths
from kube_simulator.schema import causes as schema_causes
from kube_simulator.values import Json

_BUILT_IN = ScalePaths(".spec.replicas", ".status.replicas")
_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
# How Go calls the types of JSON.
_TYPES = {str: "string", int: "int64", float: "float64", bool: "bool", list: "[]interface{}"} | {
    dict: "map[string]interface{}",
    type(None): "<nil>",
}


def read(resource: Resource, found: Json) -> Json:
    """The scale of an object.

    Raises:
        ApiError: 500, a custom resource does not say how many it wants.
    """
    paths = _paths(resource)
    wanted = _number(found, paths.spec_replicas)
    if wanted is None:
        if resource.custom:
            why = f'the spec replicas field "{paths.spec_replicas}" does not exist'
            details = {"causes": [{"message": why}]}
            raise ApiError(500, "InternalError", f"Internal error occurred: {why}", details)
        wanted = 0
    if resource.custom:
        selector = _value(found, paths.label_selector)[0] if paths.label_selector else None
    else:
        selector = selector_text(found["spec"].get("selector"))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: found["metadata"][key] for key in _IDENTITY if key in found["metadata"]},
        "spec": {"replicas": wanted} if wanted else {},
        "status": {
            "replicas": _number(found, paths.status_replicas) or 0,
            **({"selector": selector} if selector and isinstance(selector, str) else {}),
        },
    }


def written(resource: Resource, old: Json, wanted: object) -> Json:
    """The object with as many replicas as a scale says, which may leave out 0.

    Raises:
        ApiError: 400, this is no scale of that object; 409, it is of another that had the name; 422, not that many.
    """
    name = old["metadata"]["name"]
    replicas = _replicas(wanted, name)
    uid = (wanted.get("metadata") or {}).get("uid") if isinstance(wanted, dict) else None
    if uid and uid != old["metadata"]["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}"
        raise conflict(resource, name, why)
    paths = _paths(resource)
    if replicas < 0 and not resource.custom:
        why = f"Invalid value: {replicas}: {causes.NOT_NEGATIVE}"
        field, kind = "spec.replicas", "Scale"
        details = {"name": name, "group": "autoscaling", "kind": kind}
        details["causes"] = [Cause("FieldValueInvalid", why, field).json()]
        raise ApiError(422, "Invalid", f'{kind}.autoscaling "{name}" is invalid: {field}: {why}', details)
    if replicas < 0:
        raise invalid(resource, name, [causes.invalid(paths.spec_replicas, replicas, _NEGATIVE)])
    return _with(old, _fields(paths.spec_replicas), replicas)


_NEGATIVE = "should be a non-negative integer"
_TOO_MANY = f"should be less than or equal to {causes.MAX_INT32}"


def problems(resource: Resource, new: Json, subresource: str = "") -> list[Cause]:
    """What of a custom resource a scale could not show: numbers that are none, or out of bounds.

    Args:
        subresource: that is written; through "status" the specification is not looked at.
    """
    if not resource.custom or resource.scale is None:
        return []
    found = []
    spec_too = subresource != "status"
    for path in (*([resource.scale.spec_replicas] if spec_too else []), resource.scale.status_replicas):
        value, wrong = _value(new, path)
        if wrong is None and value is not _ABSENT and type(value) is not int:
            wrong = _wrong_type(value, "int64")
        if wrong is not None:
            found.append(causes.invalid(path, 0, f"{path} accessor error: {wrong}"))
        elif isinstance(value, int) and value < 0:
            found.append(causes.invalid(path, value, _NEGATIVE))
        elif isinstance(value, int) and value > causes.MAX_INT32:
            found.append(causes.invalid(path, value, _TOO_MANY))
    return found


def _replicas(wanted: object, name: str) -> int:
    if not isinstance(wanted, dict):
        raise bad_request("couldn't get version/kind; json parse error: a Scale is a JSON object")
    kind = wanted.get("kind") or "Scale"
    if kind != "Scale":
        raise bad_request(f'{kind} in version "{_version(wanted)}" cannot be handled as a Scale')
    named = (wanted.get("metadata") or {}).get("name") or name
    if named != name:
        raise bad_request(f"the name of the object ({named}) does not match the name on the URL ({name})")
    spec = wanted.get("spec") or {}
    replicas = (spec.get("replicas") or 0) if isinstance(spec, dict) else spec
    if type(replicas) is not int or abs(replicas) > causes.MAX_INT32:
        what = "string" if isinstance(replicas, str) else f"number {replicas}"
        why = f"json: cannot unmarshal {what} into Go struct field ScaleSpec.spec.replicas of type int32"
        raise bad_request(f'Scale in version "v1" cannot be handled as a Scale: {why}')
    return replicas


def _version(wanted: Json) -> str:
    return str(wanted.get("apiVersion") or "").rpartition("/")[2]


def _paths(resource: Resource) -> ScalePaths:
    return resource.scale or _BUILT_IN


def _fields(path: str) -> list[str]:
    return path.lstrip(".").split(".")


class _Absent:
    """The type of `_ABSENT`: there is nothing, where null would be something."""


_ABSENT = _Absent()


def _value(found: object, path: str) -> tuple[object, str | None]:
    """What is at a path, and what is wrong with the way to it; null on the way is as good as nothing."""
    for field in _fields(path):
        if found is None:
            return _ABSENT, None
        if not isinstance(found, dict):
            return _ABSENT, _wrong_type(found, "map[string]interface{}")
        if field not in found:
            return _ABSENT, None
        found = found[field]
    return found, None


def _wrong_type(value: object, wanted: str) -> str:
    shown = "<nil>" if value is None else str(value).lower() if isinstance(value, bool) else value
    if isinstance(value, float):
        shown = schema_causes.number(value)
    return f"{shown} is of the type {_TYPES[type(value)]}, expected {wanted}"


def _number(found: Json, path: str) -> int | None:
    value, _ = _value(found, path)
    return value if type(value) is int else None


def _with(found: object, fields: list[str], value: int) -> Json:
    """A copy with this value at the end of a path, and what is missing on the way."""
    first, *rest = fields
    inside = found if isinstance(found, dict) else {}
    return {**inside, first: _with(inside.get(first), rest, value) if rest else value}
