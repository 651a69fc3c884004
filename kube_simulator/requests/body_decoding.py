"""Decoding of a body to an object of the target's kind: a body that does not fit is refused or warned of."""

from __future__ import annotations

from kube_simulator.errors import ApiError, Cause, bad_request, invalid
from kube_simulator.requests.types import Target, WriteOptions
from kube_simulator.schema.structural import decode_problems, prune
from kube_simulator.values import Json


def identified(body: object, target: Target) -> Json:
    """The body with apiVersion and kind, which a built-in kind may leave out, provided that it is one of this kind."""
    resource = target.resource
    if not isinstance(body, dict):
        raise bad_request("couldn't get version/kind; json parse error: the body must be an object")
    api_version, kind = body.get("apiVersion") or "", body.get("kind") or ""
    if resource.custom and not (kind and api_version):
        raise bad_request("Object 'Kind' or 'apiVersion' is missing")
    if api_version and api_version != resource.api_version:
        why = f"does not match the expected API version ({resource.api_version})"
        raise bad_request(f"the API version in the data ({api_version}) {why}")
    if kind and kind != resource.kind:
        if resource.custom:
            cause = Cause("FieldValueInvalid", f'Invalid value: "{kind}": must be {resource.kind}', "kind")
            raise invalid(resource, _metadata(body).get("name") or "", [cause])
        raise bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}')
    return {**body, "apiVersion": resource.api_version, "kind": resource.kind}


def placed(body: Json, target: Target) -> Json:
    """The body with its namespace and, where the path has one, its name: those of the path, or none."""
    metadata = _metadata(body)
    namespace, name = metadata.get("namespace") or "", metadata.get("name") or ""
    if target.resource.namespaced and namespace and namespace != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if target.name and name and name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    kept = {key: value for key, value in metadata.items() if key != "namespace"}
    path = {"namespace": target.namespace} if target.resource.namespaced else {}
    named = {"name": target.name} if target.name else {}
    return {**body, "metadata": {**kept, **path, **named}}


def fitted(body: Json, target: Target, options: WriteOptions, *, patch: bool = False) -> tuple[Json, tuple[str, ...]]:
    """The body of a write without the fields that its schema has not, and the warnings about them.

    Args:
        patch: whether a patch has made it, which is refused otherwise.

    Raises:
        ApiError: 400, of a patch 422, for a field that has a value of another type, and for unknown fields where the
            caller wants to be told (`fieldValidation=Strict`).
    """
    resource = target.resource
    problem = decode_problems(resource.schema, body)
    kept, unknown = prune(resource.schema, body)
    complaints = tuple(f'unknown field "{path}"' for path in unknown)
    if problem is None and complaints and options.field_validation == "Strict":
        problem = f"strict decoding error: {', '.join(complaints)}"
    if problem is not None:
        message = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {problem}'
        if patch:
            causes = [Cause("FieldValueInvalid", message, "patch").json()]
            raise ApiError(422, "Invalid", f' "" is invalid: patch: {message}', {"causes": causes})
        raise bad_request(message)
    return kept, complaints if options.field_validation == "Warn" else ()


def _metadata(body: Json) -> Json:
    metadata = body.get("metadata") or {}
    texts = ("name", "namespace", "generateName", "uid", "resourceVersion")
    if not isinstance(metadata, dict) or any(not isinstance(metadata.get(key) or "", str) for key in texts):
        raise bad_request("json: cannot unmarshal a value into Go struct field .metadata of type v1.ObjectMeta")
    return metadata
