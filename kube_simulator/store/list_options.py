"""Options that the query of a list and that of a watch share: how values are read, and some refusals."""

from __future__ import annotations

from collections.abc import Mapping

from kube_simulator.errors import ApiError, Cause, bad_request
from kube_simulator.store.go_text import int64, quoted

# Of Kubernetes; a client that comes back then will find a watch cache that has caught up.
_RETRY_AFTER_S = 1


def integer(query: Mapping[str, str], name: str) -> int:
    """A parameter that is a number; 0 where it is missing. Raises ApiError 400."""
    try:
        return int64(query[name]) if name in query else 0
    except ValueError as error:
        raise bad_request(str(error)) from None


def flag(query: Mapping[str, str], name: str) -> bool | None:
    """A parameter that is true or false, None where it is missing. Whatever is not false is true, as is nothing."""
    return query[name].lower() not in ("false", "0") if name in query else None


def bad_version(text: str, problem: ValueError) -> str:
    """The words for a resourceVersion that is no number."""
    return f"resourceVersion: Invalid value: {quoted(text)}: {problem}"


def forbidden_match(message: str) -> Cause:
    """Make the cause of a wrong resourceVersionMatch."""
    return Cause("FieldValueForbidden", f"Forbidden: {message}", "resourceVersionMatch")


def unsupported_match(match: str, *supported: str) -> Cause:
    """A resourceVersionMatch that does not exist."""
    values = ", ".join(map(quoted, supported))
    message = f"Unsupported value: {quoted(match)}: supported values: {values}"
    return Cause("FieldValueNotSupported", message, "resourceVersionMatch")


FORBIDDEN_WITH_CONTINUE = forbidden_match("resourceVersionMatch is forbidden when continue is provided")


def too_large_version(version: int, current: int) -> ApiError:
    """504: a version that is yet to come.

    Differs from Kubernetes: that waits for three seconds whether the version comes.
    """
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": _RETRY_AFTER_S,
    }
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    return ApiError(504, "Timeout", message, details, {"Retry-After": str(_RETRY_AFTER_S)})
