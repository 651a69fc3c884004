"""Options that the query of a list and that of a watch share: how values are read, and some refusals.

Differs from Kubernetes: a version that is yet to come is refused at once, and not after three seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kube_simulator.errors import ApiError, bad_request, invalid_parameter
from kube_simulator.schema.causes import forbidden

# Of Kubernetes; a client that comes back then will find a watch cache that has caught up.
_RETRY_AFTER_S: Final = 1


def integer(query: Mapping[str, str], name: str) -> int:
    """A parameter that is a number; 0 where it is missing. Raises ApiError 400."""
    try:
        return int(query.get(name) or 0)
    except ValueError:
        raise bad_request(f'{name}: parsing "{query[name]}": invalid syntax') from None


def flag(query: Mapping[str, str], name: str) -> bool | None:
    """A parameter that is true or false, None where it is missing. Whatever is not false is true, as is nothing."""
    return query[name].lower() not in ("false", "0") if name in query else None


def version_of(query: Mapping[str, str]) -> int:
    """The resourceVersion; 0 where there is none.

    Raises:
        ValueError: it is no number.
    """
    text = query.get("resourceVersion") or "0"
    if not text.isdecimal():
        raise ValueError(f'resourceVersion: Invalid value: "{text}": it is no number')
    return int(text)


def check(wrong: Mapping[str, bool]) -> None:
    """Raises ApiError 422 for parameters that do not go together.

    Args:
        wrong: by `FIELD: REASON`, whether that is wrong.
    """
    found = [forbidden(*each.split(": ", 1)) for each, is_so in wrong.items() if is_so]
    if found:
        raise invalid_parameter("ListOptions", found)


def too_large_version(version: int, current: int) -> ApiError:
    """504: a version that is yet to come."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": _RETRY_AFTER_S,
    }
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    return ApiError(504, "Timeout", message, details, {"Retry-After": str(_RETRY_AFTER_S)})
