"""The list as an item in each server, for clients that ask the servers themselves.

The operator queries each server's statistics now and then, and sets the item on the same connection. It is set again
each time: a server loses it by `flush_all`, by a restart, and where it is full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from memcached_operator.core.objects.owned_object import OwnedRecord
from memcached_operator.core.observed.caches import Caches
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.discovery.discovery_protocol import ITEM
from memcached_operator.features.discovery.server_list_configmap import CONFIG_MAPS, cluster_of
from memcached_operator.servers.queried_pod import Endpoints, QueriedPod, Resolved
from operator_runtime import ObjectKey

_LIFETIME_S: Final = 86_400
"""An item that is set no more, as the setting is off, is gone after a day: clients would know no later list. While the
operator is away they keep the list as long."""


class ServerItems:
    """Items that servers are to have; see `endpoints` and `watch`."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._store = caches.auxiliary[CONFIG_MAPS]

    def endpoints(self, resolve: Endpoints) -> Endpoints:
        """Wrap how endpoints are resolved, so that a query sets the item as well."""

        async def resolved(pod: QueriedPod) -> Resolved:
            found = await resolve(pod)
            before = self.setting(pod.memcached_key)
            return found._replace(endpoint=found.endpoint._replace(before=before)) if before else found

        return resolved

    def setting(self, key: ObjectKey | None) -> bytes:
        """The request that sets the item in a server of that Memcached, b"" where it is to have none."""
        spec = self._caches.spec_at(key)
        live = self._store.get(CONFIG_MAPS.key_of(key)) if key is not None else None
        if spec is None or not spec.lists_in_servers or live is None or not live.normalized:
            return b""
        text = cluster_of(CONFIG_MAPS.codec.decoded(live)).encode()
        words = (ITEM.encode(), _LIFETIME_S, len(text), text)
        return b"set %b 0 %d %d noreply\r\n%b\r\n" % words if text else b""

    def watch(self, query: Callable[[PodRecord], None]) -> None:
        """Have the servers queried soon whose list changes."""

        def changed(before: OwnedRecord | None, after: OwnedRecord | None) -> None:
            if after is not None and (before is None or before.normalized != after.normalized):
                for pod in self._servers(CONFIG_MAPS.memcached_of(after)):
                    query(pod)

        self._store.add_handler(changed)

    def _servers(self, key: ObjectKey | None) -> Iterator[PodRecord]:
        if key is not None and self.setting(key):
            yield from (pod for pod in self._caches.pods_of(key) if pod.ready)
