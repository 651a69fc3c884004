"""The rules of watches, without time or streams: where one begins, what it tells of a change, and when it speaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kube_simulator.errors import internal
from kube_simulator.resources import Resource
from kube_simulator.store.list_options import check, flag, integer, version_of
from kube_simulator.store.selection import Selection
from kube_simulator.store.store import Change
from kube_simulator.values import Json

Event = tuple[str, Json]
"""What a stream tells: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and an object or a Status."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
# Measured on a real API server: the first bookmark after 59.3 to 60.4 s, later ones every 59 to 61 s.
BOOKMARK_INTERVAL_S = 60.0
# And one 1.3 to 3 s before the end.
_LAST_BOOKMARK_BEFORE_END_S = 2.0


@dataclass(frozen=True, slots=True)
class Start:
    """Start of a watch, how long it may last, and whether bookmarks are requested."""

    initial: bool
    """Whether the present objects come first, as ADDED."""
    revision: int
    """The changes after it are sent; 0 is the present. With `initial` it must have been reached."""
    bookmarks: bool
    timeout_s: int
    """0 leaves it to the server; below that the watch ends at once."""


def start_of(query: Mapping[str, str]) -> Start:
    """Read the start from the query of a watch. Raises ApiError 400, 422, and 500 for a version that is no number."""
    timeout_s = integer(query, "timeoutSeconds")
    match, requested = query.get("resourceVersionMatch", ""), "sendInitialEvents" in query
    check(
        {
            "resourceVersionMatch: sendInitialEvents requires NotOlderThan": requested and match != "NotOlderThan",
            "resourceVersionMatch: it is forbidden for watch without sendInitialEvents": bool(match) and not requested,
            "resourceVersionMatch: it is forbidden when continue is provided": bool(match and query.get("continue")),
        }
    )
    try:
        revision = version_of(query)
    except ValueError as error:
        raise internal(str(error)) from None
    initial = flag(query, "sendInitialEvents")
    return Start(
        initial=revision == 0 if initial is None else initial,
        revision=revision,
        bookmarks=flag(query, "allowWatchBookmarks") or False,
        timeout_s=timeout_s,
    )


def event_of(change: Change, selection: Selection) -> Event | None:
    """Return the event of a change in this selection; None if there is none.

    An object that is edited out of a selection is DELETED there: in its state before, which was selected, with the
    version of the edit.
    """
    before = change.before
    was = before is not None and selection.matches(before)
    if change.type == "DELETED":
        return ("DELETED", change.object) if was else None
    if selection.matches(change.object):
        return "MODIFIED" if was else "ADDED", change.object
    if before is None or not was:
        return None
    version = change.object["metadata"]["resourceVersion"]
    return "DELETED", {**before, "metadata": {**before["metadata"], "resourceVersion": version}}


def bookmark(resource: Resource, revision: int, *, initial_events_end: bool = False) -> Event:
    """A bookmark: an object of the kind with nothing but a version.

    Differs from Kubernetes: a built-in kind's bookmark has no empty spec and status.
    """
    annotations = {"annotations": {INITIAL_EVENTS_END: "true"}} if initial_events_end else {}
    metadata = {"resourceVersion": str(revision), **annotations}
    return "BOOKMARK", {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}


def next_bookmark_s(now_s: float, ends_at_s: float) -> float:
    """Return when the next bookmark is due: after the interval, or shortly before the end if that comes first."""
    last_s = ends_at_s - _LAST_BOOKMARK_BEFORE_END_S
    regular_s = now_s + BOOKMARK_INTERVAL_S
    return last_s if now_s < last_s < regular_s else regular_s


def worth_a_bookmark(revision: int, sent: int, remaining_s: float) -> bool:
    """Report whether a bookmark of `revision` is sent to a reader who was last given `sent`, so long before the end.

    A regular one is a sign of life, even without news; the one before the end is not. A reader that waits
    for a version that is yet to come gets none.
    """
    return revision > sent or (revision == sent and remaining_s > _LAST_BOOKMARK_BEFORE_END_S)
