"""Refusals of the simulator, in the words of Kubernetes: one exception, and a function for each reason.

The shape is `metav1.Status`. The code that raises one has what is wrong; the HTTP server turns it into an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kube_simulator.resources import Resource
from kube_simulator.values import Json


@dataclass(frozen=True, slots=True)
class Cause:
    """One field of an object and what is wrong with it, such as `FieldValueInvalid` at `spec.replicas`."""

    reason: str
    message: str
    field: str

    def json(self) -> Json:
        """Convert to the form in `details.causes`."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


@dataclass
class ApiError(Exception):
    """A refusal: HTTP status, reason, message, and what else the Status has."""

    code: int
    reason: str
    message: str
    details: Json = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.message

    def status(self) -> Json:
        """The `metav1.Status` that a client reads."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            **({"reason": self.reason} if self.reason else {}),
            **({"details": self.details} if self.details else {}),
            "code": self.code,
        }


def not_found(resource: Resource, name: str) -> ApiError:
    """404: no object of that name."""
    return ApiError(404, "NotFound", f'{resource.full_name} "{name}" not found', _details(resource, name))


def already_exists(resource: Resource, name: str) -> ApiError:
    """409: the name of a new object is taken."""
    return ApiError(409, "AlreadyExists", f'{resource.full_name} "{name}" already exists', _details(resource, name))


def conflict(resource: Resource, name: str, why: str) -> ApiError:
    """409: the write rests on old knowledge."""
    message = f'Operation cannot be fulfilled on {resource.full_name} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(resource, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
"""Why a write with an outdated resourceVersion is a conflict."""


def invalid(resource: Resource, name: str, causes: Sequence[Cause]) -> ApiError:
    """422: fields of the object have values that they may not have; a cause for each."""
    _, _, group = resource.collection.partition(".")  # that of the kind by whose rules it is
    return _invalid(resource.kind, group, name, causes)


def invalid_parameter(kind: str, causes: Sequence[Cause]) -> ApiError:
    """422: parameters of the request, such as ListOptions, that do not go together."""
    return _invalid(kind, "meta.k8s.io", "", causes)


def _invalid(kind: str, group: str, name: str, causes: Sequence[Cause]) -> ApiError:
    listed = [f"{cause.field}: {cause.message}" for cause in causes]
    text = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
    named = {"name": name, "group": group, "kind": kind}
    details = {key: value for key, value in named.items() if value} | {"causes": [cause.json() for cause in causes]}
    return ApiError(422, "Invalid", f'{kind}{"." if group else ""}{group} "{name}" is invalid: {text}', details)


def forbidden(resource: Resource, name: str, why: str) -> ApiError:
    """403: RBAC or an admission plugin says no."""
    named = f'{resource.full_name} "{name}"' if name else resource.full_name
    return ApiError(403, "Forbidden", f"{named} is forbidden: {why}", _details(resource, name))


def unauthorized() -> ApiError:
    """401: the credential is not good."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def bad_request(message: str) -> ApiError:
    """400: the request cannot be understood."""
    return ApiError(400, "BadRequest", message)


def expired(message: str, **details: str) -> ApiError:
    """410: the version that was asked for is forgotten."""
    return ApiError(410, "Expired", message, dict(details))


def internal(message: str) -> ApiError:
    """500 without a reason, as Kubernetes answers to some faults that are the client's."""
    return ApiError(500, "", message)


def not_implemented(what: str) -> ApiError:
    """501: Kubernetes can do this and the simulator cannot."""
    return ApiError(501, "NotImplemented", f"the simulator does not do this: {what}")


def _details(resource: Resource, name: str) -> Json:
    named = {"name": name, "group": resource.group, "kind": resource.plural}
    return {key: value for key, value in named.items() if value}
