"""Adoption by a Memcached of what was made for the one in whose place it was restored from a backup.

A backup brings objects back under new uids and without ownerReferences. What is there under its name then belongs to
no owner, and is not touched, until a user names the former uid in an annotation of the Memcached. Each object still
has for which uid it was made; one that has another, or an owner, stays as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from memcached_operator.core.access import Access
from memcached_operator.core.objects.labels import OWNER_UID_ANNOTATION, RESTORED_ANNOTATION
from memcached_operator.core.objects.owned_object import OwnedRecord
from memcached_operator.core.observed.caches import WORKLOADS
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from operator_runtime import Conflict, Forbidden, Invalid, Kind, NotFound, ServerError, StaleCache, TooManyRequests

logger = logging.getLogger(__name__)


class Adoption:
    """Adoption of objects, and the remedy by which it is requested; see `adopt` and `remedy`."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._refused = access.owners.states.keyed(str)

    async def adopt(self, memcached: MemcachedRecord) -> None:
        """Mark what was made for the one that its annotation names; what is refused stays foreign, see `remedy`."""
        self._refused.pop(memcached.key, None)
        left_behind = [each for each in self._ownerless(memcached) if each[1].made_for_uid == memcached.restored_from]
        handed: list[str] = []
        try:
            for kind, live in left_behind:
                await self._mark(memcached, kind, live, handed)
        finally:
            if handed:
                note = (
                    f"Restored from the Memcached with uid {memcached.restored_from}; it now owns: {', '.join(handed)}"
                )
                logger.info("%s", note, extra={"fields": {"action": "adopt", "kinds": handed}})
                self._access.record_event(memcached, "Normal", "Adopted", "Adopt", note)

    def remedy(self, memcached: MemcachedRecord) -> str:
        """Explain how what was made for former Memcacheds of that name is adopted, or why not; "" where nothing was."""
        refused = self._refused.get(memcached.key) if memcached.restored_from else None
        if refused is not None:
            return refused
        known = {"", memcached.uid, memcached.restored_from}
        former = sorted({live.made_for_uid for _, live in self._ownerless(memcached)} - known)
        if not former:
            return ""
        uids = " or ".join(former)
        return (
            f"Objects without an owner were created for the Memcached with uid {uids}. If this Memcached was "
            f"restored in its place, set the annotation {RESTORED_ANNOTATION}={former[0]} on it to have them adopted."
        )

    def _ownerless(self, memcached: MemcachedRecord) -> Iterator[tuple[Kind[Any], OwnedRecord]]:
        workloads = [(WORKLOADS[each.kind], each) for each in self._access.caches.workloads(memcached.key)]
        others = [
            (of.kind, live)
            for of, store in self._access.caches.auxiliary.items()
            for live in of.objects_in(store, memcached.key)
        ]
        for kind, live in (*workloads, *others):
            if not (live.owner_kind or live.deleting):
                yield kind, live

    async def _mark(self, memcached: MemcachedRecord, kind: Kind[Any], live: OwnedRecord, handed: list[str]) -> None:
        name, body = kind.resource.kind, {"metadata": {"annotations": {OWNER_UID_ANNOTATION: memcached.uid}}}
        try:
            await self._access.client.patch(kind, live, body)
        except (Conflict, NotFound) as error:
            self._access.client.outdated(kind, live)
            raise StaleCache(f"{name} changed before it could be written: {error}") from error
        except (Forbidden, Invalid, ServerError, TooManyRequests) as error:
            self._refused[memcached.key] = f"The {name} cannot be adopted: {error.message or error}"
        else:
            handed.append(name)
