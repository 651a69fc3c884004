"""Bodies of writes on their way in, and objects on their way out.

A body becomes an object of the target's kind, or is refused or warned of; its version and uid are preconditions. Events
are one store for core/v1 and events.k8s.io/v1, which name their fields differently. A custom resource that is served in
several versions (conversion strategy None) differs in its apiVersion alone.
"""

from __future__ import annotations

from kube_simulator.errors import MODIFIED, ApiError, Cause, bad_request, conflict, invalid
from kube_simulator.kinds import events
from kube_simulator.requests.types import Target, WriteOptions
from kube_simulator.resources import Resource
from kube_simulator.schema.structural import decode_problems, prune
from kube_simulator.values import Json

# A PUT must say of which version (not AllowUnconditionalUpdate), as with every custom resource.
_UPDATED_BY_VERSION = frozenset({"leases.coordination.k8s.io"})
# What a client may send back or leave out, and never change.
_SERVERS_OWN = (
    *("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion", "generation"),
    "selfLink",
)


def shown(resource: Resource, found: Json) -> Json:
    """A stored object as this resource shows it."""
    if found["apiVersion"] == resource.api_version:
        return found
    if resource.plural == "events" and not resource.custom:
        return events.to_core(found)
    return {**found, "apiVersion": resource.api_version}


def stored(resource: Resource, body: Json) -> Json:
    """An object of this resource as it is stored."""
    return events.from_core(body) if resource.plural == "events" and not resource.group else body


def identified(body: object, target: Target) -> Json:
    """The body with apiVersion and kind, which a built-in kind may leave out, provided that it is one of this kind; and
    with the namespace and, where the path has one, the name of the path."""
    resource = target.resource
    if not isinstance(body, dict):
        raise bad_request("couldn't get version/kind; json parse error: the body must be an object")
    metadata = body.get("metadata") or {}
    texts = ("name", "namespace", "generateName", "uid", "resourceVersion")
    if not isinstance(metadata, dict) or any(not isinstance(metadata.get(key) or "", str) for key in texts):
        raise bad_request("json: cannot unmarshal a value into Go struct field .metadata of type v1.ObjectMeta")
    api_version, kind = body.get("apiVersion") or "", body.get("kind") or ""
    if resource.custom and not (kind and api_version):
        raise bad_request("Object 'Kind' or 'apiVersion' is missing")
    if api_version and api_version != resource.api_version:
        why = f"does not match the expected API version ({resource.api_version})"
        raise bad_request(f"the API version in the data ({api_version}) {why}")
    if kind and kind != resource.kind:
        if resource.custom:
            cause = Cause("FieldValueInvalid", f'Invalid value: "{kind}": must be {resource.kind}', "kind")
            raise invalid(resource, metadata.get("name") or "", [cause])
        raise bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}')
    namespace, name = metadata.get("namespace") or "", metadata.get("name") or ""
    if resource.namespaced and namespace and namespace != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if target.name and name and name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    metadata = {key: value for key, value in metadata.items() if key != "namespace"}
    metadata |= {"namespace": target.namespace} if resource.namespaced else {}
    metadata |= {"name": target.name} if target.name else {}
    return {**body, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


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


def kept(claimed: Json, old: Json) -> Json:
    """The metadata that a client sent, with the server's own part as it was."""
    theirs = {key: value for key, value in claimed.items() if key not in _SERVERS_OWN}
    return {**theirs, **{key: old["metadata"][key] for key in _SERVERS_OWN if key in old["metadata"]}}


def claims(body: Json) -> tuple[str, str]:
    """The resourceVersion and the uid that an object says it has."""
    found = body.get("metadata") or {}
    return found.get("resourceVersion") or "", found.get("uid") or ""


def without(body: Json, *fields: str) -> Json:
    """The object without these fields of its metadata."""
    return {**body, "metadata": {key: value for key, value in body["metadata"].items() if key not in fields}}


def check_version(target: Target, version: str, old: Json) -> None:
    """Raises the 409 of a write that rests on another version than the present one; "" is any."""
    if version and version != old["metadata"]["resourceVersion"]:
        raise conflict(target.resource, target.name, MODIFIED)


def check_update(target: Target, body: Json, old: Json) -> None:
    """Raises ApiError where a PUT is meant for another object or version, or says of none where it must."""
    version, uid = claims(body)
    if uid and uid != old["metadata"]["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}"
        raise conflict(target.resource, target.name, why)
    if version in ("", "0") and (target.resource.custom or target.resource.collection in _UPDATED_BY_VERSION):
        cause = Cause("FieldValueInvalid", "Invalid value: must be specified for an update", "metadata.resourceVersion")
        raise invalid(target.resource, target.name, [cause])
    check_version(target, version, old)


def check_uid(target: Target, uid: str, old: Json) -> None:
    """Raises the 422 of a patch that is meant for another object that had the name."""
    if uid != old["metadata"]["uid"]:
        cause = Cause("FieldValueInvalid", f'Invalid value: "{uid}": field is immutable', "metadata.uid")
        raise invalid(target.resource, target.name, [cause])
