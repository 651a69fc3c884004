"""Decoding of a body to an object of the target's kind: a body that does not fit is refused or warned of."""

from __future__ import annotations

import orjson

from kube_simulator.errors import ApiError, Cause, bad_request, invalid
from kube_simulator.patches.json_values import printed
from kube_simulator.requests.types import Patch, Target, WriteOptions
from kube_simulator.resources import Resource
from kube_simulator.schema.nulls import without_nulls
from kube_simulator.schema.structural import decode_problems, prune
from kube_simulator.store.go_text import quoted
from kube_simulator.values import Json


def identified(body: object, target: Target) -> Json:
    """The body with apiVersion and kind, which a built-in kind may leave out, provided that it is one of this kind."""
    resource = target.resource
    body = {} if body is None else body
    if not isinstance(body, dict):
        found = type(body).__name__
        raise bad_request(f"couldn't get version/kind; json parse error: json: cannot unmarshal {found} into an object")
    api_version, kind = body.get("apiVersion") or "", body.get("kind") or ""
    if not isinstance(api_version, str) or not isinstance(kind, str):
        raise bad_request("couldn't get version/kind; json parse error: apiVersion and kind must be strings")
    if resource.custom and not kind:
        raise bad_request("Object 'Kind' is missing")
    if resource.custom and not api_version:
        raise bad_request("Object 'apiVersion' is missing")
    if api_version and api_version != resource.api_version:
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({resource.api_version})"
        )
    if kind and kind != resource.kind:
        raise _wrong_kind(resource, body, kind)
    return {**body, "apiVersion": resource.api_version, "kind": resource.kind}


def _wrong_kind(resource: Resource, body: Json, kind: str) -> ApiError:
    if resource.custom:
        name = _metadata(body).get("name") or ""
        message = f'Invalid value: "{kind}": must be {resource.kind}'
        return invalid(resource, name, [Cause("FieldValueInvalid", message, "kind")])
    return bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}')


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


def fitted(body: Json, target: Target, options: WriteOptions) -> tuple[Json, tuple[str, ...]]:
    """The body of a POST or PUT without the fields that its schema has not, and the warnings about them.

    Raises:
        ApiError: 400 for a field that has a value of another type, and for unknown fields where the caller wants to be
            told (`fieldValidation=Strict`).
    """
    try:
        return _pruned(body, target, options)
    except _Unfit as unfit:
        resource = target.resource
        kind = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
        raise bad_request(f"{kind}: {unfit}") from None


def fitted_patch(patched: Json, target: Target, options: WriteOptions, patch: Patch) -> tuple[Json, tuple[str, ...]]:
    """The same of what a patch makes of an object, where it is the patch that is refused.

    Raises:
        ApiError: 422.
    """
    try:
        return _pruned(patched, target, options)
    except _Unfit as unfit:
        shown = printed(patch.body) if patch.kind == "strategic" else orjson.dumps(patched).decode()
        cause = Cause("FieldValueInvalid", f"Invalid value: {quoted(shown)}: {unfit}", "patch")
        details = {"causes": [cause.json()]}
        raise ApiError(422, "Invalid", f' "" is invalid: patch: {cause.message}', details) from None


class _Unfit(Exception):
    """The object does not fit the schema; the message says where."""


def _pruned(body: Json, target: Target, options: WriteOptions) -> tuple[Json, tuple[str, ...]]:
    resource = target.resource
    if (problem := decode_problems(resource.schema, body)) is not None:
        raise _Unfit(problem)
    kept, unknown = prune(resource.schema, body)
    complaints = tuple(f'unknown field "{path}"' for path in unknown)
    if complaints and options.field_validation == "Strict":
        raise _Unfit(f"strict decoding error: {', '.join(complaints)}")
    assert isinstance(kept, dict)
    return without_nulls(resource.schema, kept), complaints if options.field_validation == "Warn" else ()


def _metadata(body: Json) -> Json:
    metadata = body.get("metadata")
    if metadata is None:
        return {}
    if not isinstance(metadata, dict):
        raise bad_request("json: cannot unmarshal a value into Go struct field .metadata of type v1.ObjectMeta")
    for key in ("name", "namespace", "generateName", "uid", "resourceVersion"):
        if not isinstance(metadata.get(key) or "", str):
            raise bad_request(f"json: cannot unmarshal a value into Go struct field .metadata.{key} of type string")
    return metadata
