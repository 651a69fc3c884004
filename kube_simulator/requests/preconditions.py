"""Preconditions of a write: the version and the uid of its object, and what only the server may write."""

from __future__ import annotations

from kube_simulator.errors import MODIFIED, ApiError, Cause, conflict, invalid
from kube_simulator.requests.types import Target
from kube_simulator.values import Json

# A PUT must say of which version (not AllowUnconditionalUpdate), as with every custom resource.
_UPDATED_BY_VERSION = frozenset({"leases.coordination.k8s.io"})

# What a client may send back or leave out, and never change.
_SERVERS_OWN = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "resourceVersion",
    "generation",
    "selfLink",
)


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
        raise uid_mismatch(target, uid, old["metadata"]["uid"])
    if version in ("", "0") and (target.resource.custom or target.resource.collection in _UPDATED_BY_VERSION):
        raise _version_required(target)
    check_version(target, version, old)


def uid_mismatch(target: Target, desired: str, found: str) -> ApiError:
    """409: a PUT or a deletion is meant for another object that had the name."""
    why = f"Precondition failed: UID in precondition: {desired}, UID in object meta: {found}"
    return conflict(target.resource, target.name, why)


def immutable_uid(target: Target, uid: str) -> ApiError:
    """422: a patch is meant for another object that had the name."""
    cause = Cause("FieldValueInvalid", f'Invalid value: "{uid}": field is immutable', "metadata.uid")
    return invalid(target.resource, target.name, [cause])


def _version_required(target: Target) -> ApiError:
    """422 of an update that does not say of which version, named after the resource and not the kind, as it happens."""
    cause = Cause("FieldValueInvalid", "Invalid value: 0: must be specified for an update", "metadata.resourceVersion")
    message = f'{target.resource.full_name} "{target.name}" is invalid: {cause.field}: {cause.message}'
    details = {"name": target.name, "group": target.resource.group, "kind": target.resource.plural}
    return ApiError(422, "Invalid", message, {**details, "causes": [cause.json()]})
