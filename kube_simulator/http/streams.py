"""Watches on the wire: events as lines of JSON, as many in one write as there are.

Three watchers of the same resource mostly send the same bytes: the line of an object's state is made once and kept
while it is likely to be asked for again.
"""

from __future__ import annotations

import orjson

from kube_simulator.requests import bodies
from kube_simulator.resources import Resource
from kube_simulator.values import Json

# Some 7 MB, as orjson takes twice what a pod needs; watchers of one resource are hardly ever further apart.
_KEPT = 1024


class Encodings:
    """The JSON of stored objects, each made once for all watchers of one resource.

    Invariant: an entry holds its object, so that no other object can have its id.
    """

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._entries: dict[tuple[int, str], tuple[Json, bytes]] = {}

    def line(self, resource: Resource, kind: str, found: Json) -> bytes:
        """The line of an event; bookmarks and errors, which are never sent twice, are not kept."""
        if kind in ("BOOKMARK", "ERROR"):
            return _line(kind, orjson.dumps(found))
        key = (id(found), resource.base_path)
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= self._kept:
                del self._entries[next(iter(self._entries))]
            entry = self._entries[key] = (found, orjson.dumps(bodies.shown(resource, found)))
        return _line(kind, entry[1])


def _line(kind: str, encoded: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), encoded)
