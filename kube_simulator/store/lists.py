"""Lists: which version of a collection is asked for, and which page of it.

Differs from Kubernetes: a continue token that cannot be read is refused in fewer words.
"""

from __future__ import annotations

import base64
import json
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from kube_simulator.errors import ApiError, bad_request, expired
from kube_simulator.resources import Resource
from kube_simulator.store.list_options import check, integer, too_large_version, version_of
from kube_simulator.store.selection import Selection, selection_of
from kube_simulator.store.store import Forgotten, Store
from kube_simulator.values import Json

_TOKEN_VERSION = "meta.k8s.io/v1"
# In a token: go on in what is the present then, though the pages are no one snapshot any more.
_INCONSISTENT = -1
_CONTINUE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


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


@dataclass
class ContinueExpired(ApiError):
    """410 with a token by which the rest can be had all the same, as of a later version."""

    fresh_token: str = ""

    def status(self) -> Json:
        """The Status; the token is in its metadata."""
        return {**super().status(), "metadata": {"continue": self.fresh_token}}


@dataclass(frozen=True, slots=True)
class _Requested:
    revision: int | None
    """None is the present."""
    start: str
    """The first position on the page."""
    limit: int
    """0 is none."""


def list_page(store: Store, resource: Resource, namespace: str, query: Mapping[str, str]) -> Listing:
    """The page that a query asks for; without a namespace, of all. Raises ApiError 400, 410, 422, 504."""
    selection = selection_of(resource, query)
    desired = _desired(query, store.revision)
    if desired.revision is None:
        revision, items = store.revision, present(store, resource, namespace, selection)
    else:
        revision, items = desired.revision, _past(store, resource, namespace, desired.revision, desired.start)

    def position(object: Json) -> str:
        metadata = object["metadata"]
        if resource.namespaced and not namespace:
            return f"/{metadata['namespace']}/{metadata['name']}"
        return f"/{metadata['name']}"

    first = bisect_left(items, desired.start, key=position) if desired.start else 0
    page, next_ = _page(items, first, desired.limit, selection)
    if next_ == len(items):
        return Listing(page, revision)
    # What follows the last object of the page: no key lies between it and this.
    token = _encoded(revision, f"{position(page[-1])}\0")
    return Listing(page, revision, token, len(items) - next_ if selection.everything else None)


def _desired(query: Mapping[str, str], current: int) -> _Requested:
    version_text, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    limit = 0 if version_text == "0" else max(0, integer(query, "limit"))
    integer(query, "timeoutSeconds")  # of no use to a list, and yet read
    check(
        {
            "resourceVersionMatch: it is forbidden without resourceVersion": bool(match and not version_text),
            "resourceVersionMatch: it is forbidden when continue is provided": bool(match and query.get("continue")),
            "resourceVersionMatch: it must be Exact or NotOlderThan": match not in ("", "Exact", "NotOlderThan"),
            "resourceVersionMatch: Exact is forbidden for resourceVersion 0": match == "Exact" and version_text == "0",
            "sendInitialEvents: it is forbidden for list": "sendInitialEvents" in query,
        }
    )
    if token := query.get("continue"):
        revision, start = _decoded(token)
        if version_text not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        return _Requested(None if revision < 0 else _not_future(revision, current), start, limit)
    try:
        version = version_of(query)
    except ValueError as error:
        raise bad_request(str(error)) from None
    # A version and a limit without a word about the match mean that version exactly.
    exact = version > 0 and (match == "Exact" or (limit > 0 and not match))
    _not_future(version, current)
    return _Requested(version if exact else None, "", limit)


def _not_future(version: int, current: int) -> int:
    if version > current:
        raise too_large_version(version, current)
    return version


def present(store: Store, resource: Resource, namespace: str, selection: Selection) -> list[Json]:
    """List all objects in order, selected or not; of a selected name that one alone, without reading the others."""
    name = selection.fields.name
    if not name or (resource.namespaced and not namespace):
        return store.list(resource.collection, namespace)
    found = store.get(resource.collection, namespace, name)
    return [] if found is None else [found]


def _past(store: Store, resource: Resource, namespace: str, revision: int, start: str) -> list[Json]:
    """List all objects of a revision in order."""
    try:
        return store.list_at(resource.collection, namespace, revision)
    except Forgotten:
        if not start:
            raise expired("The resourceVersion for the provided list is too old.") from None
        fresh = _encoded(_INCONSISTENT, start)
        raise ContinueExpired(410, "Expired", _CONTINUE_TOO_OLD, fresh_token=fresh) from None


def _page(items: list[Json], first: int, limit: int, selection: Selection) -> tuple[list[Json], int]:
    """The selected objects from `first` on, at most `limit`, and the index of what comes next.

    As in Kubernetes there may be a next page on which nothing is selected: nobody looks ahead.
    """
    if selection.everything:
        end = min(first + limit, len(items)) if limit else len(items)
        return items[first:end], max(first, end)
    page: list[Json] = []
    for index in range(first, len(items)):
        if selection.matches(items[index]):
            page.append(items[index])
            if len(page) == limit:
                return page, index + 1
    return page, len(items)


def _encoded(revision: int, start: str) -> str:
    token = json.dumps({"v": _TOKEN_VERSION, "rv": revision, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(token.encode()).decode()


def _decoded(token: str) -> tuple[int, str]:
    """Revision and start of a continue token. Raises ApiError 400."""
    try:
        found = json.loads(base64.urlsafe_b64decode(f"{token}=="))
        return int(found["rv"]), str(found["start"])
    except (ValueError, KeyError, TypeError):
        raise bad_request("invalid continue token: continue key is not valid") from None
