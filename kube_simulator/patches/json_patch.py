"""JSON patch (RFC 6902), as the API server takes it: a list of operations of which all are done or none.

Nothing is changed in place: what no operation touches, the result shares with the target.

The API server is more lenient than the RFC, and so is this: `replace` adds a key that an object has not; a missing
`value`, and what `test` and `copy` do not find, is null; an index may be negative, counted from the end; and what
stands before the first slash of a path is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kube_simulator.errors import ApiError, bad_request
from kube_simulator.patches.json_values import same
from kube_simulator.resources import Resource
from kube_simulator.values import Json

# The limit of the API server (maxJSONPatchOperations).
OPERATIONS_LIMIT: Final = 10_000

# Go's names for what JSON has, in its words about a body that is something else.
_GO_KINDS: Final[dict[type, str]] = {dict: "object", list: "array", str: "string", bool: "bool"}

Change = Callable[[Any, str], Any]
"""From a container and the last token of a path to the container with the change."""


class _Refused(Exception):
    """An operation that cannot be done on this document."""


def json_patch(target: Json, operations: object, resource: Resource, name: str) -> Json:
    """The target after all operations.

    Args:
        resource: what is patched, and
        name: its name, for errors that say so; those of the API server do not.

    Raises:
        ApiError: 400 if this is no list of operations, 413 if it is too long, 422 if an operation cannot be done: a
            path is missing, a test fails, it is unknown.
    """
    if operations is None:
        return target
    if not isinstance(operations, list):
        raise _undecodable(operations, "value of type []handlers.jsonPatchOp")
    for operation in operations:
        if not isinstance(operation, dict):
            raise _undecodable(operation, "value of type handlers.jsonPatchOp")
        for field in ("op", "path", "from"):
            if not isinstance(operation.get(field, ""), str | None):
                raise _undecodable(operation[field], f"struct field jsonPatchOp.{field} of type string")
    if len(operations) > OPERATIONS_LIMIT:
        message = (
            f"Request entity too large: The allowed maximum operations in a JSON patch is {OPERATIONS_LIMIT}, "
            f"got {len(operations)}"
        )
        raise ApiError(413, "RequestEntityTooLarge", message)
    patched: Any = target
    try:
        for operation in operations:
            patched = _done(patched, operation)
        if not isinstance(patched, dict):
            raise _Refused
    except _Refused:
        message = "the server rejected our request due to an error in our request"
        raise ApiError(422, "Invalid", message) from None
    return patched


def _done(document: Any, operation: Json) -> Any:
    value, path = operation.get("value"), _tokens(operation.get("path"))
    match operation.get("op"):
        case "add":
            return _changed(document, path, _adding(value)) if path else value
        case "replace":
            return _changed(document, path, _replacing(value)) if path else value
        case "remove":
            return _changed(document, path, _removing)
        case "test":
            if not same(_found(document, path, {}), value):
                raise _Refused
            return document
        case "copy":
            copied = _found(document, _tokens(operation.get("from")), {})
            return _changed(document, path, _adding(copied)) if path else copied
        case "move":
            source = _tokens(operation.get("from"))
            moved = _found(document, source, None)
            rest = _changed(document, source, _removing)
            return _changed(rest, path, _adding(moved)) if path else moved
    raise _Refused


def _tokens(path: str | None) -> list[str]:
    """The parts of a JSON pointer."""
    if path is None:
        raise _Refused
    return [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]]


def _changed(document: Any, path: list[str], change: Change) -> Any:
    """A copy of the document, along the path, with the change at its end."""
    if not path:
        raise _Refused
    token, *deeper = path
    if not deeper:
        return change(document, token)
    below = _changed(_child(document, token), deeper, change)
    if isinstance(document, dict):
        return {**document, token: below}
    copied = list(document)
    copied[_index(document, token)] = below
    return copied


def _adding(value: Any) -> Change:
    def add(container: Any, token: str) -> Any:
        if isinstance(container, dict):
            return {**container, token: value}
        if not isinstance(container, list):
            raise _Refused
        # One more than there are: an element may be put behind the last.
        at = len(container) if token == "-" else _index([*container, None], token)
        return [*container[:at], value, *container[at:]]

    return add


def _replacing(value: Any) -> Change:
    def replace(container: Any, token: str) -> Any:
        if isinstance(container, dict):
            return {**container, token: value}
        _child(container, token)
        copied = list(container)
        copied[_index(container, token)] = value
        return copied

    return replace


def _removing(container: Any, token: str) -> Any:
    _child(container, token)
    if isinstance(container, dict):
        return {key: value for key, value in container.items() if key != token}
    at = _index(container, token)
    return [*container[:at], *container[at + 1 :]]


def _found(document: Any, path: list[str], absent: Json | None) -> Any:
    """Return the value at the path. A key that an object has not is null there if `absent` is given, else refused."""
    for number, token in enumerate(path, start=1):
        if absent is not None and number == len(path) and isinstance(document, dict):
            return document.get(token)
        document = _child(document, token)
    return document


def _child(container: Any, token: str) -> Any:
    if isinstance(container, dict) and token in container:
        return container[token]
    if isinstance(container, list):
        return container[_index(container, token)]
    raise _Refused


def _index(container: list[Any], token: str) -> int:
    """The place in the list, counted from its beginning."""
    if not token.removeprefix("-").isdecimal():
        raise _Refused
    at = int(token)
    if not -len(container) <= at < len(container):
        raise _Refused
    return at % len(container)


def _undecodable(value: object, desired: str) -> ApiError:
    found = _GO_KINDS.get(type(value), "number")
    return bad_request(f"error decoding patch: json: cannot unmarshal {found} into Go {desired}")
