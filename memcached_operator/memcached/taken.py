"""Pure: what is passed through from a specification, so that what is taken out of it again is seen.

A field that the operator says nothing about is not its own to compare. One that was passed through, and no longer is,
would look like another client's. `labels.APPLIED_OPTIONS_ANNOTATION` on the object names the fields that it has beside
those of any Memcached's, and has a digest of what was passed through. What is no longer wanted is removed by these
names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from operator_runtime import UNDECODABLE, decode_nested

_DIGEST_CHARACTERS = 12
# Maps of texts, any of which may be empty.
_NAMED_BY_PEOPLE = ("labels", "annotations", "nodeSelector", "matchLabels")


def present(part: msgspec.Struct) -> dict[str, Any]:
    """The fields of a part of the specification that the user set to something, as the API server keeps them."""
    if part == type(part)():
        return {}  # compared in C: most set nothing
    kept = _kept({field: value for field in part.__struct_fields__ if (value := getattr(part, field)) is not None})
    return {field: value for field, value in kept.items() if value != {}}


def as_kept(passed: Any, of: str = "") -> Any:
    """What is passed through, without what the API server leaves out; else it would look as if somebody took it away.

    Args:
        passed: as JSON has it.
        of: the field that holds it.
    """
    if isinstance(passed, Mapping):
        return passed if of in _NAMED_BY_PEOPLE else _kept(passed)
    return tuple(map(as_kept, passed)) if isinstance(passed, list | tuple) else passed


def _kept(fields: Mapping[str, Any]) -> dict[str, Any]:
    """{} stays, as of a selector it means all, but for one of texts."""
    kept = {field: as_kept(value, field) for field, value in fields.items()}
    return {field: value for field, value in kept.items() if not _is_left_out(field, value)}


def _is_left_out(field: str, value: object) -> bool:
    return value is None or value in ("", ()) or (value == {} and field in _NAMED_BY_PEOPLE)


def taken(names: Any, passed: Mapping[str, Any]) -> str | None:
    """The annotation's text; None where nothing was passed through.

    Args:
        names: of the object's fields that are there for what was passed, as `names_of` gives them; None for none.
        passed: how it looks.
    """
    if names is None and not passed:
        return None
    digest = hashlib.sha256(msgspec.json.encode(passed, order="deterministic")).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{msgspec.json.encode(names or {}, order='deterministic').decode()} {digest}"


def names_taken(annotation: str) -> Any:
    """The names in such a text; none in one that cannot be read."""
    try:
        return decode_nested(msgspec.json.decode, annotation.rpartition(" ")[0].encode()) if annotation else {}
    except UNDECODABLE:
        return {}


def name(names: Any, *steps: str) -> Mapping[str, Any]:
    """The names of a part; none where it has none."""
    for step in steps:
        names = names.get(step) if isinstance(names, Mapping) else None
    return names if isinstance(names, Mapping) else {}
