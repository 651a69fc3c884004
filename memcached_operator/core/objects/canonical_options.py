"""Pure: options that are passed through, in the form in which the API server stores them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from memcached_operator.api.quantities import canonical

_QUANTITIES: Final = ("limits", "requests", "overhead")
# Maps of texts, any of which may be empty.
NAMED_BY_PEOPLE: Final = ("labels", "annotations", "nodeSelector", "matchLabels", *_QUANTITIES)
"""Fields whose keys are no fields."""
# Quantities, which the API server writes back in one form.
_QUANTITY: Final = ("sizeLimit", "divisor")
# What is left out where it is false or 0; of other fields that is something else than nothing.
_ZEROES: Final = (
    *("hostIPC", "hostNetwork", "hostPID", "readOnly", "stdin", "stdinOnce", "tty"),
    *("failureThreshold", "hostPort", "initialDelaySeconds", "periodSeconds", "successThreshold", "timeoutSeconds"),
)


def canonical_options(passed: Any, of: str = "") -> Any:
    """Return applied options as the API server stores them; else another client would seem to have changed them."""
    if isinstance(passed, Mapping):
        if of in _QUANTITIES:
            return {name: _quantity(value) for name, value in passed.items()}
        if of in NAMED_BY_PEOPLE:
            return dict(passed)
        # {} stays, as of a selector it means all, but for one of texts.
        kept = {field: canonical_options(value, field) for field, value in passed.items()}
        return {field: value for field, value in kept.items() if not _is_left_out(field, value)}
    if isinstance(passed, list | tuple):
        return [canonical_options(each) for each in passed]
    return _quantity(passed) if of in _QUANTITY else passed


def _is_left_out(field: str, value: object) -> bool:
    empty = value is None or value in ("", []) or (value == {} and field in NAMED_BY_PEOPLE)
    return empty or (not value and field in _ZEROES)


def _quantity(value: object) -> object:
    with suppress(ValueError):  # what is none is the API server's to refuse
        return canonical(str(value)) if isinstance(value, str | int | float) else value
    return value
