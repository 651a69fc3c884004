"""Pure: the remedy for an error that keeps a watch from working, for the log."""

from __future__ import annotations

from typing import Final

from operator_runtime.client.errors import (
    ApiError,
    AuthenticationUnavailable,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    Unauthorized,
    Unreachable,
)
from operator_runtime.client.resources import Resource

# Whom Kubernetes takes a client for that shows no credential, or one of a kind that is not enabled, such as a password.
_ANONYMOUS: Final = '"system:anonymous"'


def remedy_for(error: KubeError | None, resource: Resource, selectors: str) -> str:
    """The remedy, in a sentence; "" where the error's message ends with that.

    Args:
        error: what ended the requests, None where their answers end without an event.
        resource: the kind that is watched.
        selectors: of the watch, as text.
    """
    match error:
        case NotFound():
            return f"The kind {resource.kind} is not served: install its CustomResourceDefinition."
        case Forbidden(message=message) if _ANONYMOUS in message:
            return (
                "The request carried no credential that the API server takes: "
                "name a user with a token or a client certificate."
            )
        case Forbidden():
            return f"Grant list and watch on {resource.qualified_name} to the operator's account."
        case Unauthorized():
            return "Give the operator a credential that the API server accepts."
        case Unreachable():
            return "Check that the API server runs and is reachable from here."
        case AuthenticationUnavailable():
            return ""  # its message ends with the remedy
        case Invalid() if selectors:
            return f"Correct the selector {selectors!r}, which the operator's code or settings specify."
        case ApiError():
            return "See the API server's log."
        case _:
            return "Check what is between the operator and the API server: a proxy, a load balancer."
