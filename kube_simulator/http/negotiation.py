"""Negotiation of an answer's form and of a body's: Accept and Content-Type."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, Literal

import orjson

from kube_simulator.errors import ApiError, bad_request

JSON_TYPE: Final = "application/json"
# The API server's limit for the body of a request.
BODY_LIMIT_BYTES: Final = 3 * 2**20

PatchKind = Literal["merge", "json", "strategic", "apply"]
_PATCH_KINDS: Final[dict[str, PatchKind]] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}


@lru_cache(maxsize=256)
def wants_table(accept: str, *, tables: bool = True) -> bool:
    """Report whether a client would rather have a Table than the objects; it writes its wishes in their order.

    Args:
        accept: the header of that name.
        tables: whether a Table can be had.

    Raises:
        ApiError: 406, it accepts nothing that can be had.
    """
    for clause in (accept or "*/*").split(","):
        kind, *parameters = (part.strip() for part in clause.split(";"))
        desired = next((each for each in parameters if each.startswith("as=")), None)
        if kind not in (JSON_TYPE, "application/*", "*/*") or desired not in (None, "as=Table"):
            continue
        if desired is None or (tables and "v=v1" in parameters):
            return desired is not None
    raise ApiError(406, "NotAcceptable", f"only the following media types are accepted: {JSON_TYPE}")


def body_object(body: bytes, content_type: str) -> Any:
    """The decoded body of a POST, PUT or DELETE. Raises ApiError: 415 or 400."""
    if _media_type(content_type) not in ("", JSON_TYPE):
        raise _unsupported([JSON_TYPE])
    return _decoded(body)


def patch_kind(content_type: str, *, custom: bool) -> PatchKind:
    """Return the kind of a PATCH by its type; custom resources know no strategic merge patches.

    Raises:
        ApiError: 415.
    """
    known = {media: kind for media, kind in _PATCH_KINDS.items() if not (custom and kind == "strategic")}
    found = known.get(_media_type(content_type))
    if found is None:
        raise _unsupported([*known])
    return found


def patch_body(body: bytes, kind: PatchKind) -> Any:
    """The decoded body of a PATCH. Raises ApiError: 400."""
    decoded = _decoded(body)
    if not isinstance(decoded, list if kind == "json" else dict):
        raise bad_request(f"error decoding patch: a JSON {'array' if kind == 'json' else 'object'} was expected")
    return decoded


def _decoded(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def encoded(document: object) -> bytes:
    """A document as JSON."""
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


def warning(text: str) -> str:
    """A `Warning` header's value."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", " ").replace("\n", " ")
    return f'299 - "{escaped}"'


def _unsupported(media_types: list[str]) -> ApiError:
    message = "the body of the request was in an unknown format - accepted media types include: "
    return ApiError(415, "UnsupportedMediaType", message + ", ".join(media_types))


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()
