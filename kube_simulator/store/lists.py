"""Lists: which version of a collection is asked for, and which page of it."""

from __future__ import annotations

import base64
import json
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from kube_simulator.errors import ApiError, bad_request, expired, invalid_parameter
from kube_simulator.resources import Resource
from kube_simulator.schema.causes import forbidden
from kube_simulator.store.selection import Selection, selection_of
from kube_simulator.store.store import Forgotten, Store
from kube_simulator.values import Json


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a list."""

    items: list[Json]
    revision: int
    """Of which the list is a snapshot: its resourceVersion."""
    continue_token: str = ""
    """Asks for the next page; empty on the last one."""
    remaining: int | None = None
    """How many objects come after the page; None on the last one, and where a selector makes it unknown."""


def list_page(store: Store, resource: Resource, namespace: str, query: Mapping[str, str]) -> Listing:
    """The page that a query asks for; without a namespace, of all. Raises ApiError 400, 410, 422, 504."""
    selection = selection_of(resource, query)
    exact, start, limit = _desired(query, store.revision)
    if exact is None:
        revision, items = store.revision, present(store, resource, namespace, selection)
    else:
        revision, items = exact, _past(store, resource, namespace, exact)

    def position(object: Json) -> str:
        metadata = object["metadata"]
        across = resource.namespaced and not namespace
        return f"/{metadata['namespace']}/{metadata['name']}" if across else f"/{metadata['name']}"

    page: list[Json] = []
    next_ = bisect_left(items, start, key=position) if start else 0
    if selection.everything:
        page = items[next_ : next_ + limit] if limit else items[next_:]
        next_ += len(page)
    else:  # nobody looks ahead: there may be a next page on which nothing is selected
        while next_ < len(items) and not (limit and len(page) == limit):
            page += [items[next_]] if selection.matches(items[next_]) else []
            next_ += 1
    if next_ == len(items):
        return Listing(page, revision)
    # What follows the last object of the page: no key lies between it and this.
    token = _encoded(revision, f"{position(page[-1])}\0")
    return Listing(page, revision, token, len(items) - next_ if selection.everything else None)


def present(store: Store, resource: Resource, namespace: str, selection: Selection) -> list[Json]:
    """List all objects in order, selected or not; of a selected name that one alone, without reading the others."""
    if not selection.name or (resource.namespaced and not namespace):
        return store.list(resource.collection, namespace)
    found = store.get(resource.collection, namespace, selection.name)
    return [] if found is None else [found]


def integer(query: Mapping[str, str], name: str) -> int:
    """A parameter that is a number; 0 where it is missing. Raises ApiError 400."""
    try:
        return int(query.get(name) or 0)
    except ValueError:
        raise bad_request(f'{name}: parsing "{query[name]}": invalid syntax') from None


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
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    return ApiError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1}, {"Retry-After": "1"})


def _desired(query: Mapping[str, str], current: int) -> tuple[int | None, str, int]:
    """The revision that is asked for (None is the present), the first position on the page, and its limit (0: none)."""
    text, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    limit = 0 if text == "0" else max(0, integer(query, "limit"))
    integer(query, "timeoutSeconds")  # of no use to a list, and yet read
    token = query.get("continue", "")
    check(
        {
            "resourceVersionMatch: it is forbidden without resourceVersion": bool(match and not text),
            "resourceVersionMatch: it must be Exact or NotOlderThan": match not in ("", "Exact", "NotOlderThan"),
            "sendInitialEvents: it is forbidden for list": "sendInitialEvents" in query,
        }
    )
    start = ""
    if token:
        version, start = _decoded(token)
        exact = True
        if text not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
    else:
        if not (text or "0").isdecimal():
            raise bad_request(f'resourceVersion: Invalid value: "{text}": it is no number')
        version = int(text or 0)
        # A version and a limit without a word about the match mean that version exactly.
        exact = version > 0 and (match == "Exact" or (limit > 0 and not match))
    if version > current:
        raise too_large_version(version, current)
    return version if exact else None, start, limit


def _past(store: Store, resource: Resource, namespace: str, revision: int) -> list[Json]:
    """List all objects of a revision in order."""
    try:
        return store.list_at(resource.collection, namespace, revision)
    except Forgotten:
        raise expired("The resourceVersion for the provided list is too old.") from None


def _encoded(revision: int, start: str) -> str:
    return base64.urlsafe_b64encode(json.dumps({"rv": revision, "start": start}).encode()).decode()


def _decoded(token: str) -> tuple[int, str]:
    """Revision and start of a continue token. Raises ApiError 400."""
    try:
        found = json.loads(base64.urlsafe_b64decode(f"{token}=="))
        return int(found["rv"]), str(found["start"])
    except (ValueError, KeyError, TypeError):
        raise bad_request("invalid continue token: continue key is not valid") from None
