"""Pure: record of the options that a specification passes through, so that one taken out of it again is seen.

A field that the operator does not set is not its own to compare. One that was passed through, and no longer is,
would seem another client's. `labels.APPLIED_OPTIONS_ANNOTATION` on the object records which parts were applied, by
their paths, and the content of each: one that differs now is written as a whole, and one that is not there any more
goes by name. Of a part that the operator makes for an option, such as TLS, the name is enough.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from memcached_operator.api.quantities import canonical
from memcached_operator.memcached.desired.object_types import Manifest
from memcached_operator.memcached.labels import APPLIED_OPTIONS_ANNOTATION

Part = tuple[str, Any]
"""Something passed through: its path in the object, and its value as JSON has it; None for what must not be there."""
_DIGEST_BYTES = 4
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
    """Return applied options as the API server stores them; else another client would seem to have changed them.

    Args:
        of: the field that holds it.
    """
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


def applied_options_text(passed: Iterable[Part], made: Iterable[str] = ()) -> str | None:
    """The annotation's text, a line for each part; None where there are none.

    Args:
        passed: parts that are passed through; their lines have a digest.
        made: paths of parts that the operator makes for options.
    """
    lines = [*(f"{path}=" for path in made), *(f"{path}={_digest(value)}" for path, value in passed)]
    return "\n".join(lines) or None


def _digest(value: object) -> str:
    encoded = msgspec.json.encode(value, order="deterministic")
    return hashlib.blake2b(encoded, digest_size=_DIGEST_BYTES).hexdigest()


def applied_options(manifest: Manifest) -> str:
    """The annotation's text on an object, "" where it has none."""
    return (manifest.metadata.annotations or {}).get(APPLIED_OPTIONS_ANNOTATION, "")


def digests(annotation: str) -> dict[str, str]:
    """The digests of the parts in such a text, by their paths; "" for those that the operator makes."""
    lines = (line.rpartition("=") for line in annotation.splitlines())
    return {path: digest for path, _, digest in lines if path}
